/* What `wlb save` reads in the coordinator's reply about a run (docs/api.md, GET /v1/runs/RUN): which Slurm step is to
 * be asked for a checkpoint, and what has come of it. No I/O. */
#ifndef COORDINATOR_WLB_ASKED_SAVE_H
#define COORDINATOR_WLB_ASKED_SAVE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/command.h"

struct wlb_asked_save {
	int64_t attempt;
	uint32_t job_id, step_id; /* of the Slurm step */
	int64_t after_step;       /* a checkpoint of a later step is an answer */
	size_t failures;          /* events of checkpoints that are not saved, before it is asked */
};

/* Finds the step of the run's newest attempt. Returns -1 with the reason where its ranks must not be asked: SIGUSR2
 * ends a program that does not expect it. */
int wlb_asked_save_find(const json_t *run, struct wlb_asked_save *asked, struct wlb_error *error);

enum wlb_asked_save_state { WLB_ASKED_SAVE_WAITS, WLB_ASKED_SAVE_DONE, WLB_ASKED_SAVE_FAILED };

/* Sets *saved to the newest checkpoint, which lives as long as `run`, where the ranks have saved; the error where they
 * have failed to, or will not save any more. */
enum wlb_asked_save_state wlb_asked_save_look(const json_t *run, const struct wlb_asked_save *asked,
                                              const json_t **saved, struct wlb_error *error);

#endif
