/*
 * The hook of Python (python/hook/sitecustomize.py) in the ranks of an attempt: it tells of the steps of a trainer that
 * says nothing. It is in the first task of one node, and in what this task starts, and appends to a file on that node,
 * so that no network file system makes a rank wait. The plugin sets PYTHONPATH there.
 *
 * The node is that of `wlb run`, if the attempt has it. Else it is the attempt's first one, whose agent copies the file
 * into the run's folder (coordinator/agent/hook_copy.h).
 */
#ifndef COORDINATOR_WLB_RUN_FOLLOW_HOOK_H
#define COORDINATOR_WLB_RUN_FOLLOW_HOOK_H

#include <limits.h>
#include <stdbool.h>

#include "coordinator/wlb/run/state/state.h"

/* How old the newest line in a copy may be. */
enum { WLB_RUN_HOOK_COPY_LATE_MS = 500 };

struct wlb_run_hook {
	char folder[PATH_MAX]; /* of the hook's source */
	char file[PATH_MAX];   /* to which it appends, on `node` */
	const char *node;
	char copy[PATH_MAX]; /* in the run's folder; "": the node is that of `wlb run` */
};

/* Returns false where the attempt has no hook: it is turned off (--no-hook, or hook = no in wlb.conf), another account
 * than root and this one may change what is in its folder, or there is no folder for a copy. */
bool wlb_run_hook_find(const struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_run_hook *hook);

/* Writes the path of the copy of an attempt's file; "" where there is no folder, or the path is too long. */
void wlb_run_hook_copy(const struct wlb_run_job *job, const char *attempt_id, char path[PATH_MAX]);

/* Returns the path of the file that `wlb run` reads. */
const char *wlb_run_hook_read_from(const struct wlb_run_hook *hook);

/* Makes the file. Returns false where it cannot: the attempt has no hook then. */
bool wlb_run_hook_file_make(const char *path);

/* Whether the file was made and has not been removed. */
bool wlb_run_hook_file_is_there(const char *path);

#endif
