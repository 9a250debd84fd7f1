/*
 * The ranks of a step on this node: which ranks run, which have ended, and what the coordinator knows of them.
 *
 * The kernel reports how a rank ended until its process is reaped; after that, only the plugin does. A rank that
 * is gone without either is lost: slurmstepd died or is stopped, and another process reaped it.
 */
#ifndef COORDINATOR_AGENT_TASKS_H
#define COORDINATOR_AGENT_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/client/peers.h"
#include "libwlb/wlb.h"

struct wlb_agent_task {
	int rank;
	pid_t pid;
	bool gone;          /* its process has ended */
	int64_t gone_ms;    /* of wlb_clock_ms() */
	double gone_s;      /* since 1970 */
	int code;           /* -1: not known */
	bool lost;          /* gone, and how it ended stays unknown */
	bool exit_reported; /* the coordinator knows the code */
	bool loss_reported; /* the coordinator knows that the rank is gone, or failed */
};

struct wlb_agent_tasks {
	struct wlb_agent_task *list; /* [expected] */
	int expected;
	int count;
	struct wlb_peers peers; /* in the order of the list; opened when all are known */
};

int wlb_agent_tasks_open(struct wlb_agent_tasks *tasks, int expected, struct wlb_error *error);
void wlb_agent_tasks_close(struct wlb_agent_tasks *tasks);

/* Adds a rank. Ranks beyond the expected number, and a rank added before, are ignored. */
void wlb_agent_tasks_add(struct wlb_agent_tasks *tasks, int rank, pid_t pid);

/* Whether all ranks are known. */
bool wlb_agent_tasks_complete(const struct wlb_agent_tasks *tasks);

/* Notes how a rank ended, as the plugin reported it. Returns false if that was known already. */
bool wlb_agent_tasks_exited(struct wlb_agent_tasks *tasks, int rank, int code);

/* Notes which ranks are gone. With `silent`, the plugin cannot report how they ended, and a rank that has been gone for
 * WLB_AGENT_SILENCE_MS is lost. Otherwise the rank waits for the plugin's message: a site's task epilog may run before
 * it. Returns true if anything is new. */
bool wlb_agent_tasks_check(struct wlb_agent_tasks *tasks, bool silent);

enum {
	WLB_AGENT_SILENCE_MS = 200,
	WLB_AGENT_EPILOG_MS = 5000,
};

/* Whether some rank is gone and how it ended is not known yet. */
bool wlb_agent_tasks_undecided(const struct wlb_agent_tasks *tasks);

/* Whether all ranks are known and have ended. */
bool wlb_agent_tasks_over(const struct wlb_agent_tasks *tasks);

#endif
