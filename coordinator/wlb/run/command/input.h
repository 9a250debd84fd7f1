/*
 * The command's standard input, which each attempt gets from its beginning: srun reads it as soon as its step runs,
 * also where no task does.
 *
 * - A regular file is opened again for each srun, at the offset where it stood. The offset that the shell shares does
 * not move: `while read LINE; do wlb run ...; done < FILE` reads its next line.
 * - What a pipe or a socket has is read here and passed on to srun. One that ends within a second, with at most 1 MiB,
 * is kept for every attempt. Of any other the first attempt gets all; there is a next one only where srun consumed no
 * byte.
 * - A terminal is /dev/null, since a process group in the background must not read from it. Anything else is inherited.
 */
#ifndef COORDINATOR_WLB_RUN_COMMAND_INPUT_H
#define COORDINATOR_WLB_RUN_COMMAND_INPUT_H

#include <poll.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Opens /dev/null for each of the three standard files that is closed, before another file takes its number. */
void wlb_run_input_reserve(void);

/* Finds out what the standard input is; for a pipe or a socket, waits at most a second for its end. */
void wlb_run_input_open(struct wlb_run *run);
void wlb_run_input_close(struct wlb_run_input *input);

/* Before a fork for srun; -1 without a pipe. wlb_run_input_end() follows in any case, once srun has ended. */
int wlb_run_input_begin(struct wlb_run_input *input, struct wlb_error *error);
/* In the child: gives it its standard input. */
void wlb_run_input_take(const struct wlb_run_input *input);
/* What to poll while srun runs, its fd -1 for nothing; when it is ready, bytes are passed on without blocking. */
struct pollfd wlb_run_input_side(const struct wlb_run_input *input);
void wlb_run_input_pass(struct wlb_run_input *input);
void wlb_run_input_end(struct wlb_run_input *input);

/* Returns -1, with the reason and the remedy, where another attempt would not get what srun has consumed. */
int wlb_run_input_check(const struct wlb_run_input *input, struct wlb_error *error);

#endif
