#include "coordinator/wlb/delivery/folder_lock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/own_file.h"

struct path {
	char text[PATH_MAX + 16];
};

static struct path path_of(const char *dir, const struct wlb_folder_lock *lock)
{
	struct path path;
	snprintf(path.text, sizeof(path.text), "%s/%s", dir, lock->is_last ? "flush.last" : "flush.lock");
	return path;
}

bool wlb_folder_lock(const char *dir, struct wlb_folder_lock *lock)
{
	struct stat about;
	int fd = wlb_own_file_open(path_of(dir, lock).text, O_RDWR | O_CREAT, NULL);
	if (fd < 0)
		return true;
	bool is_locked = wlb_own_file_lock(fd, 0);
	/* One that was removed meanwhile locks nothing. */
	if (is_locked && fstat(fd, &about) == 0 && about.st_nlink > 0) {
		lock->fd = fd;
		lock->asked = about.st_mtim;
		return true;
	}
	if (!is_locked && lock->is_last)
		futimens(fd, NULL);
	close(fd);
	return false;
}

bool wlb_folder_lock_is_asked(struct wlb_folder_lock *lock)
{
	struct stat about;
	if (lock->fd < 0 || fstat(lock->fd, &about) != 0 ||
	    (about.st_mtim.tv_sec == lock->asked.tv_sec && about.st_mtim.tv_nsec == lock->asked.tv_nsec))
		return false;
	lock->asked = about.st_mtim;
	return true;
}

void wlb_folder_unlock(const char *dir, struct wlb_folder_lock *lock)
{
	if (lock->fd < 0)
		return;
	unlink(path_of(dir, lock).text);
	close(lock->fd);
	lock->fd = -1;
}
