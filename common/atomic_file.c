#include "common/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"

static int fail_write(const char *path, struct wlb_error *error)
{
	return wlb_fail(error, "file %s: cannot be written: %s", path, strerror(errno));
}

int wlb_atomic_file_open(struct wlb_atomic_file *file, const char *path, struct wlb_error *error)
{
	struct stat about;
	int fd;
	*file = (struct wlb_atomic_file){.path = path};
	if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		if (snprintf(file->temporary, sizeof(file->temporary), "%s.XXXXXX", path) >=
		    (int)sizeof(file->temporary))
			return wlb_fail(error, "file %.100s...: the path is longer than %d bytes", path, PATH_MAX - 8);
		fd = mkostemp(file->temporary, O_CLOEXEC);
	}
	if (fd < 0)
		return fail_write(path, error);
	file->out = fdopen(fd, "w");
	if (file->out != NULL && (file->temporary[0] == '\0' || fchmod(fd, 0644) == 0))
		return 0;
	fail_write(path, error);
	if (file->out == NULL) {
		close(fd);
		unlink(file->temporary);
	}
	wlb_atomic_file_drop(file);
	return -1;
}

int wlb_atomic_file_commit(struct wlb_atomic_file *file, struct wlb_error *error)
{
	bool failed = fflush(file->out) != 0 || ferror(file->out);
	if (failed) {
		fail_write(file->path, error);
		wlb_atomic_file_drop(file);
		return -1;
	}
	FILE *out = file->out;
	file->out = NULL;
	if (fclose(out) != 0) {
		fail_write(file->path, error);
		unlink(file->temporary);
		return -1;
	}
	return file->temporary[0] != '\0' ? wlb_file_commit(file->temporary, file->path, error) : 0;
}

void wlb_atomic_file_drop(struct wlb_atomic_file *file)
{
	if (file->out == NULL)
		return;
	fclose(file->out);
	file->out = NULL;
	if (file->temporary[0] != '\0')
		unlink(file->temporary);
}
