#include "common/fault_kinds.h"

const struct wlb_fault_row wlb_faults[WLB_FAULT_KIND_COUNT] = {
	[WLB_FAULT_RANK_LOST] = {.name = "rank_lost", .is_loss = true, .may_record = true},
	[WLB_FAULT_NODE_LOST] = {.name = "node_lost", .is_loss = true, .may_record = true},
	[WLB_FAULT_STEP_FAILED] = {.name = "step_failed", .is_loss = true, .may_record = true},
	[WLB_FAULT_LAUNCHER_LOST] = {.name = "launcher_lost", .is_loss = true},
	[WLB_FAULT_SCRIPT_LOST] = {.name = "script_lost", .is_loss = true},
	[WLB_FAULT_HANG] = {.name = "hang", .may_record = true},
	[WLB_FAULT_SLOW_RANK] = {.name = "slow_rank", .may_record = true},
	[WLB_FAULT_SLOW_NODE] = {.name = "slow_node"},
	[WLB_FAULT_SLOW_LINK] = {.name = "slow_link", .may_record = true},
	[WLB_FAULT_SLOW_LOADER] = {.name = "slow_loader"},
	[WLB_FAULT_BAD_VALUES] = {.name = "bad_values"},
};
