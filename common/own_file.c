#include "common/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"

enum { LOCK_PAUSE_MS = 10 };

/* A file without a name has been removed meanwhile. */
static bool is_own(int fd, bool is_written)
{
	struct stat about;
	return fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
	       (about.st_nlink <= 1 || !is_written);
}

int wlb_own_file_open(const char *path, int flags, struct wlb_error *error)
{
	/* Without O_NONBLOCK, opening a FIFO waits for another process. */
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd >= 0 && is_own(fd, (flags & O_CREAT) != 0))
		return fd;
	int why = fd < 0 ? errno : EINVAL;
	if (fd < 0)
		wlb_fail(error, "file %s: cannot be opened: %s", path, strerror(why));
	else
		wlb_fail(error,
		         "file %s: must be a regular file of user %u, who keeps it, without another hard link: move it "
		         "away",
		         path, (unsigned)geteuid());
	if (fd >= 0)
		close(fd);
	errno = why;
	return -1;
}

bool wlb_own_file_lock(int fd, int limit_ms)
{
	int64_t until_ms = wlb_clock_ms() + limit_ms;
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK)
			return true;
		if (wlb_clock_left_ms(until_ms) == 0)
			return false;
		wlb_clock_sleep_ms(LOCK_PAUSE_MS);
	}
	return true;
}
