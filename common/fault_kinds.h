/*
 * The kinds of faults of an attempt, in one table: `faults.kind` of the schema and records of clients have the same
 * names. A verdict (libverdict) for which wlbd ends an attempt becomes a fault of one of these kinds.
 */
#ifndef COMMON_FAULT_KINDS_H
#define COMMON_FAULT_KINDS_H

#include <stdbool.h>

enum wlb_fault_kind {
	WLB_FAULT_RANK_LOST,
	WLB_FAULT_NODE_LOST,
	WLB_FAULT_STEP_FAILED,   /* the Slurm step, without a rank or node that explains it */
	WLB_FAULT_LAUNCHER_LOST, /* `wlb run` was killed */
	WLB_FAULT_SCRIPT_LOST,   /* the job's script was */
	WLB_FAULT_HANG,
	WLB_FAULT_SLOW_RANK,
	WLB_FAULT_SLOW_NODE,
	WLB_FAULT_SLOW_LINK,
	WLB_FAULT_SLOW_LOADER,
	WLB_FAULT_BAD_VALUES,
	WLB_FAULT_KIND_COUNT,
};

struct wlb_fault_row {
	const char *name;
	bool is_loss;    /* a process ended: wlbd finds it without a verdict, and /metrics counts it */
	bool may_record; /* a client may, in a record of type "fault" */
};

extern const struct wlb_fault_row wlb_faults[WLB_FAULT_KIND_COUNT];

#endif
