#include "coordinator/wlbd/incident/unreported_nodes.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/nodes/node_probe.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	PROBED_MAX = 256,      /* in one second */
	PROBE_AGAIN_MS = 5000, /* all nodes that have not answered yet */
};

struct asked_node {
	struct wlbd_attempt_ref attempt;
	char name[256];
};

/* A node also counts as alive where nothing is known of it, because the network of this host may be unavailable. */
static bool has_answered(const struct wlbd *wlbd, const char *node)
{
	return wlbd_node_silence(wlbd->node_probes, node).probes == 0;
}

static void on_probed(void *context, bool alive)
{
	struct asked_node *node = context;
	struct wlbd_attempt *attempt = wlbd_attempt_ref_find(&node->attempt);
	int index = attempt != NULL ? wlbd_names_find(&attempt->unreported.nodes, node->name) : -1;
	if (index >= 0 && alive && has_answered(attempt->wlbd, node->name))
		wlbd_names_remove(&attempt->unreported.nodes, index);
	else if (index >= 0 && !alive && wlbd_symptom_node_silent(attempt, node->name) == 0)
		wlbd_names_remove(&attempt->unreported.nodes, index); /* what follows is the symptom's */
	free(node);
}

static void ask(const struct wlbd_attempt *attempt, const char *name)
{
	struct asked_node *node = malloc(sizeof(*node));
	if (node == NULL)
		return; /* it is asked again */
	node->attempt = wlbd_attempt_ref(attempt);
	snprintf(node->name, sizeof(node->name), "%s", name);
	wlbd_node_probe(attempt->wlbd->node_probes, name, attempt->uid, on_probed, node);
}

void wlbd_unreported_nodes_expect(struct wlbd_attempt *attempt)
{
	attempt->unreported.due_ms = wlb_clock_ms() + attempt->wlbd->config.restart_grace_ms;
}

/* Without Slurm's table nodes have no address. */
static void begin(struct wlbd_attempt *attempt, int64_t now_ms)
{
	if (attempt->unreported.due_ms == 0 || now_ms < attempt->unreported.due_ms ||
	    wlbd_nodes_count(attempt->wlbd->nodes) == 0 ||
	    wlbd_names_copy(&attempt->unreported.nodes, &attempt->nodes.started_on) != 0)
		return;
	attempt->unreported.due_ms = 0;
	attempt->unreported.left = attempt->unreported.nodes.count;
	attempt->unreported.ask_ms = now_ms;
}

static bool has_address(const struct wlbd *wlbd, const char *name)
{
	const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, name);
	return node != NULL && node->address_length > 0;
}

static bool is_unreported(const struct wlbd_attempt *attempt, const char *node)
{
	return wlbd_names_find(&attempt->nodes.started_on, node) >= 0 && !wlbd_attempt_has_reporter(attempt, node);
}

/* An answer may arrive at once and remove its node, so that the list is gone through from its end. */
void wlbd_unreported_nodes_check(struct wlbd_attempt *attempt, int64_t now_ms)
{
	struct wlbd_unreported *unreported = &attempt->unreported;
	int asked = 0;
	begin(attempt, now_ms);
	if (now_ms < unreported->ask_ms)
		return;
	for (; unreported->left > 0 && asked < PROBED_MAX; unreported->left--) {
		int index = unreported->left - 1;
		if (index >= unreported->nodes.count)
			continue;
		if (!is_unreported(attempt, unreported->nodes.list[index])) {
			wlbd_names_remove(&unreported->nodes, index);
		} else if (has_address(attempt->wlbd, unreported->nodes.list[index])) {
			ask(attempt, unreported->nodes.list[index]);
			asked++;
		}
	}
	if (unreported->left == 0) {
		unreported->left = unreported->nodes.count;
		unreported->ask_ms = now_ms + PROBE_AGAIN_MS;
	}
}
