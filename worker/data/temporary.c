#include "worker/data/temporary.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char AGAIN[] = "resume"; /* in the place of the six characters: a process finds the file of another one */
static const char SUFFIX[] = ".partial"; /* six characters alone could be a name that a user has given */

enum { RANDOM_BYTES = 6, SUFFIX_BYTES = sizeof(SUFFIX) - 1 };

/* Returns 0, or the cause for which it is not locked now. */
static int lock_file(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return fcntl(fd, F_OFD_SETLK, &whole) < 0 ? errno : 0;
}

/* Locks a file just created, where the file system has locks. Returns 0 where another process has taken it for one that
 * is left, and removes it. */
static int keep(int fd)
{
	struct stat about;
	int cause = lock_file(fd);
	return cause != EAGAIN && cause != EACCES && (fstat(fd, &about) < 0 || about.st_nlink > 0);
}

/* Returns a descriptor of the file, or -1 with errno. */
static int create(const char *path, char **name)
{
	for (;;) {
		if (asprintf(name, "%s.XXXXXX%s", path, SUFFIX) < 0) {
			*name = NULL;
			return -1;
		}
		int fd = mkostemps(*name, SUFFIX_BYTES, O_CLOEXEC);
		if (fd < 0 || keep(fd))
			return fd;
		close(fd);
		free(*name);
	}
}

static void forget(struct wlb_temporary *temporary)
{
	if (temporary->lock >= 0)
		close(temporary->lock);
	free(temporary->name);
	*temporary = (struct wlb_temporary){NULL, -1};
}

FILE *wlb_temporary_open(struct wlb_temporary *temporary, const char *path, struct wlb_error *error)
{
	int fd = create(path, &temporary->name);
	mode_t mask = umask(0);
	umask(mask);
	temporary->lock = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = temporary->lock < 0 || fchmod(fd, 0666 & ~mask) < 0 ? NULL : fdopen(fd, "w+");
	if (file != NULL)
		return file;
	wlb_fail(error, "%s: cannot be created: %s", path, strerror(errno));
	if (fd >= 0) {
		close(fd);
		unlink(temporary->name);
	}
	forget(temporary);
	return NULL;
}

/* Takes the file for this process, and cuts it. Returns the reason why not, or NULL. */
static const char *take_again(int fd, int64_t bytes)
{
	struct stat about;
	int cause = lock_file(fd);
	if (cause == EAGAIN || cause == EACCES)
		return "another build has this prefix: wait for its end, or give another prefix";
	if (fstat(fd, &about) < 0)
		return strerror(errno);
	if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || about.st_nlink == 0)
		return "is not a file of this user";
	if (about.st_size < bytes)
		return "was cut";
	return ftruncate(fd, bytes) < 0 || lseek(fd, 0, SEEK_END) < 0 ? strerror(errno) : NULL;
}

FILE *wlb_temporary_open_again(struct wlb_temporary *temporary, const char *path, int64_t bytes,
                               struct wlb_error *error)
{
	temporary->lock = -1;
	if (asprintf(&temporary->name, "%s.%s%s", path, AGAIN, SUFFIX) < 0) {
		temporary->name = NULL;
		wlb_fail(error, "%s: out of memory", path);
		return NULL;
	}
	int fd = open(temporary->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
	const char *why = fd < 0 ? strerror(errno) : take_again(fd, bytes);
	FILE *file = NULL;
	if (why == NULL) {
		temporary->lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		file = temporary->lock < 0 ? NULL : fdopen(fd, "r+");
		why = strerror(errno);
	}
	if (file != NULL)
		return file;
	wlb_fail(error, "%s: cannot be opened: %s", temporary->name, why);
	if (fd >= 0)
		close(fd);
	forget(temporary);
	return NULL;
}

void wlb_temporary_leave(struct wlb_temporary *temporary)
{
	if (temporary->name != NULL)
		forget(temporary);
}

int wlb_temporary_rename(struct wlb_temporary *temporary, const char *path, struct wlb_error *error)
{
	if (rename(temporary->name, path) < 0)
		return wlb_fail(error, "%s: cannot be replaced: %s", path, strerror(errno));
	forget(temporary);
	return 0;
}

void wlb_temporary_remove(struct wlb_temporary *temporary)
{
	if (temporary->name == NULL)
		return;
	unlink(temporary->name);
	forget(temporary);
}

/* Returns 1 for the name of a temporary file of `file`. */
static int is_temporary(const char *name, const char *file)
{
	size_t bytes = strlen(file);
	if (strlen(name) != bytes + 1 + RANDOM_BYTES + SUFFIX_BYTES || strncmp(name, file, bytes) != 0 ||
	    name[bytes] != '.' || strcmp(name + bytes + 1 + RANDOM_BYTES, SUFFIX) != 0)
		return 0;
	for (int i = 1; i <= RANDOM_BYTES; i++)
		if (!isalnum((unsigned char)name[bytes + (size_t)i]))
			return 0;
	return 1;
}

static void remove_unlocked(int folder, const char *name)
{
	struct stat about;
	int fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() && lock_file(fd) == 0)
		unlinkat(folder, name, 0);
	close(fd);
}

void wlb_temporary_remove_left(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *file = slash == NULL ? path : slash + 1;
	char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(file - path));
	DIR *entries = folder == NULL ? NULL : opendir(folder);
	free(folder);
	if (entries == NULL)
		return;
	for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
		if (is_temporary(entry->d_name, file))
			remove_unlocked(dirfd(entries), entry->d_name);
	closedir(entries);
}
