#include "coordinator/wlb/output/fault_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/wlb/output/reply_fields.h"

enum { RANKS_NAMED = 4, RANKS_SIZE = 64, NODES_SIZE = 64 };

static bool is_kind(const json_t *entry, const char *kind)
{
	return strcmp(wlb_field_text(entry, "kind", ""), kind) == 0;
}

static json_int_t rank_at(const json_t *ranks, size_t index)
{
	return json_integer_value(json_array_get(ranks, index));
}

/* Ranks that are few are named, and of more their number is. */
static void name_ranks(const json_t *ranks, json_int_t count, char *text, size_t size)
{
	size_t length = 0;
	if (count > RANKS_NAMED || (size_t)count != json_array_size(ranks)) {
		snprintf(text, size, "%lld ranks", (long long)count);
		return;
	}
	snprintf(text, size, count == 1 ? "rank " : "ranks ");
	for (size_t i = 0; i < (size_t)count && (length = strlen(text)) < size; i++)
		snprintf(text + length, size - length, "%s%lld", i > 0 ? "," : "", (long long)rank_at(ranks, i));
}

void wlb_fault_where(const json_t *entry, char *text, size_t size)
{
	char ranks[RANKS_SIZE], nodes[NODES_SIZE];
	const json_t *list = json_object_get(entry, "ranks");
	json_int_t count = json_integer_value(json_object_get(entry, "rank_count"));
	bool has_nodes = json_array_size(json_object_get(entry, "nodes")) > 0;
	wlb_field_nodes(entry, nodes, sizeof(nodes));
	if (count == 2 && json_array_size(list) == 2 &&
	    (is_kind(entry, "slow_link") || is_kind(entry, "hang_in_communication"))) {
		snprintf(text, size, "link %lld>%lld", (long long)rank_at(list, 0), (long long)rank_at(list, 1));
		return;
	}
	if (has_nodes && (count < 1 || is_kind(entry, "slow_node") || is_kind(entry, "slow_nic"))) {
		snprintf(text, size, "node %s", nodes);
		return;
	}
	if (count < 1) {
		snprintf(text, size, "-");
		return;
	}
	name_ranks(list, count, ranks, sizeof(ranks));
	snprintf(text, size, has_nodes ? "%s on %s" : "%s", ranks, nodes);
}

void wlb_fault_kind(const json_t *entry, char *text, size_t size)
{
	snprintf(text, size, "%s%s", is_kind(entry, "step_failed") ? "slurm " : "", wlb_field_text(entry, "kind", "-"));
	for (char *c = text; *c != '\0'; c++)
		if (*c == '_')
			*c = ' ';
}
