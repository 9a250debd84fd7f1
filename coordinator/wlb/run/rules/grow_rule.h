/* Decides whether a run that goes on with fewer nodes shall take in nodes again, and when: functions of facts, no I/O.
 */
#ifndef COORDINATOR_WLB_RUN_RULES_GROW_RULE_H
#define COORDINATOR_WLB_RUN_RULES_GROW_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum wlb_grow_way {
	WLB_GROW_NOT,
	WLB_GROW_IN_JOB,  /* the next attempt uses nodes of the job that this one excluded */
	WLB_GROW_REQUEUE, /* Slurm took nodes from the job, and requeues it */
};

struct wlb_grow_facts {
	const struct wlb_policy *policy;
	int ranks_per_node;
	int min_nodes;
	int spares;
	int first_nodes; /* nodes that the job began with, spares included */
	int used;        /* nodes of the attempt */
	int unused; /* usable nodes that the attempt does not use: spares, and nodes that its layout had no place for */
	int returned;  /* nodes of the job that did not answer when the attempt was decided, and are usable again */
	int allocated; /* nodes of the job now */
	int usable;    /* of the allocated nodes: nodes that Slurm would give the job again */
	int idle;      /* idle nodes of the job's partition that Slurm could give it beside these */
	bool may_requeue;
};

/* Returns how the run can go on with more nodes than its attempt has, if it can; *nodes is the number of nodes then.
 * The job is requeued only where as many nodes as it asks for are free: with fewer the job would wait and have none. */
enum wlb_grow_way wlb_grow_decide(const struct wlb_grow_facts *facts, int *nodes);

/* Returns for how long an attempt runs at least before it is stopped to grow. It is twice as long after each growth in
 * a row that brought no more nodes, up to a day. */
int64_t wlb_grow_wait_s(int64_t least_s, int growths_without_nodes);

#endif
