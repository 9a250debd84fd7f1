#include "coordinator/wlb/history/fold_faults.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlb/output/rank_text.h"
#include "coordinator/wlb/output/reply_fields.h"

enum {
	RANKS_COLUMNS = 60,
	RECORDED_MOST = 16, /* the coordinator records no more consequences at once */
};

struct ended_rank {
	int rank;
	const char *node; /* NULL: not known */
};

/* The ranks of an attempt that ended after its cause, of which the first is entry `first` of the list. */
struct group {
	const char *run; /* "": all are of one run */
	json_int_t attempt;
	bool has_cause;
	size_t first;
	int count;
	struct ended_rank *ranks; /* owned */
};

struct groups {
	struct group *list;
	size_t count;
	size_t last; /* that was found: entries of an attempt follow each other */
};

static struct group *find_group(struct groups *groups, const json_t *fault)
{
	const char *run = wlb_field_text(fault, "run_id", "");
	json_int_t attempt = json_integer_value(json_object_get(fault, "attempt"));
	for (size_t i = 0; i < groups->count; i++) {
		struct group *group = &groups->list[(groups->last + i) % groups->count];
		if (group->attempt != attempt || strcmp(group->run, run) != 0)
			continue;
		groups->last = (size_t)(group - groups->list);
		return group;
	}
	groups->last = groups->count;
	groups->list[groups->count] = (struct group){.run = run, .attempt = attempt};
	return &groups->list[groups->count++];
}

/* Returns the rank of a lost rank that is not the cause; -1: the entry is another. */
static json_int_t following_rank(const json_t *fault)
{
	const json_t *rank = json_object_get(fault, "rank");
	if (!json_is_integer(rank))
		rank = json_array_get(json_object_get(fault, "ranks"), 0);
	bool follows = json_is_false(json_object_get(fault, "cause")) &&
	               strcmp(wlb_field_text(fault, "kind", ""), "rank_lost") == 0;
	return follows && json_is_integer(rank) ? json_integer_value(rank) : -1;
}

static void add_node(json_t *nodes, const char *name)
{
	size_t i;
	const json_t *node;
	json_array_foreach(nodes, i, node) if (strcmp(json_string_value(node), name) == 0) return;
	json_array_append_new(nodes, json_string(name));
}

static int add_rank(struct group *group, size_t index, size_t most, const json_t *fault, json_int_t rank)
{
	const json_t *listed = json_array_get(json_object_get(fault, "nodes"), 0);
	const char *node = json_is_string(listed) ? json_string_value(listed) : wlb_field_text(fault, "node", NULL);
	if (group->count == 0) {
		group->first = index;
		group->ranks = calloc(most, sizeof(*group->ranks));
	}
	if (group->ranks == NULL)
		return -1;
	group->ranks[group->count++] = (struct ended_rank){(int)rank, node};
	return 0;
}

static int compare(const void *a, const void *b)
{
	int first = ((const struct ended_rank *)a)->rank, second = ((const struct ended_rank *)b)->rank;
	return (first > second) - (first < second);
}

/* "7 more ranks ended after it: 1-7 on n[1-4]"; gives the entry their nodes, in the order of ranks. */
static int describe(const struct group *group, json_t *entry, char *text, size_t size)
{
	char ranks_text[RANKS_COLUMNS + 1], nodes_text[128];
	int *ranks = calloc((size_t)group->count, sizeof(*ranks));
	json_t *nodes = json_array();
	if (ranks == NULL || json_object_set_new(entry, "nodes", nodes) != 0) {
		free(ranks);
		return -1;
	}
	qsort(group->ranks, (size_t)group->count, sizeof(*group->ranks), compare);
	for (int i = 0; i < group->count; i++) {
		ranks[i] = group->ranks[i].rank;
		if (group->ranks[i].node != NULL)
			add_node(nodes, group->ranks[i].node);
	}
	wlb_ranks_format(ranks, group->count, RANKS_COLUMNS, ranks_text, sizeof(ranks_text));
	free(ranks);
	wlb_field_nodes(entry, nodes_text, sizeof(nodes_text));
	snprintf(text, size, "%s%d more ranks ended after it: %s on %s",
	         group->count >= RECORDED_MOST ? "at least " : "", group->count, ranks_text, nodes_text);
	return 0;
}

/* The entry that stands for a group: the first of its ranks, changed. */
static json_t *folded(const struct group *group, const json_t *first)
{
	char text[256];
	json_t *entry = json_copy((json_t *)first);
	if (entry == NULL || describe(group, entry, text, sizeof(text)) != 0) {
		json_decref(entry);
		return NULL;
	}
	json_object_set_new(entry, json_object_get(first, "evidence") != NULL ? "evidence" : "detail",
	                    json_string(text));
	json_object_set_new(entry, "rank_count", json_integer(group->count));
	json_object_del(entry, "ranks");
	json_object_del(entry, "rank");
	json_object_del(entry, "node");
	json_object_del(entry, "step");
	return entry;
}

static int find_groups(const json_t *faults, struct groups *groups)
{
	size_t i;
	const json_t *fault;
	json_array_foreach(faults, i, fault)
	{
		struct group *group = find_group(groups, fault);
		json_int_t rank = following_rank(fault);
		group->has_cause = group->has_cause || json_is_true(json_object_get(fault, "cause"));
		if (rank >= 0 && add_rank(group, i, json_array_size(faults), fault, rank) != 0)
			return -1;
	}
	return 0;
}

static int add_entry(json_t *kept, struct groups *groups, size_t index, const json_t *fault)
{
	const struct group *group = find_group(groups, fault);
	if (!group->has_cause || group->count < 2 || following_rank(fault) < 0)
		return json_array_append(kept, (json_t *)fault);
	return index == group->first ? json_array_append_new(kept, folded(group, fault)) : 0;
}

json_t *wlb_faults_fold(const json_t *faults)
{
	struct groups groups = {.list = calloc(json_array_size(faults) + 1, sizeof(*groups.list))};
	json_t *kept = json_array();
	size_t i;
	const json_t *fault;
	int rc = groups.list != NULL && kept != NULL ? find_groups(faults, &groups) : -1;
	json_array_foreach(faults, i, fault) if (rc == 0) rc = add_entry(kept, &groups, i, fault);
	for (i = 0; i < groups.count; i++)
		free(groups.list[i].ranks);
	free(groups.list);
	if (rc == 0)
		return kept;
	json_decref(kept);
	return NULL;
}
