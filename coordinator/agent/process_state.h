/* Whether a process that trains can go on, as /proc says it: nothing is attached to or signalled. */
#ifndef COORDINATOR_AGENT_PROCESS_STATE_H
#define COORDINATOR_AGENT_PROCESS_STATE_H

#include <stdint.h>
#include <sys/types.h>

enum wlb_process_condition {
	WLB_PROCESS_RUNS,    /* or sleeps, or has ended well and is not reaped yet */
	WLB_PROCESS_TRACED,  /* a debugger has it, stopped or not */
	WLB_PROCESS_STOPPED, /* by a signal such as SIGSTOP */
	WLB_PROCESS_DEAD,    /* it has failed, and its parent has not reaped it */
	WLB_PROCESS_GONE,    /* there is none, or another process has its number */
};

/* Clock ticks from the start of the system to that of the process; 0: there is none. With its number they are of one
 * process alone. */
uint64_t wlb_process_started(pid_t pid);

/* Seconds since a process started, from its clock ticks. */
double wlb_process_age_s(uint64_t started);

enum wlb_process_condition wlb_process_condition(pid_t pid, uint64_t started);

#endif
