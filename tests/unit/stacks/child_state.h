/* The state of a process, as tests of stacks wait for it. */
#ifndef TESTS_UNIT_STACKS_CHILD_STATE_H
#define TESTS_UNIT_STACKS_CHILD_STATE_H

#include <stdio.h>

#include "common/clock.h"
#include "common/proc_stat.h"

enum { LATE_MS = 30000 };

/* Returns the state of the process as proc(5) abbreviates it, or "?" where there is no such process. */
static inline char state_of(pid_t pid)
{
	char path[64], line[WLB_PROC_STAT_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *state = wlb_proc_stat_field(path, WLB_PROC_STATE, line);
	return state != NULL ? *state : '?';
}

static inline void wait_for_state(pid_t pid, char state)
{
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	while (state_of(pid) != state && wlb_clock_left_ms(until_ms) > 0)
		wlb_clock_sleep_ms(1);
	assert_int_equal(state_of(pid), state);
}

#endif
