/* Processes that stand in for those of ranks, so that wlb-agent's code finds their state in /proc. */
#ifndef TESTS_BENCH_COORDINATOR_STAND_IN_H
#define TESTS_BENCH_COORDINATOR_STAND_IN_H

#include <sys/types.h>

/* Starts a process that waits for signals and ends with this one. To be called before threads are started. Ends the
 * program with a message where there can be none. */
pid_t stand_in_start(void);

#endif
