#include "common/fault_kinds.h"

const struct wlb_fault_row wlb_faults[WLB_FAULT_KIND_COUNT] = {
	[WLB_FAULT_RANK_LOST] = {"rank_lost", .is_loss = true, .may_record = true},
	[WLB_FAULT_NODE_LOST] = {"node_lost", .is_loss = true, .may_record = true},
	[WLB_FAULT_STEP_FAILED] = {"step_failed", .is_loss = true, .may_record = true},
	[WLB_FAULT_LAUNCHER_LOST] = {"launcher_lost", .is_loss = true},
	[WLB_FAULT_SCRIPT_LOST] = {"script_lost", .is_loss = true},
	[WLB_FAULT_HANG] = {"hang", .may_record = true},
	[WLB_FAULT_SLOW_RANK] = {"slow_rank", .may_record = true},
	[WLB_FAULT_SLOW_NODE] = {"slow_node"},
	[WLB_FAULT_SLOW_LINK] = {"slow_link", .may_record = true},
	[WLB_FAULT_SLOW_LOADER] = {"slow_loader"},
	[WLB_FAULT_BAD_VALUES] = {"bad_values"},
};
