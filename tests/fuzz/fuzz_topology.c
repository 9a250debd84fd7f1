/* Any topology.conf: refused with a message, or switches and nodes whose numbers are all in their ranges. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlb/calculators/plan/topology.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_topology_file file = {0};
	struct wlb_error error = {0};
	char *text = malloc(bytes + 1);
	must(text != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (wlb_topology_file_parse(text, &file, &error) < 0) {
		must(error.message[0] != '\0');
	} else {
		int32_t *order = calloc(2 * (size_t)file.node_count + 1, sizeof(*order));
		must(order != NULL);
		check_switches(&file);
		/* A ring of switches is refused there. */
		wlb_topology_order(&file.topology, file.node_count, order, order + file.node_count, &error);
		wlb_topology_file_keep_first(&file, file.node_count / 2);
		free(order);
	}
	wlb_topology_file_free(&file);
	free(text);
	return 0;
}
