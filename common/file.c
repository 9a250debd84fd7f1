#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int wlb_write_all(int fd, const void *data, size_t length)
{
	const char *cursor = data;
	while (length > 0) {
		ssize_t n = write(fd, cursor, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		cursor += n;
		length -= (size_t)n;
	}
	return 0;
}

int wlb_pwrite_all(int fd, const void *data, size_t length, off_t offset)
{
	const char *cursor = data;
	while (length > 0) {
		ssize_t n = pwrite(fd, cursor, length, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		cursor += n;
		offset += n;
		length -= (size_t)n;
	}
	return 0;
}

int wlb_pread_all(int fd, void *data, size_t length, off_t offset)
{
	char *cursor = data;
	while (length > 0) {
		ssize_t n = pread(fd, cursor, length, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return -1;
		cursor += n;
		offset += n;
		length -= (size_t)n;
	}
	return 0;
}

int wlb_dir_sync(const char *path, struct wlb_error *error)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return wlb_fail(error, "directory %s: cannot be opened: %s", path, strerror(errno));
	int rc = fsync(fd);
	int why = errno;
	close(fd);
	/* Some file systems cannot sync a folder; they return EINVAL and order renames themselves. */
	if (rc != 0 && why != EINVAL)
		return wlb_fail(error, "directory %s: cannot be synced: %s", path, strerror(why));
	return 0;
}

int wlb_parent_sync(const char *path, struct wlb_error *error)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	if (slash == NULL)
		return wlb_dir_sync(".", error);
	if (slash == path)
		return wlb_dir_sync("/", error);
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	return wlb_dir_sync(parent, error);
}

static int sync_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	int rc = fsync(fd);
	int why = errno;
	close(fd);
	errno = why;
	return rc;
}

int wlb_file_sync(const char *path, struct wlb_error *error)
{
	return sync_path(path) == 0 ? 0 : wlb_fail(error, "file %s: cannot be synced: %s", path, strerror(errno));
}

int wlb_file_commit(const char *temporary, const char *path, struct wlb_error *error)
{
	if (sync_path(temporary) != 0 || rename(temporary, path) != 0) {
		int why = errno;
		unlink(temporary);
		return wlb_fail(error, "file %s: cannot be written: %s", path, strerror(why));
	}
	return wlb_parent_sync(path, error);
}

int wlb_file_write(const char *path, const void *data, size_t length, mode_t mode, struct wlb_error *error)
{
	char temporary[PATH_MAX];
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return wlb_fail(error, "file %.100s...: the path is longer than %d bytes", path, PATH_MAX - 8);
	int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return wlb_fail(error, "file %s: cannot be created: %s", path, strerror(errno));
	int rc = fchmod(fd, mode) == 0 ? wlb_write_all(fd, data, length) : -1;
	int why = errno;
	/* close() is where some network file systems report a full disk. */
	if (close(fd) != 0 && rc == 0) {
		rc = -1;
		why = errno;
	}
	if (rc != 0) {
		unlink(temporary);
		return wlb_fail(error, "file %s: cannot be written: %s", path, strerror(why));
	}
	return wlb_file_commit(temporary, path, error);
}

static int read_all(int fd, char *data, size_t length)
{
	while (length > 0) {
		ssize_t n = read(fd, data, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return -1;
		data += n;
		length -= (size_t)n;
	}
	return 0;
}

int wlb_file_read(const char *path, size_t limit, char **data, size_t *length, struct wlb_error *error)
{
	struct stat about;
	/* Without O_NONBLOCK, opening a FIFO waits until a process opens it for writing. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return wlb_fail(error, "file %s: cannot be opened: %s", path, strerror(errno));
	char *bytes = NULL;
	int rc = -1;
	if (fstat(fd, &about) != 0)
		wlb_fail(error, "file %s: cannot be read: %s", path, strerror(errno));
	else if (!S_ISREG(about.st_mode))
		wlb_fail(error, "file %s: is not a regular file", path);
	else if ((uintmax_t)about.st_size > limit)
		wlb_fail(error, "file %s: has %jd bytes, at most %zu are read", path, (intmax_t)about.st_size, limit);
	else if ((bytes = malloc((size_t)about.st_size + 1)) == NULL)
		wlb_fail(error, "file %s: out of memory for its %jd bytes", path, (intmax_t)about.st_size);
	else if ((rc = read_all(fd, bytes, (size_t)about.st_size)) != 0)
		wlb_fail(error, "file %s: cannot be read: %s", path, strerror(errno));
	close(fd);
	if (rc != 0) {
		free(bytes);
		return -1;
	}
	bytes[about.st_size] = '\0';
	*data = bytes;
	if (length != NULL)
		*length = (size_t)about.st_size;
	return 0;
}

/* Returns -1 with errno = why. */
static int fail_dir(const char *path, const char *what, int why, struct wlb_error *error)
{
	wlb_fail(error, "directory %s: cannot be %s: %s", path, what, strerror(why));
	errno = why;
	return -1;
}

int wlb_dir_make(const char *path, mode_t mode, struct wlb_error *error)
{
	char part[PATH_MAX];
	size_t length = strlen(path);
	if (length == 0 || length >= sizeof(part)) {
		wlb_fail(error, "directory '%.100s': a path has 1 to %d bytes", path, PATH_MAX - 1);
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(part, path, length + 1);
	for (size_t i = 1; i <= length; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		char kept = part[i];
		part[i] = '\0';
		if (mkdir(part, mode) != 0 && errno != EEXIST)
			return fail_dir(part, "created", errno, error);
		part[i] = kept;
	}
	struct stat about;
	if (stat(path, &about) != 0)
		return fail_dir(path, "examined", errno, error);
	return S_ISDIR(about.st_mode) ? 0 : fail_dir(path, "used", ENOTDIR, error);
}
