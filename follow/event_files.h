/*
 * Follows all event files of TensorBoard below a folder: `--follow-tensorboard DIR`, or the folder that the command
 * names. A file is one whose name has "tfevents" in it, as TensorBoard itself decides. Writers make new ones while they
 * run; each is read while it grows.
 *
 * Names begin with the folder of the file where they would be taken for others: where a folder above it has event files
 * too (torch's add_scalars and add_hparams), its path from there; else train, validation, val, eval and test (Keras).
 *
 * Bounds: folders WLB_EVENT_DEPTH_MOST deep, entries WLB_EVENT_ENTRIES_MOST looked at in one search, files
 * WLB_EVENT_FILES_MOST followed (how many more there are is said), and WLB_EVENT_POLL_BYTES read in one poll. Symbolic
 * links are followed for the folder itself and not below it.
 *
 * The caller, one process of the run's user on the node of the job's script, searches each 10 s and polls each second,
 * on a thread on which nothing waits: the folder may be on a file system that hangs. It keeps the place of each file
 * with the records, and restores it after a restart.
 */
#ifndef FOLLOW_EVENT_FILES_H
#define FOLLOW_EVENT_FILES_H

#include <stdbool.h>

#include "follow/event_folder.h"
#include "follow/followed.h"
#include "follow/tail.h"
#include "libwlb/wlb.h"

enum {
	WLB_EVENT_FILES_MOST = 256,
	WLB_EVENT_POLL_BYTES = 4 << 20,
	/* Bytes that are damaged may be ones that another node has not sent yet. After this time they are passed over.
	 */
	WLB_EVENT_PATIENCE_S = 60,
};

struct wlb_event_files;

struct wlb_event_counts {
	int files;
	int files_left_out;     /* in the last search */
	int64_t damaged;        /* records that were passed over */
	int64_t ended_files;    /* that are not read on, since a damaged length hides what follows */
	int64_t unread_folders; /* in the last search: without permission, or removed meanwhile */
};

/* NULL if out of memory. The folder need not exist yet. The caller closes it. */
struct wlb_event_files *wlb_event_files_open(const char *folder, struct wlb_error *error);
void wlb_event_files_close(struct wlb_event_files *files); /* NULL allowed */

/* Files whose last change is before that time are those of earlier runs, and are left alone. */
void wlb_event_files_search(struct wlb_event_files *files, double since_s);

/* Begins a poll: allows WLB_EVENT_POLL_BYTES again, from the file on at which the last poll ended. */
void wlb_event_files_poll(struct wlb_event_files *files);

/* The next event that has scalars, with its time and step, or false: nothing more in this poll. `now_s` is any clock in
 * seconds. *file is the number of its file; record->at is where the event begins in it. */
bool wlb_event_files_next(struct wlb_event_files *files, double now_s, struct wlb_followed *record, int *file);

/* Numbers of files are in the order in which they were found. The name is the path below the folder. */
struct wlb_event_counts wlb_event_files_counts(const struct wlb_event_files *files);
const char *wlb_event_files_name(const struct wlb_event_files *files, int file);

/* The place behind the last event that was returned or passed over. */
struct wlb_tail_place wlb_event_files_place(const struct wlb_event_files *files, int file);

/* Takes up a file at its kept place, before the first search. Returns -1 where there are too many. */
int wlb_event_files_restore(struct wlb_event_files *files, const char *name, const struct wlb_tail_place *place);

#endif
