/* The processes that belong to a rank: its own and those that it started, from /proc. */
#ifndef COORDINATOR_STACKS_PROCESS_LIST_H
#define COORDINATOR_STACKS_PROCESS_LIST_H

#include <sys/types.h>

enum { WLB_STACKS_PROCESSES_MAX = 16 }; /* of a rank */

/* Every process of the system and its parent, at one moment. */
struct wlb_process_list {
	struct wlb_process_entry {
		pid_t pid, parent;
	} * list;
	int count;
};

/* Returns -1 if out of memory, or where /proc cannot be read. */
int wlb_process_list_read(struct wlb_process_list *all);
void wlb_process_list_free(struct wlb_process_list *all);

/* Writes the process and the processes below it, level by level. The first is the process that trains: where a process
 * waits for a child, as a shell does for its command, its first child comes first. Returns their number, 0 where the
 * process is gone. */
int wlb_process_list_of_rank(const struct wlb_process_list *all, pid_t pid, pid_t pids[WLB_STACKS_PROCESSES_MAX]);

#endif
