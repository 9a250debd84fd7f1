/*
 * A check: a step of the job that runs a command of wlb on some nodes, one task on each, beside the step of the
 * attempt. The output of the check is read without waiting for it.
 */
#ifndef COORDINATOR_WLB_RUN_CHECK_CHECK_STEP_H
#define COORDINATOR_WLB_RUN_CHECK_CHECK_STEP_H

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

struct wlb_check_command {
	const json_t *nodes;      /* an array of names */
	const char *mpi;          /* a value of srun's --mpi */
	const char *const *words; /* of a command of wlb, NULL-terminated */
	int gpus_per_node;        /* that the job has; 0: none */
	int64_t limit_ms;         /* for the step, with the time until Slurm creates it */
};

enum wlb_check_progress { WLB_CHECK_STEP_RUNS, WLB_CHECK_STEP_ENDED, WLB_CHECK_STEP_LATE };

/* Starts srun with the command; signals: the mask of blocked signals that srun has. The task on a node gets all CPUs,
 * memory and GPUs that the job has there. Returns -1 with the reason; nothing has to be freed then. */
int wlb_check_step_start(const sigset_t *signals, const struct wlb_check_command *command, struct wlb_check_step *step,
                         struct wlb_error *error);

/* Reads what the tasks have written since, 256 KiB at most. Does not block. A step that writes without end is late as
 * any other. */
enum wlb_check_progress wlb_check_step_poll(struct wlb_check_step *step);

/* Ends srun and its step, within 2.5 s. Returns its exit code, 128 + signal where one killed it, 255 where its end is
 * not known; *text is what the tasks have written, 4 MiB at most, which the caller frees. */
int wlb_check_step_end(struct wlb_check_step *step, char **text);

#endif
