/* Runs wlb-stacks for processes, and takes the lines that it prints. */
#ifndef COORDINATOR_AGENT_STACKS_PROGRAM_H
#define COORDINATOR_AGENT_STACKS_PROGRAM_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls `take` with the place of a process in `pids` and what was printed for it, in the order of the lines, until
 * the program ends or until_ms of wlb_clock_ms(), when it is killed. A line that is none is ignored. */
void wlb_stacks_program_run(const char *path, const pid_t *pids, int count, int64_t until_ms,
                            void (*take)(int place, const json_t *printed, void *context), void *context);

#endif
