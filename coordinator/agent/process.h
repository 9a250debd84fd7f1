/* What the kernel reports about processes that are not our children. */
#ifndef COORDINATOR_AGENT_PROCESS_H
#define COORDINATOR_AGENT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* The exit code, as in a shell, of a process of our own user that has ended and is not reaped yet; -1 if the kernel
 * does not report it. */
int wlb_process_exit_code(pid_t pid);

/* Returns its state, a letter of proc(5), such as T (stopped by a signal) or t (by a debugger); '?': there is none. */
char wlb_process_state(pid_t pid);

/* Whether it is there and has not ended. */
bool wlb_process_runs(pid_t pid);

/* Whether it has a child process besides us that runs; false also where the kernel does not report it. */
bool wlb_process_has_other_child(pid_t pid);

/* Whether it is stopped, by a signal or by a debugger. */
bool wlb_process_stopped(pid_t pid);

/* Sends the signal (0: none) to every other process of our user whose environment holds all of the "NAME=VALUE" in
 * `marks` (NULL-terminated). Returns how many there were; processes that these start meanwhile are found by the next
 * call. */
int wlb_process_signal_marked(const char *const *marks, int number);

#endif
