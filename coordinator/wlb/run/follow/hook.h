/*
 * The hook of Python (python/hook/sitecustomize.py) in the ranks of an attempt: it tells of the steps of a trainer that
 * says nothing. It is in the first task of the node that `wlb run` is on, and in what this task starts, and appends to
 * a file on that node, so that no network file system makes a rank wait. The plugin sets PYTHONPATH there.
 */
#ifndef COORDINATOR_WLB_RUN_FOLLOW_HOOK_H
#define COORDINATOR_WLB_RUN_FOLLOW_HOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/wlb/run/state/state.h"

/* Finds the folder of the hook: false where it is turned off (--no-hook, or hook = no in wlb.conf), or where another
 * account than root and this one may change what is in it. */
bool wlb_run_hook_folder(const struct wlb_run *run, char *folder, size_t size);

/* Writes the path of the file of an attempt. */
void wlb_run_hook_file(const char *attempt_id, char *path, size_t size);

/* Makes the file. Returns false where it cannot: the attempt has no hook then. */
bool wlb_run_hook_file_make(const char *path);

/* Whether the file was made and has not been removed. */
bool wlb_run_hook_file_is_there(const char *path);

#endif
