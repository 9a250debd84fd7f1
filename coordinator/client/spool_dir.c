#include "coordinator/client/spool_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"

enum { WHY_BYTES = 160, OTHERS_MAY_WRITE = S_IWGRP | S_IWOTH };

/* What a directory is to the effective user. */
enum state { OWN, MISSING, NOT_OWN, UNKNOWN };

/* ---- names --------------------------------------------------------------------------------------------------------
 */

static bool is_set(const char *text)
{
	return text != NULL && text[0] != '\0';
}

int wlb_spool_dir_names(const char *named, const char *submitted, uid_t owner, char names[WLB_SPOOL_DIRS][PATH_MAX])
{
	const char *base = is_set(named) ? named : submitted;
	if (!is_set(base) || snprintf(names[0], PATH_MAX, "%s%s", base, is_set(named) ? "" : "/.wlb") >= PATH_MAX ||
	    snprintf(names[1], PATH_MAX, "%s/.wlb-%u", base, (unsigned)owner) >= PATH_MAX)
		return 0;
	return WLB_SPOOL_DIRS;
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return is_set(value) ? value : NULL;
}

/* Sets absolute paths. */
static int find_names(const char *named, char names[WLB_SPOOL_DIRS][PATH_MAX], bool *is_named, struct wlb_error *error)
{
	char here[PATH_MAX], whole[2 * PATH_MAX];
	if (!is_set(named))
		named = setting("WLB_SPOOL_DIR");
	const char *base = named != NULL ? named : setting("SLURM_SUBMIT_DIR");
	*is_named = named != NULL;
	if ((base == NULL || base[0] != '/') && getcwd(here, sizeof(here)) == NULL)
		return wlb_fail(error, "the current directory cannot be named: %s", strerror(errno));
	if (base == NULL)
		snprintf(whole, sizeof(whole), "%s", here);
	else
		snprintf(whole, sizeof(whole), "%s%s%s", base[0] == '/' ? "" : here, base[0] == '/' ? "" : "/", base);
	if (wlb_spool_dir_names(*is_named ? whole : NULL, whole, geteuid(), names) == 0)
		return wlb_fail(error, "spool directory '%.80s...': the path is too long", whole);
	return 0;
}

/* ---- one directory ------------------------------------------------------------------------------------------------
 */

/* Writes NAME (UID), or the number alone where it has no name. */
static void name_user(uid_t uid, char text[64])
{
	char buffer[1024];
	struct passwd user, *found = NULL;
	if (getpwuid_r(uid, &user, buffer, sizeof(buffer), &found) == 0 && found != NULL)
		snprintf(text, 64, "%.40s (%u)", found->pw_name, (unsigned)uid);
	else
		snprintf(text, 64, "user %u", (unsigned)uid);
}

/* The directory exists and is kept from this user: another directory is needed. */
static enum state fail_to_examine(char why[WHY_BYTES])
{
	int cause = errno;
	snprintf(why, WHY_BYTES, "cannot be examined: %s", strerror(cause));
	return cause == EACCES || cause == EPERM || cause == ELOOP ? NOT_OWN : UNKNOWN;
}

/* Takes from others what they may do with a directory of the effective user. A file system without modes keeps none. */
static void close_to_others(int dir, struct stat *about)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fchmod(fd, about->st_mode & (S_ISVTX | S_ISGID | S_IRWXU)) == 0)
		fstat(fd, about);
	close(fd);
}

/* Says what the directory is; `why` is why it is not OWN. O_PATH: one that cannot be read has an owner, too. */
static enum state examine(const char *path, bool is_named, char why[WHY_BYTES])
{
	struct stat about;
	char owner[64];
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | (is_named ? 0 : O_NOFOLLOW));
	if (fd < 0 && errno == ENOENT) {
		snprintf(why, WHY_BYTES, "is missing");
		return MISSING;
	}
	if (fd < 0 && errno == ENOTDIR) {
		snprintf(why, WHY_BYTES, "is no directory%s", is_named ? "" : ", or a link to one");
		return NOT_OWN;
	}
	if (fd < 0)
		return fail_to_examine(why);
	if (fstat(fd, &about) != 0) {
		enum state state = fail_to_examine(why);
		close(fd);
		return state;
	}
	if (about.st_uid == geteuid() && (about.st_mode & OTHERS_MAY_WRITE) != 0 && !is_named)
		close_to_others(fd, &about);
	close(fd);
	name_user(about.st_uid, owner);
	if (about.st_uid != geteuid())
		snprintf(why, WHY_BYTES, "belongs to %s", owner);
	else
		snprintf(why, WHY_BYTES, "others may write to it (mode %04o)", about.st_mode & 07777);
	return about.st_uid == geteuid() && (about.st_mode & OTHERS_MAY_WRITE) == 0 ? OWN : NOT_OWN;
}

/* As examine(), but makes a missing directory. A directory that cannot be made, as in a submit directory to which this
 * user may not write, does not end the run: the records that are lost by it are reported later. */
static enum state make(const char *path, bool is_named, char why[WHY_BYTES])
{
	enum state state = examine(path, is_named, why);
	if (state != MISSING)
		return state;
	if (wlb_dir_make(path, 0700, NULL) == 0)
		return examine(path, is_named, why);
	snprintf(why, WHY_BYTES, "cannot be made: %s", strerror(errno));
	return UNKNOWN;
}

/* ---- the directory of a job ---------------------------------------------------------------------------------------
 */

static int refuse(const char *what, struct wlb_error *error)
{
	char user[64];
	name_user(geteuid(), user);
	return wlb_fail(error,
	                "%s; the files of a job are kept in a directory of its owner, %s, to which nobody else can "
	                "write: name one with WLB_SPOOL_DIR or `wlb run --spool-dir`, on a file system that keeps "
	                "owners and modes",
	                what, user);
}

/* An existing directory is preferred to a new one: a job that starts again finds its files. */
static int choose(char names[WLB_SPOOL_DIRS][PATH_MAX], bool is_named, char why[WLB_SPOOL_DIRS][WHY_BYTES])
{
	enum state states[WLB_SPOOL_DIRS];
	for (int i = 0; i < WLB_SPOOL_DIRS; i++)
		if ((states[i] = examine(names[i], is_named && i == 0, why[i])) == OWN)
			return i;
	for (int i = 0; i < WLB_SPOOL_DIRS; i++) {
		if (states[i] == MISSING)
			states[i] = make(names[i], is_named && i == 0, why[i]);
		if (states[i] != NOT_OWN)
			return i;
	}
	return -1;
}

int wlb_spool_dir_choose(const char *named, char dir[PATH_MAX], struct wlb_error *error)
{
	char names[WLB_SPOOL_DIRS][PATH_MAX], why[WLB_SPOOL_DIRS][WHY_BYTES], what[900];
	bool is_named;
	if (find_names(named, names, &is_named, error) != 0)
		return -1;
	memcpy(dir, names[0], PATH_MAX); /* for the caller to name while the file system does not answer */
	int chosen = choose(names, is_named, why);
	if (chosen < 0) {
		snprintf(what, sizeof(what), "directory %.200s: %s; directory %.200s: %s", names[0], why[0], names[1],
		         why[1]);
		return refuse(what, error);
	}
	memcpy(dir, names[chosen], PATH_MAX);
	return 0;
}
