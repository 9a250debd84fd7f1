#include "worker/checkpoint/save_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/seconds.h"
#include "common/show.h"
#include "worker/data/file_progress.h"

static const long TRY_EVERY_NS = 200000000;
static const double TELL_AFTER_S = 2.0;

/* Returns 0 where the file is locked now; EWOULDBLOCK where another process has it; else the cause for which it cannot
 * be locked. */
static int lock_file(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat about;
	if (fcntl(fd, F_OFD_SETLK, &whole) < 0)
		return errno == EACCES || errno == EAGAIN || errno == ESTALE ? EWOULDBLOCK : errno;
	/* One that its owner has removed meanwhile locks nothing; on NFS it is stale. */
	return fstat(fd, &about) < 0 || about.st_nlink == 0 ? EWOULDBLOCK : 0;
}

/* As lock_file. */
static int try_lock(struct wlb_save_lock *lock)
{
	wlb_file_report("locking", lock->path);
	int fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd < 0)
		return errno;
	int cause = lock_file(fd);
	if (cause != 0) {
		close(fd);
		return cause;
	}
	lock->fd = fd;
	/* Only a message depends on the text. */
	if (ftruncate(fd, 0) == 0)
		dprintf(fd, "%s\n", lock->owner);
	return 0;
}

/* Reads who has the lock. */
static void read_owner(const struct wlb_save_lock *lock, char *owner, size_t size)
{
	int fd = open(lock->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t length = fd >= 0 ? read(fd, owner, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	owner[length > 0 ? length : 0] = '\0';
	owner[strcspn(owner, "\n")] = '\0';
	if (owner[0] == '\0')
		snprintf(owner, size, "a process that has not named itself yet");
}

/* Returns 1 where `owner` is another attempt of the run, which is over. */
static int is_former(const struct wlb_save_claim *claim, const char *owner)
{
	char of_run[256];
	if (!claim->follows || claim->run == NULL)
		return 0;
	snprintf(of_run, sizeof(of_run), "run %s on ", claim->run);
	return strncmp(owner, of_run, strlen(of_run)) == 0;
}

/* Decides about a lock that `owner` has had since the wait began. Returns 1 where the caller waits on; else what
 * wlb_save_lock_take returns. */
static int judge(const char *dir, const struct wlb_save_claim *claim, const char *owner, double waited_s,
                 struct wlb_error *error)
{
	int former = is_former(claim, owner);
	if (waited_s < (former ? claim->former_s : claim->other_s))
		return 1;
	if (!former)
		return wlb_fail(error,
		                "--save %.500s: %s saves into it; end that run or give another directory. Where it "
		                "has ended and its node is lost, remove %.500s/.lock",
		                dir, owner, dir);
	wlb_show_line(stderr, "wlb-worker: %s/.lock: %s, an attempt of this run that is over, still has it: going on",
	              dir, owner);
	return 0;
}

/* Sets the path of the file of a lock that is not held, and what it says once `who` has locked it. */
static int name_lock(struct wlb_save_lock *lock, const char *dir, const char *who, const char *node,
                     struct wlb_error *error)
{
	*lock = WLB_SAVE_UNLOCKED;
	if (snprintf(lock->path, sizeof(lock->path), "%s/.lock", dir) >= (int)sizeof(lock->path))
		return wlb_fail(error, "%.100s...: the path of the checkpoints is longer than 4,000 bytes", dir);
	snprintf(lock->owner, sizeof(lock->owner), "%.100s on %.200s, process %d", who, node, (int)getpid());
	return 0;
}

int wlb_save_lock_take(struct wlb_save_lock *lock, const char *dir, const struct wlb_save_claim *claim,
                       struct wlb_error *error)
{
	double began_s = wlb_now_s();
	int is_told = 0;
	char who[128];
	snprintf(who, sizeof(who), "%s%.100s", claim->run != NULL ? "run " : "a run without a name",
	         claim->run != NULL ? claim->run : "");
	if (name_lock(lock, dir, who, claim->node, error) < 0)
		return -1;
	for (;;) {
		char owner[512];
		int cause = try_lock(lock);
		if (cause == 0)
			return 0;
		if (cause != EWOULDBLOCK) {
			wlb_show_line(
				stderr,
				"wlb-worker: %s: cannot be locked: %s: see to it that no other run saves into its "
				"directory",
				lock->path, strerror(cause));
			return 0;
		}
		read_owner(lock, owner, sizeof(owner));
		double waited_s = wlb_now_s() - began_s;
		int rc = judge(dir, claim, owner, waited_s, error);
		if (rc <= 0)
			return rc;
		if (!is_told && waited_s > TELL_AFTER_S) {
			is_told = 1;
			wlb_show_line(stderr, "wlb-worker: %s: waiting: %s saves into its directory", lock->path,
			              owner);
		}
		nanosleep(&(struct timespec){.tv_nsec = TRY_EVERY_NS}, NULL);
	}
}

int wlb_save_lock_try(struct wlb_save_lock *lock, const char *dir, const char *program, const char *node,
                      char owner[512])
{
	if (name_lock(lock, dir, program, node, NULL) < 0)
		return ENAMETOOLONG;
	int cause = try_lock(lock);
	if (cause == EWOULDBLOCK)
		read_owner(lock, owner, 512);
	return cause;
}

int wlb_save_lock_find_owner(const char *dir, char owner[512])
{
	struct wlb_save_lock lock;
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (name_lock(&lock, dir, "", "", NULL) < 0)
		return 0;
	int fd = open(lock.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return 0;
	int is_locked = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
	close(fd);
	if (is_locked)
		read_owner(&lock, owner, 512);
	return is_locked;
}

int wlb_save_lock_is_held(struct wlb_save_lock *lock)
{
	struct stat about;
	wlb_file_report("locking", lock->path);
	if (lock->fd >= 0 && fstat(lock->fd, &about) == 0 && about.st_nlink == 0) {
		close(lock->fd);
		lock->fd = -1;
	}
	return lock->fd >= 0 || try_lock(lock) == 0;
}

void wlb_save_lock_release(struct wlb_save_lock *lock)
{
	if (lock->fd < 0)
		return;
	wlb_file_report("removing", lock->path);
	unlink(lock->path);
	close(lock->fd);
	wlb_file_report_end();
	lock->fd = -1;
}
