/* wlb ckpt prune */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/show.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/cli/commands.h"
#include "worker/checkpoint/cli/target.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/save_lock.h"

struct request {
	const char *dir;
	int keep;
	int64_t keep_every;
	bool dry_run;
};

/* Takes the lock of the directory, with --dry-run only looks at it. Returns -1 where a run has it. Where the file
 * system has no locks it goes on, as a run does. */
static int take_lock(const struct request *request, struct wlb_save_lock *lock, struct wlb_error *error)
{
	char node[HOST_NAME_MAX + 1] = "", owner[512];
	int cause;
	*lock = WLB_SAVE_UNLOCKED;
	gethostname(node, sizeof(node) - 1);
	if (request->dry_run)
		cause = wlb_save_lock_find_owner(request->dir, owner) ? EWOULDBLOCK : 0;
	else
		cause = wlb_save_lock_try(lock, request->dir, "wlb ckpt prune", node, owner);
	if (cause == EWOULDBLOCK)
		return wlb_fail(error,
		                "%.500s: %s saves into it: nothing is removed. --keep and --keep-every of a run remove "
		                "its old checkpoints",
		                request->dir, owner);
	if (cause != 0)
		wlb_show_line(stderr,
		              "wlb ckpt prune: %s/.lock: cannot be locked: %s: see to it that no run saves into its "
		              "directory",
		              request->dir, strerror(cause));
	return 0;
}

/* Lists the steps of complete checkpoints, newest first, and names those that are not. Returns their number, -1 where
 * there are others alone: which of them go cannot be known then. */
static int list_complete(const char *dir, int64_t **steps, struct wlb_error *error)
{
	int count = wlb_folder_steps(dir, steps, error), complete = 0;
	for (int i = 0; i < count; i++) {
		char path[4096];
		struct wlb_error why;
		int64_t step = (*steps)[i];
		if (wlb_folder_path(dir, step, WLB_FOLDER_FINAL, path, &why) == 0 &&
		    wlb_checkpoint_check(path, &why) == 0)
			(*steps)[complete++] = step;
		else
			wlb_show_line(stderr, "wlb ckpt prune: %s stays and does not count: %s", path, why.message);
	}
	if (count > 0 && complete == 0)
		return wlb_fail(error, "%s: none of its %d checkpoints is complete: nothing is removed", dir, count);
	return count < 0 ? -1 : complete;
}

/* Says what `rc` was of removing it. Returns an exit code. */
static int report(const struct request *request, const char *path, int rc, const struct wlb_error *why)
{
	if (rc < 0)
		wlb_show_line(stderr, "wlb ckpt prune: %s", why->message);
	else
		wlb_show_line(stdout, "%s %s", request->dry_run ? "would remove" : "removed", path);
	return rc < 0 ? WLB_EXIT_FAILED : WLB_EXIT_DONE;
}

static int remove_old(const struct request *request, const int64_t *old, int count)
{
	int code = WLB_EXIT_DONE;
	for (int i = 0; i < count; i++) {
		char path[4096];
		struct wlb_error why = {0};
		int rc = wlb_folder_path(request->dir, old[i], WLB_FOLDER_FINAL, path, &why);
		if (rc == 0 && !request->dry_run)
			rc = wlb_checkpoint_remove(request->dir, old[i], &why);
		code |= report(request, path, rc, &why);
	}
	return code;
}

/* Removes the folders that killed writers left, as each save does. */
static int remove_hidden(const struct request *request, bool is_alone, struct wlb_error *error)
{
	const struct wlb_save_place place = {.dir = request->dir, .id = "prune", .is_alone = is_alone};
	struct dirent **list;
	int count = wlb_folder_list_hidden(request->dir, &list, error), code = WLB_EXIT_DONE;
	if (count < 0)
		return WLB_EXIT_FAILED;
	for (int i = 0; i < count; i++) {
		char path[4096 + NAME_MAX + 1];
		struct wlb_error why = {0};
		snprintf(path, sizeof(path), "%s/%s", request->dir, list[i]->d_name);
		if (wlb_folder_may_be_written(&place, list[i]->d_name))
			wlb_show_line(stderr, "wlb ckpt prune: %s stays: a run may be writing it", path);
		else
			code |= report(request, path, request->dry_run ? 0 : wlb_folder_remove(path, &why), &why);
	}
	wlb_folder_list_free(list, count);
	return code;
}

static int prune_locked(const struct request *request, bool is_alone, struct wlb_error *error)
{
	int64_t *steps;
	int count = list_complete(request->dir, &steps, error);
	int64_t newest = count > 0 ? steps[0] : -1;
	int old = wlb_checkpoint_select_old(steps, count, request->keep, request->keep_every);
	int code = count < 0 ? WLB_EXIT_FAILED : remove_old(request, steps, old);
	if (count >= 0)
		code |= remove_hidden(request, is_alone, error);
	if (count > 0)
		wlb_show_line(stdout, "%s: %s %d complete, the newest of step %lld", request->dir,
		              request->dry_run ? "would keep" : "kept", count - old, (long long)newest);
	else if (count == 0)
		wlb_show_line(stdout, "%s: has no checkpoints", request->dir);
	free(steps);
	return code;
}

static int prune(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct wlb_save_lock lock;
	if (wlb_target_check_parent(request->dir, error) < 0)
		return WLB_EXIT_USAGE;
	if (take_lock(request, &lock, error) < 0)
		return WLB_EXIT_FAILED;
	int code = prune_locked(request, request->dry_run || lock.fd >= 0, error);
	wlb_save_lock_release(&lock);
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(dir), "DIR", "the directory that --save of a run names"), .required = true},
	{WLB_OPTION(INT, "keep", FIELD(keep), "N", "newest complete checkpoints to keep"), .min = 1, .max = 1e6,
         .required = true},
	{WLB_OPTION(INT64, "keep-every", FIELD(keep_every), "N",
                    "keep also the checkpoints of multiples of step N; 0: none for that"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "0"},
	{WLB_OPTION(FLAG, "dry-run", FIELD(dry_run), NULL, "remove nothing, and print what would be removed")},
};

static const struct wlb_option_table table = {
	.command = "wlb ckpt prune",
	.about = "Removes old complete checkpoints, and folders that killed writers left, from a directory into which "
		 "no run saves. The newest complete checkpoint always stays, and so does one that is not complete.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_ckpt_prune = {
	.name = "prune",
	.summary = "Remove old checkpoints",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = prune,
};
