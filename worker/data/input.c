#include "worker/data/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/data/file_progress.h"

int wlb_input_failure(int cause)
{
	return cause == ENOENT || cause == ENOTDIR ? -1 : WLB_UNREADABLE;
}

int wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error)
{
	/* O_NONBLOCK: opening a FIFO of that name must not block; it has no effect on regular files. */
	wlb_file_report("opening", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = -1;
	if (fd < 0) {
		rc = wlb_input_failure(errno);
		wlb_fail(error, "%s: cannot be opened: %s", path, strerror(errno));
		return rc;
	}
	struct stat st;
	if (fstat(fd, &st) < 0) {
		wlb_fail(error, "%s: cannot be examined: %s", path, strerror(errno));
		rc = WLB_UNREADABLE;
	} else if (!S_ISREG(st.st_mode)) {
		wlb_fail(error, "%s: is not a regular file", path);
	} else {
		*bytes = st.st_size;
		return fd;
	}
	close(fd);
	return rc;
}

int wlb_input_read(int fd, const char *path, void *out, size_t bytes, int64_t offset, struct wlb_error *error)
{
	char *to = out;
	while (bytes > 0) {
		wlb_file_report("reading", path);
		wlb_file_read_begins();
		ssize_t got = pread(fd, to, bytes, offset);
		int cause = errno;
		wlb_file_read_ends();
		if (got < 0 && cause == EINTR)
			continue;
		if (got < 0) {
			wlb_fail(error, "%s: cannot be read at byte %lld: %s", path, (long long)offset,
			         strerror(cause));
			return WLB_UNREADABLE;
		}
		if (got == 0)
			return wlb_fail(error,
			                "%s: ends at byte %lld, %zu bytes too early: was it cut since it was opened?",
			                path, (long long)offset, bytes);
		to += got;
		bytes -= (size_t)got;
		offset += got;
	}
	return 0;
}

int wlb_input_read_all(const char *path, int64_t most_bytes, char **text, size_t *length, struct wlb_error *error)
{
	int64_t bytes;
	*text = NULL;
	int fd = wlb_input_open(path, &bytes, error), rc = -1;
	if (fd < 0)
		return fd;
	if (bytes > most_bytes) {
		wlb_fail(error, "%s: has %lld bytes, at most %lld are read", path, (long long)bytes,
		         (long long)most_bytes);
	} else if ((*text = malloc((size_t)bytes + 1)) == NULL) {
		wlb_fail(error, "%s: out of memory for its %lld bytes", path, (long long)bytes);
		rc = WLB_UNREADABLE;
	} else {
		rc = wlb_input_read(fd, path, *text, (size_t)bytes, 0, error);
	}
	close(fd);
	if (rc < 0) {
		free(*text);
		*text = NULL;
	}
	*length = (size_t)bytes;
	return rc;
}
