/*
 * Reports of the run to the coordinator: rank 0 records attempt, steps, checkpoints and the end; local rank 0 of each
 * node reports that its ranks are running, unless wlb-agent does (WLB_NODE_PAGE). Without WLB_RUN_ID nothing is
 * recorded, and a recorder does nothing. A failure to write the spool does not stop training: the first is printed,
 * later ones are not. The calls on the spool are reported (worker/data/file_progress.h), so that a spool whose file
 * system does not answer ends the run as any other file does.
 */
#ifndef WORKER_RECORD_RECORD_H
#define WORKER_RECORD_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/launch/launch.h"
#include "worker/launch/options.h"
#include "worker/record/metrics.h"

struct wlb_train_plan;
struct wlb_recorder;

/* Records that the attempt ended before it began. For rank 0. Gives up after 10 s. */
void wlb_record_refusal(const struct wlb_launch *launch, int exit_code, const char *reason);

/* Every rank must call it; ranks that report nothing receive a recorder that does nothing. Records the attempt, and
 * why it has its layout where the planner chose it. Returns NULL if out of memory. */
struct wlb_recorder *wlb_recorder_start(struct wlb_launch *launch, const struct wlb_train_plan *plan,
                                        const struct wlb_train_options *options, struct wlb_error *error);

/* Records the attempt again, where the plan has changed since. */
void wlb_record_attempt(struct wlb_recorder *recorder, const struct wlb_train_plan *plan,
                        const struct wlb_train_options *options);

/* Records the GPUs of the ranks, a JSON object (docs/api.md). */
void wlb_record_gpus(struct wlb_recorder *recorder, const char *json);

/* Sets the number of steps done, for the next report. */
void wlb_record_progress(struct wlb_recorder *recorder, int64_t step);
/* `json` is that of wlb_step_json. */
void wlb_record_step(struct wlb_recorder *recorder, const char *json);

struct wlb_saved {
	int64_t step;
	const char *path;
	int64_t bytes;
	double duration_s; /* from its begin until it was durable */
	double stall_s;    /* of it, in which no step ran */
};
void wlb_record_checkpoint(struct wlb_recorder *recorder, const struct wlb_saved *saved);
void wlb_record_evaluation(struct wlb_recorder *recorder, const struct wlb_evaluation_facts *facts);
/* An event of the run (docs/api.md). */
void wlb_record_event(struct wlb_recorder *recorder, const char *kind, const char *detail);
/* state: "complete", "failed", "ended". Only the first end is recorded; any thread may call it. Gives up after 10 s, so
 * that a spool whose file system does not answer cannot keep the process. */
void wlb_record_end(struct wlb_recorder *recorder, const char *state, int exit_code, const char *reason);

/* Nonzero after the coordinator has ordered the attempt to end; any thread may call it. */
int wlb_recorder_must_end(const struct wlb_recorder *recorder, const char **reason);

/* Waits for a short time until all records are delivered (the spool keeps the rest), then frees the recorder. NULL
 * allowed. */
void wlb_recorder_stop(struct wlb_recorder *recorder);

#endif
