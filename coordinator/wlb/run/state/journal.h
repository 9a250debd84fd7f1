/*
 * What `wlb run` keeps of its job for the job's next start, which starts another `wlb run`, and for the other `wlb run`
 * of a script: the file JOB.json in the spool directory.
 *
 *     {"submit_time":1790000000, "restart_count":1, "highest":2,    the present start of the job; numbers in use in it
 *      "tasks_per_node":8, "first_nodes":4,                         of the job's first start
 *      "runs":[{"key":"command 8a3f...", "is_used":true,            of number 1 (run_identity.h), and so on
 *               "growths_without_nodes":1, "nodes_before":3,        --wlb-grow, grow.h
 *               "held_tp":2, "held_cp":1, "held_pp":2, "held_interleave":1,   wlb run --for
 *               "save_before_s":7.5, "save_block_s":6.1, "save_count":2, "step_s":1.5}]}   time_limit.h
 *
 * All members may be missing. A process locks the first byte while it changes the file, and each `wlb run` the byte of
 * its number while it works. The locks are of the open file (F_OFD_SETLK), which a look at them leaves as they are, and
 * the kernel releases them when the process ends.
 */
#ifndef COORDINATOR_WLB_RUN_STATE_JOURNAL_H
#define COORDINATOR_WLB_RUN_STATE_JOURNAL_H

#include <stdbool.h>

#include <jansson.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

enum {
	WLB_RUN_JOURNAL_RUNS_MAX = 1024, /* runs of a job that are kept */
	WLB_RUN_JOURNAL_NO_ENTRY,        /* the number of a run of which nothing is kept */
};

/* The key of a number that a run with another journal has, in each start of the job. */
#define WLB_RUN_JOURNAL_ELSEWHERE "elsewhere"

/* Opens or makes the journal of run->job. Returns -1 with the reason and the remedy where that fails: nothing is kept
 * then, and the functions below do and find nothing. wlb_run_journal_close() takes it in any case. */
int wlb_run_journal_open(struct wlb_run *run, struct wlb_error *error);
void wlb_run_journal_close(struct wlb_run *run);

/* Locks the journal and returns its content, without what belongs to earlier starts of the job alone: {} where the file
 * is empty, damaged or of an earlier job with the same id. Returns NULL with the reason where it is not open, cannot be
 * read, or another process has the lock for seconds; one that keeps it is waited for once. The caller gives the content
 * to one of the two functions that follow. */
json_t *wlb_run_journal_begin(struct wlb_run *run, struct wlb_error *error);
/* Writes the content and unlocks the journal. On -1 the old content is unchanged. */
int wlb_run_journal_end(struct wlb_run *run, json_t *content, struct wlb_error *error);
/* Unlocks the journal and leaves it as it is. */
void wlb_run_journal_release(struct wlb_run *run, json_t *content);

/* Returns -1 with the cause, what follows from it for the run, and the remedy. */
int wlb_run_journal_fail(const struct wlb_error *cause, struct wlb_error *error);

/* Says that this run works, and has that number. Returns -1 with the reason where the file system has no locks: other
 * runs do not know of it then. */
int wlb_run_journal_work_as(struct wlb_run *run, int number, struct wlb_error *error);
/* Whether another run that has that number works. */
bool wlb_run_journal_works(const struct wlb_run *run, int number);
/* Whether any other run of the job works, as where a script has `wlb run A & wlb run B & wait`. */
bool wlb_run_journal_others_work(const struct wlb_run *run);
/* Says that this run works no more: others need not wait for it. */
void wlb_run_journal_leave(const struct wlb_run *run);

/* Returns the tasks that each node had in the first start of the job, 0 where that is not known. */
int wlb_run_journal_read_tasks(struct wlb_run *run);
void wlb_run_journal_write_tasks(struct wlb_run *run, int per_node);

/* Reads growths_without_nodes and nodes_before of run->grow, and first_nodes where it is higher. They are kept for each
 * run: a run that has stopped to grow may complete instead, and the next run of the script has not grown then. */
void wlb_run_journal_read_growth(struct wlb_run *run);
void wlb_run_journal_write_growth(struct wlb_run *run);

/* Reads and writes run->held: the checkpoint of an earlier start may be readable in this split alone. */
void wlb_run_journal_read_held(struct wlb_run *run);
void wlb_run_journal_write_held(struct wlb_run *run);

/* Reads into run->progress how long the longest of the newest saves and steps of the run took: a start may end before
 * it has saved once. */
void wlb_run_journal_read_times(struct wlb_run *run);
void wlb_run_journal_write_times(struct wlb_run *run);

#endif
