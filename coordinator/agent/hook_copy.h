/*
 * Copies the file to which Python's hook appends (python/hook) into the folder of the run, where `wlb run` reads it:
 * `wlb run` is on another node than the rank that has the hook. The copy is made by a process of its own. A network
 * file system that hangs makes neither the rank nor the agent wait.
 */
#ifndef COORDINATOR_AGENT_HOOK_COPY_H
#define COORDINATOR_AGENT_HOOK_COPY_H

#include <sys/types.h>

struct wlb_agent_hook_copy {
	pid_t pid; /* 0: none */
	int stop_fd;
};

/* Begins to copy WLB_HOOK_FILE to WLB_HOOK_COPY, if these are set and WLB_HOOK_NODE is this node. */
void wlb_agent_hook_copy_begin(struct wlb_agent_hook_copy *copy, const char *node);

/* The ranks have ended: has the rest copied and the file removed, and waits half a second for that. */
void wlb_agent_hook_copy_end(struct wlb_agent_hook_copy *copy);

#endif
