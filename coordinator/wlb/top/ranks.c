#include "coordinator/wlb/top/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The columns of a row. */
enum { RANK, NODE, AGE_MS, STEP, ACTIVITY, FOR_MS, PROCESS, CALL, GROUPS, LATE_US };
enum { CALL_KIND, CALL_GROUP, CALL_SEQ, CALL_BYTES, CALL_FOR_MS };

static int64_t number_at(const json_t *row, size_t column)
{
	return json_integer_value(json_array_get(row, column));
}

static double seconds_at(const json_t *row, size_t column)
{
	return 1e-3 * (double)number_at(row, column);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Returns how many groups the row has. */
static int read_groups(const json_t *row, struct wlb_top_group *groups)
{
	const json_t *list = json_array_get(row, GROUPS);
	size_t count = json_array_size(list);
	for (size_t i = 0; i < count; i++) {
		const json_t *group = json_array_get(list, i);
		const char *name = json_string_value(json_array_get(group, 0));
		int64_t ranks = number_at(group, 1);
		groups[i] = (struct wlb_top_group){.ranks = ranks > 0 ? (int)ranks : 1,
		                                   .entered = number_at(group, 2),
		                                   .left = number_at(group, 3)};
		snprintf(groups[i].name, sizeof(groups[i].name), "%s", name != NULL ? name : "?");
	}
	return (int)count;
}

static void read_call(const json_t *call, struct wlb_top_rank *rank)
{
	int64_t group = number_at(call, CALL_GROUP);
	if (!json_is_array(call) || group < 0 || group >= rank->group_count)
		return;
	rank->call = json_string_value(json_array_get(call, CALL_KIND));
	rank->call_group = &rank->groups[group];
	rank->call_seq = number_at(call, CALL_SEQ);
	rank->call_bytes = number_at(call, CALL_BYTES);
	rank->call_for_s = rank->age_s + seconds_at(call, CALL_FOR_MS);
}

/* A row of two columns is of a rank that was not reported. */
static void read_row(const json_t *row, struct wlb_top_rank *rank, struct wlb_top_group *groups)
{
	const json_t *node = json_array_get(row, NODE);
	*rank = (struct wlb_top_rank){.rank = (int)number_at(row, RANK), .place = -1, .verdict = -1, .groups = groups};
	rank->node = json_is_integer(node) ? (int)json_integer_value(node) : -1;
	rank->activity = json_string_value(json_array_get(row, ACTIVITY));
	rank->process = json_string_value(json_array_get(row, PROCESS));
	rank->is_reported = rank->activity != NULL && rank->process != NULL;
	if (!rank->is_reported)
		return;
	rank->age_s = seconds_at(row, AGE_MS);
	bool has_step = json_is_integer(json_array_get(row, STEP));
	rank->step = has_step ? number_at(row, STEP) : -1;
	rank->for_s = has_step ? rank->age_s + seconds_at(row, FOR_MS) : 0.0;
	rank->late_s = 1e-6 * (double)number_at(row, LATE_US);
	rank->group_count = read_groups(row, groups);
	read_call(json_array_get(row, CALL), rank);
}

static int read_rows(const json_t *rows, struct wlb_top_ranks *ranks, struct wlb_error *error)
{
	size_t count = json_array_size(rows), all_groups = 0, used = 0;
	for (size_t i = 0; i < count; i++)
		all_groups += json_array_size(json_array_get(json_array_get(rows, i), GROUPS));
	ranks->list = calloc(count + 1, sizeof(*ranks->list));
	ranks->groups = calloc(all_groups + 1, sizeof(*ranks->groups));
	if (ranks->list == NULL || ranks->groups == NULL)
		return wlb_fail(error, "out of memory for the ranks");
	for (size_t i = 0; i < count; i++) {
		struct wlb_top_rank *rank = &ranks->list[i];
		read_row(json_array_get(rows, i), rank, ranks->groups + used);
		used += (size_t)rank->group_count;
		if (rank->rank != (int)i || rank->node < -1 || rank->node >= ranks->node_count)
			return wlb_fail(
				error,
				"the coordinator's reply has rank %d in row %zu, on node %d of the %d that it names",
				rank->rank, i, rank->node, ranks->node_count);
		ranks->reported += rank->is_reported;
		if (rank->is_reported && rank->step > ranks->last_step)
			ranks->last_step = rank->step;
	}
	ranks->count = (int)count;
	return 0;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Ranks take their places node by node, as wlb_nodes_place says. Where the node of a rank is not known, ranks are taken
 * to be in the order of their places, as `wlb run` starts them. Returns -1 if out of memory. */
static int find_places(struct wlb_top_ranks *ranks)
{
	int *next = calloc((size_t)ranks->node_count + 1, sizeof(*next)); /* the next place on each node */
	bool all_known = true;
	if (next == NULL)
		return -1;
	for (int i = 0; i < ranks->count; i++) {
		all_known = all_known && ranks->list[i].node >= 0;
		if (all_known)
			next[ranks->list[i].node + 1]++;
	}
	for (int node = 1; node < ranks->node_count; node++)
		next[node] += next[node - 1];
	for (int i = 0; i < ranks->count; i++) {
		struct wlb_top_rank *rank = &ranks->list[i];
		int place = all_known ? next[rank->node]++ : rank->rank;
		if (place >= wlb_layout_ranks(&ranks->layout)) /* the layout leaves it idle */
			continue;
		rank->place = place;
		rank->at = wlb_layout_coordinates(&ranks->layout, place);
	}
	free(next);
	return 0;
}

static bool read_layout(const json_t *object, struct wlb_layout *layout)
{
	return json_unpack((json_t *)object, "{s:i, s:i, s:i, s:i}", "tp", &layout->tp, "cp", &layout->cp, "pp",
	                   &layout->pp, "dp", &layout->dp) == 0 &&
	       layout->tp > 0 && layout->cp > 0 && layout->pp > 0 && layout->dp > 0;
}

/* Confirmed verdicts come before suspected ones. */
static void mark_named(struct wlb_top_ranks *ranks, bool is_confirmed)
{
	for (int i = 0; i < ranks->verdicts.count; i++) {
		const json_t *named = json_object_get(ranks->verdicts.list[i].entry, "ranks");
		for (size_t k = 0; k < json_array_size(named) && ranks->verdicts.list[i].is_confirmed == is_confirmed;
		     k++) {
			int64_t rank = number_at(named, k);
			if (json_is_integer(json_array_get(named, k)) && rank >= 0 && rank < ranks->count &&
			    ranks->list[rank].verdict < 0)
				ranks->list[rank].verdict = i;
		}
	}
}

/* ---- the reply --------------------------------------------------------------------------------------------------- */

static int read_nodes(const json_t *names, struct wlb_top_ranks *ranks)
{
	ranks->nodes = calloc(json_array_size(names) + 1, sizeof(*ranks->nodes));
	if (ranks->nodes == NULL)
		return -1;
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));
		ranks->nodes[i] = name != NULL ? name : "?";
	}
	ranks->node_count = (int)json_array_size(names);
	return 0;
}

int wlb_top_ranks_read(const json_t *reply, struct wlb_top_ranks *ranks, struct wlb_error *error)
{
	const json_t *rows = json_object_get(reply, "ranks");
	*ranks = (struct wlb_top_ranks){0};
	if (!json_is_array(rows))
		return wlb_fail(error, "the coordinator's reply has no ranks");
	ranks->omitted = (int)json_integer_value(json_object_get(reply, "left_out"));
	ranks->has_layout = read_layout(json_object_get(reply, "layout"), &ranks->layout);
	if (read_nodes(json_object_get(reply, "nodes"), ranks) != 0)
		return wlb_fail(error, "out of memory for the nodes");
	if (read_rows(rows, ranks, error) != 0)
		return -1;
	if (ranks->has_layout && find_places(ranks) != 0)
		return wlb_fail(error, "out of memory for the places of ranks");
	if (wlb_top_verdicts_read(reply, &ranks->verdicts) != 0)
		return wlb_fail(error, "out of memory for the verdicts");
	mark_named(ranks, true);
	mark_named(ranks, false);
	return 0;
}

void wlb_top_ranks_free(struct wlb_top_ranks *ranks)
{
	free(ranks->list);
	free(ranks->groups);
	free(ranks->nodes);
	wlb_top_verdicts_free(&ranks->verdicts);
	*ranks = (struct wlb_top_ranks){0};
}

const struct wlb_top_group *wlb_top_rank_group(const struct wlb_top_rank *rank, const char *name)
{
	for (int i = 0; i < rank->group_count; i++)
		if (strcmp(rank->groups[i].name, name) == 0)
			return &rank->groups[i];
	return NULL;
}

const char *wlb_top_rank_node(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank)
{
	return rank->node >= 0 ? ranks->nodes[rank->node] : "?";
}
