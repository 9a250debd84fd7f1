#include "worker/checkpoint/near_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "libwlb/hash.h"
#include "worker/checkpoint/folder.h"
#include "worker/data/file_progress.h"

#define FIXED_PLACE "/dev/shm"

enum {
	NAMES_BYTES = 512, /* of all that is behind DIR in a path */
	SHARDS_MAX = 1 << 20,
};
static const int64_t STEPS_MAX = 1000000000000; /* the most of --train-iters; exact in a double, too */

/* ---- the job's folder -------------------------------------------------------------------------------------------- */

/* "wlb-JOB-NODE"; of processes without Slurm the user's. */
static int format_job(const char *node, char name[256], struct wlb_error *error)
{
	const char *job = getenv("SLURM_JOB_ID");
	int length = job != NULL && job[0] != '\0' && strchr(job, '/') == NULL
	                     ? snprintf(name, 256, "wlb-%s-%s", job, node)
	                     : snprintf(name, 256, "wlb-uid%u-%s", (unsigned)geteuid(), node);
	return length < 256 ? 0 : wlb_fail(error, "node %.60s...: its name is too long for that of a folder", node);
}

/* Makes a folder that nobody else may enter. What another user has put there is not used. */
static int make_private(const char *path, struct wlb_error *error)
{
	struct stat st;
	wlb_file_report("creating", path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return wlb_fail(error, "%s: cannot be created: %s", path, strerror(errno));
	if (lstat(path, &st) < 0)
		return wlb_fail(error, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return wlb_fail(error, "%s: it must be a folder of this user: have it removed, or choose another DIR",
		                path);
	if ((st.st_mode & 07777) != 0700 && chmod(path, 0700) < 0)
		return wlb_fail(error, "%s: cannot get mode 0700: %s", path, strerror(errno));
	return 0;
}

/* Makes the link by which the epilog finds a folder that is not in the fixed place. A link of this user that points
 * elsewhere is of an earlier DIR of the job. */
static int link_job(const char *job, const char *path, struct wlb_error *error)
{
	char fixed[512], real[PATH_MAX], target[PATH_MAX];
	struct stat here, there;
	snprintf(fixed, sizeof(fixed), FIXED_PLACE "/%s", job);
	if (realpath(path, real) == NULL)
		return wlb_fail(error, "%s: %s", path, strerror(errno));
	if (lstat(fixed, &there) == 0 && stat(path, &here) == 0 && here.st_dev == there.st_dev &&
	    here.st_ino == there.st_ino)
		return 0;
	for (int tries = 0; tries < 3; tries++) {
		ssize_t length = readlink(fixed, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		bool is_own = lstat(fixed, &there) == 0 && there.st_uid == geteuid();
		if ((is_own && strcmp(target, real) == 0) || symlink(real, fixed) == 0)
			return 0;
		if (is_own && length > 0)
			unlink(fixed);
	}
	return wlb_fail(error, "%s: cannot become a link to %s: %s: remove what is there", fixed, real,
	                strerror(errno));
}

/* The directory as the job names it, whichever the folder that it was started in. */
static int hash_directory(const char *save, uint64_t *hash, struct wlb_error *error)
{
	char here[PATH_MAX] = "";
	if (save[0] != '/' && getcwd(here, sizeof(here)) == NULL)
		return wlb_fail(error, "the current folder: %s", strerror(errno));
	*hash = wlb_hash_text(wlb_hash_text(wlb_hash_text(WLB_HASH_OF_NOTHING, here), save[0] == '/' ? "" : "/"), save);
	return 0;
}

int wlb_near_folder_open(const char *dir, const char *save, const char *node, char folder[4096],
                         struct wlb_error *error)
{
	char job[256];
	uint64_t hash;
	if (strlen(dir) > 4096 - NAMES_BYTES)
		return wlb_fail(error, "%.100s...: the path must be shorter than %d bytes", dir, 4096 - NAMES_BYTES);
	if (format_job(node, job, error) < 0 || hash_directory(save, &hash, error) < 0 ||
	    wlb_dir_make(dir, 0700, error) < 0)
		return -1;
	snprintf(folder, 4096, "%s/%s", dir, job);
	if (make_private(folder, error) < 0)
		return -1;
	if (link_job(job, folder, error) < 0) {
		rmdir(folder); /* the epilog would not find it */
		return -1;
	}
	snprintf(folder, 4096, "%s/%s/%016" PRIx64, dir, job, hash);
	return make_private(folder, error);
}

int wlb_near_folder_remove(const char *folder, struct wlb_error *error)
{
	char job[4096], fixed[512];
	struct stat st;
	if (wlb_folder_remove(folder, error) < 0)
		return -1;
	snprintf(job, sizeof(job), "%.*s", (int)(strrchr(folder, '/') - folder), folder);
	/* Another run of the job may have a folder there. */
	if (rmdir(job) < 0)
		return errno == ENOTEMPTY || errno == ENOENT
		               ? 0
		               : wlb_fail(error, "%s: cannot be removed: %s", job, strerror(errno));
	snprintf(fixed, sizeof(fixed), FIXED_PLACE "%.256s", strrchr(job, '/'));
	if (lstat(fixed, &st) == 0 && S_ISLNK(st.st_mode) && unlink(fixed) < 0)
		return wlb_fail(error, "%s: cannot be removed: %s", fixed, strerror(errno));
	return 0;
}

/* ---- the checkpoints of a folder --------------------------------------------------------------------------------- */

static void format_name(const struct wlb_near_name *name, char text[128])
{
	snprintf(text, 128, "step_%08lld.%d.%s", (long long)name->step, name->shards, name->id);
}

/* Parses step_00000060.8.ID, written as format_name does. */
static int parse_name(const char *text, struct wlb_near_name *name)
{
	char same[128];
	long long step;
	if (sscanf(text, "step_%13lld.%7d.%63s", &step, &name->shards, name->id) < 3 || step < 1 || step > STEPS_MAX ||
	    name->shards < 1 || name->shards > SHARDS_MAX)
		return -1;
	name->step = step;
	format_name(name, same);
	return strcmp(same, text) == 0 ? 0 : -1;
}

static int newest_first(const void *a, const void *b)
{
	const struct wlb_near_name *x = a, *y = b;
	if (x->step != y->step)
		return x->step > y->step ? -1 : 1;
	return strcmp(x->id, y->id);
}

/* Keeps the newest. */
static void insert(struct wlb_near_name names[WLB_NEAR_LISTED_MAX], int *count, const struct wlb_near_name *name)
{
	if (*count == WLB_NEAR_LISTED_MAX && names[WLB_NEAR_LISTED_MAX - 1].step >= name->step)
		return;
	names[*count < WLB_NEAR_LISTED_MAX ? (*count)++ : WLB_NEAR_LISTED_MAX - 1] = *name;
	qsort(names, (size_t)*count, sizeof(*names), newest_first);
}

int wlb_near_list(const char *folder, struct wlb_near_name names[WLB_NEAR_LISTED_MAX], struct wlb_error *error)
{
	int count = 0;
	struct dirent *entry;
	struct wlb_near_name name;
	wlb_file_report("reading", folder);
	DIR *dir = opendir(folder);
	if (dir == NULL)
		return wlb_fail(error, "%s: cannot be read: %s", folder, strerror(errno));
	while ((entry = readdir(dir)) != NULL)
		if (parse_name(entry->d_name, &name) == 0)
			insert(names, &count, &name);
	closedir(dir);
	return count;
}

int wlb_near_remove_others(const char *folder, const struct wlb_near_name *kept, struct wlb_error *error)
{
	char kept_name[128] = "";
	struct dirent *entry;
	int rc = 0;
	if (kept != NULL)
		format_name(kept, kept_name);
	wlb_file_report("reading", folder);
	DIR *dir = opendir(folder);
	if (dir == NULL)
		return wlb_fail(error, "%s: cannot be read: %s", folder, strerror(errno));
	while ((entry = readdir(dir)) != NULL) {
		char path[4096 + NAME_MAX + 2];
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (strcmp(entry->d_name, kept_name) != 0 && strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0 && wlb_folder_remove(path, rc == 0 ? error : NULL) < 0)
			rc = -1;
	}
	closedir(dir);
	return rc;
}

int wlb_near_remove(const char *folder, const struct wlb_near_name *name, struct wlb_error *error)
{
	char path[4096];
	wlb_near_path(folder, name, path);
	return wlb_folder_remove(path, error);
}

void wlb_near_path(const char *folder, const struct wlb_near_name *name, char path[4096])
{
	char text[128];
	format_name(name, text);
	snprintf(path, 4096, "%.3900s/%s", folder, text);
}
