/*
 * A step of the job beside that of an attempt, which runs a command of wlb on some nodes, one task on each, and whose
 * output is read without waiting for it.
 */
#ifndef COORDINATOR_WLB_RUN_CHECK_STEP_H
#define COORDINATOR_WLB_RUN_CHECK_STEP_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "libwlb/wlb.h"

struct wlb_check_step {
	pid_t srun; /* 0: none */
	int output_fd;
	int64_t until_ms;
	FILE *stream; /* to `text` */
	char *text;
	size_t stream_bytes, bytes; /* in the stream; that the tasks have written */
};

enum wlb_check_progress { WLB_CHECK_STEP_RUNS, WLB_CHECK_STEP_ENDED, WLB_CHECK_STEP_LATE };

/* Starts srun with the words of a command of wlb, NULL-terminated, on the nodes, an array of names; signals: the mask
 * of blocked signals that srun has; mpi: a value of its --mpi. Returns -1 with the reason; nothing has to be freed
 * then. */
int wlb_check_step_start(const sigset_t *signals, const json_t *nodes, const char *mpi, const char *const *words,
                         int64_t limit_ms, struct wlb_check_step *step, struct wlb_error *error);

/* Reads what the tasks have written since. Does not block. */
enum wlb_check_progress wlb_check_step_poll(struct wlb_check_step *step);

/* Ends srun and its step, within 2 s. Returns its exit code, 128 + signal where one killed it; *text is what the tasks
 * have written, 4 MiB at most, which the caller frees. */
int wlb_check_step_end(struct wlb_check_step *step, char **text);

#endif
