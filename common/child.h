/* How a child process ended: one rule for all that wait for one. */
#ifndef COMMON_CHILD_H
#define COMMON_CHILD_H

#include <sys/types.h>

/* Waits for the child's end, limit_ms at most; 0: looks once. Returns 1 with its wait status, and the child is reaped;
 * 0 where it runs on; -1 where nobody can tell, as where SIGCHLD is ignored and the kernel has discarded the end.
 * *status is that of an exit with code 255 in these two cases: what is not known is no success. */
int wlb_child_wait(pid_t child, int limit_ms, int *status);

/* The exit code of a wait status; 128 + signal where one killed it. */
int wlb_child_code(int status);

#endif
