/*
 * The processes that train on the node. A task of Slurm may be a launcher or a shell: then the ranks are processes
 * below it.
 *
 * - A rank of a launcher is a process below a task whose RANK, LOCAL_RANK, WORLD_SIZE or TORCHELASTIC_RUN_ID are not
 *   those of the task: launchers set them for each rank. What a rank starts, such as the workers of its loader, has the
 *   same values and belongs to it.
 * - Without such a process, the task trains; where it waits for a child, as a shell does, that child does.
 *
 * What is here comes from the user's processes: it says which process to look at, and a coordinator acts on that user's
 * run alone.
 */
#ifndef COORDINATOR_AGENT_TRAINERS_H
#define COORDINATOR_AGENT_TRAINERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/agent/process_state.h"
#include "coordinator/agent/tasks.h"

enum {
	WLB_AGENT_TRAINERS_MAX = 1024,       /* of a node */
	WLB_AGENT_FAULTY_MAX = 8,            /* of a report */
	WLB_AGENT_SPANS_MAX = 16,            /* of ranks that run, in a report */
	WLB_AGENT_LAUNCHER_WAITS_MS = 20000, /* without a rank, until it is reported */
};

struct wlb_agent_trainer {
	int rank; /* RANK as its launcher has set it, or that of its task */
	int task; /* the rank of its task */
	pid_t pid;
	uint64_t started;     /* process_state.h */
	bool is_launched;     /* a rank of a launcher */
	const char *launcher; /* its name, of one that has no rank now; NULL: a process that trains */
	int64_t since_ms;     /* of a launcher: when it began to have none */
	enum wlb_process_condition condition;
};

struct wlb_agent_trainers {
	struct wlb_agent_trainer *list; /* [count], in the order of tasks */
	int count;
	int64_t first_ms; /* when this first looked; 0: not yet */
	int64_t scan_ms;  /* when the processes are listed next */
};

/* Finds the processes and their conditions. Call it about each second: conditions are read then, and the processes of
 * the node are listed every 30 s, and each 2 s in the first minute, where one has gone, or while a launcher has no
 * rank. Without memory the list stays as it was. */
void wlb_agent_trainers_look(struct wlb_agent_trainers *trainers, const struct wlb_agent_tasks *tasks, int64_t now_ms);
void wlb_agent_trainers_free(struct wlb_agent_trainers *trainers);

/* Returns the field 'processes' of a report (docs/api.md): those that cannot go on, how many others run, and with
 * `names_running` the ranks of these. NULL where there are none to tell of, or if out of memory. */
json_t *wlb_agent_trainers_report(const struct wlb_agent_trainers *trainers, bool names_running, int64_t now_ms);

#endif
