/* Nodes: query, set DOWN. */
#include "coordinator/slurm/compat.h"
#include "coordinator/slurm/gres.h"
#include "coordinator/slurm/slurm_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void fill_node(const node_info_t *from, struct wlb_slurm_node *node)
{
	uint32_t base = from->node_state & NODE_STATE_BASE;
	const uint32_t powered_off = NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN;
	bool down = base == NODE_STATE_DOWN || base == NODE_STATE_ERROR || base == NODE_STATE_FUTURE;
	*node = (struct wlb_slurm_node){
		.port = from->port,
		.down = down || (from->node_state & powered_off) != 0,
		.saves_power = !down && (from->node_state & (powered_off | NODE_STATE_POWERING_UP)) != 0,
		.responds = (from->node_state & NODE_STATE_NO_RESPOND) == 0,
		.allocated = base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED,
		.drained = (from->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL)) != 0,
		.cpus = from->cpus,
		.gpus = wlb_gres_gpus(from->gres ?: ""),
		.reason_time = from->reason_time,
	};
	wlb_gres_gpu_type(from->gres ?: "", node->gpu_type, sizeof(node->gpu_type));
	snprintf(node->name, sizeof(node->name), "%s", from->name ?: "");
	snprintf(node->address, sizeof(node->address), "%s", from->node_addr ?: "");
	snprintf(node->state, sizeof(node->state), "%s", slurm_node_state_string(from->node_state));
	wlb_text_store(node->reason, sizeof(node->reason), from->reason ?: "");
}

int wlb_slurm_nodes(struct wlb_slurm_node **nodes, int *count, struct wlb_error *error)
{
	node_info_msg_t *reply = NULL;
	if (slurm_load_node(0, &reply, SHOW_ALL) != SLURM_SUCCESS)
		return wlb_fail(error, "Slurm gives no node list: %s", slurm_strerror(errno));
	*nodes = calloc(reply->record_count + 1, sizeof(**nodes));
	*count = 0;
	for (uint32_t i = 0; *nodes && i < reply->record_count; i++)
		if (reply->node_array[i].name) /* a deleted dynamic node leaves an empty entry */
			fill_node(&reply->node_array[i], &(*nodes)[(*count)++]);
	slurm_free_node_info_msg(reply);
	return *nodes ? 0 : wlb_fail(error, "out of memory for the node list");
}

int wlb_slurm_node_down(const char *node, const char *reason, struct wlb_error *error)
{
	update_node_msg_t update;
	slurm_init_update_node_msg(&update);
	update.node_names = (char *)node;
	update.node_state = NODE_STATE_DOWN;
	update.reason = (char *)reason;
	wlb_compat_set_reason_uid(&update, getuid());
	if (slurm_update_node(&update) == SLURM_SUCCESS)
		return 0;
	return wlb_fail(error, "node %s: Slurm does not set it DOWN: %s", node, slurm_strerror(errno));
}
