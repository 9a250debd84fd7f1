#include "coordinator/wlb/run/other_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/own_file.h"

enum { PATH_BYTES = PATH_MAX + 32 };

/* Locks of the open file, which a look at them leaves as they are: flock() cannot look without taking. */
static struct flock whole_file(short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

int wlb_run_others_open(const char *spool_dir, uint32_t job_id, struct wlb_error *error)
{
	char path[PATH_BYTES];
	struct flock lock = whole_file(F_RDLCK);
	snprintf(path, sizeof(path), "%s/%" PRIu32 ".running", spool_dir, job_id);
	int fd = wlb_own_file_open(path, O_RDWR | O_CREAT, error);
	if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return fd;
	wlb_fail(error, "file %s: cannot be locked: %s", path, strerror(errno));
	close(fd);
	return -1;
}

bool wlb_run_others_work(int fd)
{
	struct flock lock = whole_file(F_WRLCK);
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void wlb_run_others_leave(int fd)
{
	struct flock lock = whole_file(F_UNLCK);
	if (fd >= 0)
		fcntl(fd, F_OFD_SETLK, &lock);
}
