/* Any topology.conf and any listing of slurmctld: refused with a message, or switches and nodes whose numbers are all
 * in their ranges, and an order that has each node once. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/topology_order.h"
#include "coordinator/slurm/topology_text.h"
#include "tests/fuzz/scratch.h"

/* libslurm loses a few bytes of a node list that it refuses; read once at the sanitizer's start. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:slurm_hostlist_create";
}

static void check_switches(const struct wlb_topology_file *file)
{
	for (size_t i = 0; i < file->topology.count; i++) {
		const struct wlb_switch *at = &file->topology.switches[i];
		must(at->name[0] != '\0');
		for (size_t k = 0; k < at->switch_count; k++)
			must(at->switches[k] >= 0 && (size_t)at->switches[k] < file->topology.count);
		for (size_t k = 0; k < at->node_count; k++)
			must(at->nodes[k] >= 0 && at->nodes[k] < file->node_count);
	}
}

/* A ring of switches is refused. */
static void check_order(const struct wlb_topology_file *file)
{
	struct wlb_error error = {0};
	size_t count = (size_t)file->node_count;
	int *order = calloc(count + 1, sizeof(*order));
	const char **leaf = calloc(count + 1, sizeof(*leaf));
	char *seen = calloc(count + 1, 1);
	must(order != NULL && leaf != NULL && seen != NULL);
	if (wlb_topology_order_names(file, (const char *const *)file->nodes, file->node_count, order, leaf, &error) ==
	    0)
		for (size_t i = 0; i < count; i++) {
			must(order[i] >= 0 && (size_t)order[i] < count && !seen[order[i]]);
			seen[order[i]] = 1;
		}
	free(seen);
	free(leaf);
	free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	for (int is_listing = 0; is_listing < 2; is_listing++) {
		struct wlb_topology_file file = {0};
		struct wlb_error error = {0};
		char *text = malloc(bytes + 1);
		must(text != NULL);
		memcpy(text, data, bytes);
		text[bytes] = '\0';
		if ((is_listing ? wlb_topology_listing_parse : wlb_topology_file_parse)(text, &file, &error) < 0) {
			must(error.message[0] != '\0');
		} else {
			check_switches(&file);
			check_order(&file);
			wlb_topology_file_keep_first(&file, file.node_count / 2);
		}
		wlb_topology_file_free(&file);
		free(text);
	}
	return 0;
}
