#include "coordinator/wlbd/nodes/dead_node.h"

#include "coordinator/wlbd/nodes/node_probe.h"
#include "coordinator/wlbd/slurm/job_poll.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

static void ignore_probe(void *context, bool alive)
{
	(void)context;
	(void)alive;
}

static bool is_dead(struct wlbd *wlbd, const struct wlbd_node *node, uint32_t job_id, uid_t uid, bool is_silent)
{
	if (node->down || node->responds)
		return node->down;
	if (is_silent)
		return true;
	wlbd_node_probe(wlbd->node_probes, node->name, uid, ignore_probe, NULL);
	wlbd_job_poll_soon(wlbd->job_poll, job_id, true);
	return false;
}

bool wlbd_node_is_dead(struct wlbd *wlbd, const struct wlbd_node *node, uint32_t job_id, uid_t uid)
{
	return is_dead(wlbd, node, job_id, uid, wlbd_node_is_silent(wlbd->node_probes, node->name, uid));
}

bool wlbd_host_is_dead(struct wlbd *wlbd, const struct wlbd_node *node, uint32_t job_id, uid_t uid)
{
	return is_dead(wlbd, node, job_id, uid, wlbd_node_host_is_silent(wlbd->node_probes, node->name, uid));
}
