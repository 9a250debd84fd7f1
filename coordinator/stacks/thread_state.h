/* What the kernel says of a thread without stopping it. */
#ifndef COORDINATOR_STACKS_THREAD_STATE_H
#define COORDINATOR_STACKS_THREAD_STATE_H

#include <sys/types.h>

enum {
	WLB_THREADS_MAX = 64,      /* of a rank */
	WLB_THREAD_TEXT_SIZE = 64, /* of a name, and of a function of the kernel */
};

struct wlb_thread {
	pid_t pid, tid;
	char state;                          /* R, S, D, T, t, Z: proc(5); '?': it is gone */
	char name[WLB_THREAD_TEXT_SIZE];     /* "" where it cannot be read */
	char waits_in[WLB_THREAD_TEXT_SIZE]; /* the function of the kernel, "" where the kernel does not say it */
};

/* Writes the main threads of the processes, then the other threads of each process. Returns their number; *omitted is
 * the number of those beyond the bound. */
int wlb_threads_list(const pid_t *pids, int count, struct wlb_thread threads[WLB_THREADS_MAX], int *omitted);

/* Reads state, name and kernel function. */
void wlb_thread_look(struct wlb_thread *thread);

/* Returns the number of the system call that a thread is in; -1 where it is in none, or the kernel does not say. */
long wlb_thread_system_call(pid_t pid, pid_t tid);

#endif
