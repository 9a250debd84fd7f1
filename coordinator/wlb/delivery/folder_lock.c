#include "coordinator/wlb/delivery/folder_lock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/own_file.h"

static const char of_flush[] = "flush.lock", of_next[] = "flush.next";

enum {
	PATH_BYTES = PATH_MAX + 16,
	OTHER_MS = 10000, /* for another flush of the folder: longer than its pause between two rounds */
};

static int open_file(const char *dir, const char *name, int flags)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return wlb_own_file_open(path, flags, NULL);
}

/* Returns false where another process has the lock; *fd is -1 then, and where the file cannot be made. */
static bool take(const char *dir, const char *name, int *fd)
{
	struct stat about;
	*fd = open_file(dir, name, O_RDWR | O_CREAT);
	if (*fd < 0)
		return true;
	/* One that was removed meanwhile locks nothing. */
	if (wlb_own_file_lock(*fd, 0) && fstat(*fd, &about) == 0 && about.st_nlink > 0)
		return true;
	close(*fd);
	*fd = -1;
	return false;
}

static void leave(const char *dir, const char *name, int *fd)
{
	char path[PATH_BYTES];
	if (*fd < 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
	close(*fd);
	*fd = -1;
}

bool wlb_folder_lock(const char *dir, int64_t until_s, struct wlb_folder_lock *lock)
{
	if (!take(dir, of_flush, &lock->fd))
		return false;
	wlb_folder_lock_set_until(lock, until_s);
	leave(dir, of_next, &lock->next_fd);
	return true;
}

void wlb_folder_lock_set_until(const struct wlb_folder_lock *lock, int64_t until_s)
{
	if (lock->fd >= 0 && lseek(lock->fd, 0, SEEK_SET) == 0 && ftruncate(lock->fd, 0) == 0)
		dprintf(lock->fd, "%" PRId64 "\n", until_s);
}

void wlb_folder_unlock(const char *dir, struct wlb_folder_lock *lock)
{
	leave(dir, of_next, &lock->next_fd);
	leave(dir, of_flush, &lock->fd);
}

/* Returns when the flush that has the lock ends; 0: it does not say. */
static int64_t read_until_s(const char *dir)
{
	char text[32] = "";
	int fd = open_file(dir, of_flush, O_RDONLY);
	if (fd < 0)
		return 0;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	return length > 0 ? strtoll(text, NULL, 10) : 0;
}

bool wlb_folder_lock_is_left(const char *dir, const struct wlb_folder_waiter *waiter, struct wlb_folder_lock *lock)
{
	if (waiter->waited_ms <= OTHER_MS)
		return false;
	if (!waiter->is_last || read_until_s(dir) - time(NULL) >= waiter->wait_s / 2)
		return true;
	return lock->next_fd < 0 && !take(dir, of_next, &lock->next_fd);
}
