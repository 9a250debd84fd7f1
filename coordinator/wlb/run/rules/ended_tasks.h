/*
 * Which tasks of a step have ended badly, by the lines of srun (first_exit.h) and the nodes that were lost. srun's exit
 * code is the highest of all tasks: where the step goes on without those that die, it does not say whether any has
 * succeeded. No I/O.
 */
#ifndef COORDINATOR_WLB_RUN_RULES_ENDED_TASKS_H
#define COORDINATOR_WLB_RUN_RULES_ENDED_TASKS_H

#include <stdbool.h>
#include <stdint.h>

struct wlb_ended_tasks {
	int tasks;      /* of the step */
	uint64_t *bits; /* owned; NULL: out of memory, and nothing is known */
};

void wlb_ended_tasks_begin(struct wlb_ended_tasks *ended, int tasks);
void wlb_ended_tasks_free(struct wlb_ended_tasks *ended);

/* Takes a list such as "0-3,7", up to the first character that belongs to none. Tasks that the step does not have are
 * ignored. */
void wlb_ended_tasks_note(struct wlb_ended_tasks *ended, const char *list);
void wlb_ended_tasks_note_range(struct wlb_ended_tasks *ended, int first, int count);

/* Whether a task of the step is left that has not ended badly; false where nothing is known. */
bool wlb_ended_tasks_has_other(const struct wlb_ended_tasks *ended);

#endif
