#include "coordinator/wlb/delivery/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	PATH_BYTES = PATH_MAX + 16,
	OTHER_MS = 10000, /* for another flush of the folder: longer than its pause between two rounds */
};

static int open_file(const char *dir, int flags)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/flush.lock", dir);
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

bool wlb_folder_lock(const char *dir, int64_t until_s, int *fd)
{
	struct stat about;
	*fd = open_file(dir, O_RDWR | O_CREAT);
	if (*fd < 0)
		return true;
	bool is_locked = flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
	/* One that was removed meanwhile locks nothing. */
	if (is_locked && fstat(*fd, &about) == 0 && about.st_nlink > 0) {
		if (ftruncate(*fd, 0) == 0)
			dprintf(*fd, "%" PRId64 "\n", until_s);
		return true;
	}
	close(*fd);
	*fd = -1;
	return false;
}

void wlb_folder_unlock(const char *dir, int *fd)
{
	char path[PATH_BYTES];
	if (*fd < 0)
		return;
	snprintf(path, sizeof(path), "%s/flush.lock", dir);
	unlink(path);
	close(*fd);
	*fd = -1;
}

/* Returns when the flush that has the lock ends; 0: it does not say. */
static int64_t read_until_s(const char *dir)
{
	char text[32] = "";
	int fd = open_file(dir, O_RDONLY);
	if (fd < 0)
		return 0;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	return length > 0 ? strtoll(text, NULL, 10) : 0;
}

bool wlb_folder_lock_is_left(const char *dir, const struct wlb_folder_waiter *waiter)
{
	if (waiter->waited_ms <= OTHER_MS)
		return false;
	return !waiter->is_last || read_until_s(dir) - time(NULL) >= waiter->wait_s / 2;
}
