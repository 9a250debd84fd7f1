/* What the kernel tells about processes that are not ours to wait for. */
#ifndef COORDINATOR_AGENT_PROCESS_H
#define COORDINATOR_AGENT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* The exit code, as a shell has it, of a process of our own user that has ended and is not reaped yet; -1 when the
 * kernel does not tell it. */
int wlb_process_exit_code(pid_t pid);

/* Whether it is stopped (SIGSTOP, a debugger). */
bool wlb_process_stopped(pid_t pid);

/* SIGKILL to every process of our user whose environment holds all of the "NAME=VALUE" in `marks` (NULL-terminated),
 * but this one. Returns how many there were; those that they start meanwhile are found by the next call. */
int wlb_process_kill_marked(const char *const *marks);

#endif
