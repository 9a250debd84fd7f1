#include "worker/checkpoint/cli/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/command.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/manifest.h"

int64_t wlb_target_step(const char *path)
{
	size_t end = strlen(path);
	while (end > 0 && path[end - 1] == '/')
		end--;
	size_t begin = end;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	char name[NAME_MAX + 1];
	snprintf(name, sizeof(name), "%.*s", (int)(end - begin), path + begin);
	return wlb_folder_step(name);
}

bool wlb_target_is_checkpoint(const char *path)
{
	char manifest[PATH_MAX];
	if (wlb_target_step(path) >= 0)
		return true;
	int length = snprintf(manifest, sizeof(manifest), "%s/" WLB_MANIFEST_NAME, path);
	return length < (int)sizeof(manifest) && access(manifest, F_OK) == 0;
}

int wlb_target_check(const char *path, struct wlb_error *error)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return wlb_fail(error, "%s: %s", path, strerror(errno));
	return S_ISDIR(st.st_mode) ? 0 : wlb_fail(error, "%s: is no directory: name that of the checkpoints", path);
}

int wlb_target_check_parent(const char *path, struct wlb_error *error)
{
	if (wlb_target_check(path, error) < 0)
		return -1;
	if (wlb_target_is_checkpoint(path))
		return wlb_fail(error, "%s: is a checkpoint itself: name the directory that it is in", path);
	return 0;
}

int wlb_target_choose(const char *named, char path[4096], struct wlb_error *error)
{
	if (wlb_target_check(named, error) < 0)
		return WLB_EXIT_USAGE;
	if (wlb_target_is_checkpoint(named)) {
		snprintf(path, 4096, "%s", named);
		return WLB_EXIT_DONE;
	}
	int found = wlb_checkpoint_newest(named, path, error);
	if (found > 0)
		return WLB_EXIT_DONE;
	if (found < 0)
		return WLB_EXIT_FAILED;
	wlb_fail(error, "%s: has no checkpoints", named);
	return WLB_EXIT_USAGE;
}
