#include "spank/near_copies.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "spank/user_process.h"

#define PLACE "/dev/shm/"

enum { WAIT_MS = 10000, ROUND_MS = 10, OPEN_FOLDERS = 8 };

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *at)
{
	(void)about;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

/* No link in it is followed. */
static void remove_folder(const char *path)
{
	struct stat about;
	if (lstat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid())
		nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

/* A link leads to a folder of the same name, or to nothing that is removed. */
static void remove_place(const char *path)
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	if (length < 0) {
		remove_folder(path);
		return;
	}
	target[length] = '\0';
	const char *name = strrchr(target, '/');
	if (target[0] == '/' && strcmp(name + 1, path + strlen(PLACE)) == 0)
		remove_folder(target);
	unlink(path);
}

/* Runs in the child. A user directory may be slow to answer, and so may a disk. */
static _Noreturn void run(uid_t uid, const char *path)
{
	setsid();
	wlb_user_process_detach();
	const struct passwd *user = getpwuid(uid);
	if (user != NULL && wlb_user_process_become(user) == 0)
		remove_place(path);
	_exit(0);
}

/* What has left the session of the epilog by then goes on. */
static void await(pid_t child)
{
	const struct timespec round = {.tv_nsec = ROUND_MS * 1000000L};
	for (int waited_ms = 0; waited_ms < WAIT_MS && waitpid(child, NULL, WNOHANG) == 0; waited_ms += ROUND_MS)
		nanosleep(&round, NULL);
}

void wlb_near_copies_remove(spank_t sp)
{
	char path[sizeof(PLACE) + 512];
	struct stat about;
	uint32_t job_id = 0;
	uid_t uid = 0;
	const char *node = getenv("SLURMD_NODENAME");
	if (spank_get_item(sp, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS || node == NULL)
		return;
	/* What another user has put there stays. */
	if (snprintf(path, sizeof(path), PLACE "wlb-%" PRIu32 "-%s", job_id, node) >= (int)sizeof(path) ||
	    lstat(path, &about) < 0 || about.st_uid != uid)
		return;
	pid_t child = fork();
	if (child == 0)
		run(uid, path);
	if (child > 0)
		await(child);
	else
		slurm_error("wlb: %s stays: fork: %s", path, strerror(errno));
}
