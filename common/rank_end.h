/*
 * How a rank ended, by its exit code (128 + signal where it was killed), and how surely it did not end because another
 * one had. `wlb run`, which reads srun's output, and wlbd, which is told by nodes, judge by it which rank of a step
 * ended first. Pure, no I/O.
 */
#ifndef COMMON_RANK_END_H
#define COMMON_RANK_END_H

#include <stdbool.h>
#include <stddef.h>

enum wlb_end_strength {
	WLB_END_BROKEN_PIPE, /* it wrote to a process that had ended: SIGPIPE */
	WLB_END_EXITED,      /* it exited or aborted */
	WLB_END_KILLED,      /* it was killed, or failed in its own code: SIGKILL, SIGSEGV, SIGBUS, SIGILL, SIGFPE */
};

enum wlb_end_strength wlb_rank_end_strength(int exit_code);

/* Whether Slurm may have ended it, as it ends the ranks of a step after another one: SIGTERM, SIGKILL. */
bool wlb_rank_end_may_be_slurms(int exit_code);

/* Whether it failed in its own code, which no other rank's end explains. */
bool wlb_rank_end_is_own(int exit_code);

/* Writes "rank 3 on n2 was killed by signal 9", "... ended with exit code 7", or "... is lost" for exit code 0, which
 * is not known, as one line. */
void wlb_rank_end_text(char *text, size_t size, int rank, const char *node, int exit_code);

#endif
