#include "worker/data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int wlb_file_create(const char *path, struct wlb_error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return wlb_fail(error, "%s: cannot be created: %s", path, strerror(errno));
	return fd;
}

int wlb_file_open(const char *path, int64_t *bytes, struct wlb_error *error)
{
	/* O_NONBLOCK: a FIFO of that name must not hold us; regular files do not know it. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return wlb_fail(error, "%s: cannot be opened: %s", path, strerror(errno));
	struct stat st;
	if (fstat(fd, &st) < 0) {
		wlb_fail(error, "%s: cannot be examined: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		wlb_fail(error, "%s: is not a regular file", path);
	} else {
		*bytes = st.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

int wlb_file_write(int fd, const char *path, const void *data, size_t bytes, struct wlb_error *error)
{
	const char *from = data;
	while (bytes > 0) {
		ssize_t written = write(fd, from, bytes);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return wlb_fail(error, "%s: cannot be written: %s", path, strerror(errno));
		from += written;
		bytes -= (size_t)written;
	}
	return 0;
}

int wlb_file_read(int fd, const char *path, void *out, size_t bytes, int64_t offset, struct wlb_error *error)
{
	char *to = out;
	while (bytes > 0) {
		ssize_t got = pread(fd, to, bytes, offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return wlb_fail(error, "%s: cannot be read at byte %lld: %s", path, (long long)offset,
					strerror(errno));
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

int wlb_file_close_synced(int fd, const char *path, struct wlb_error *error)
{
	int failed = fsync(fd) < 0 ? errno : 0;
	if (close(fd) < 0 && failed == 0)
		failed = errno;
	if (failed != 0)
		return wlb_fail(error, "%s: cannot be brought to the disk: %s", path, strerror(failed));
	return 0;
}

int wlb_file_sync_folder(const char *folder, struct wlb_error *error)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return wlb_fail(error, "%s: cannot be opened: %s", folder, strerror(errno));
	return wlb_file_close_synced(fd, folder, error);
}
