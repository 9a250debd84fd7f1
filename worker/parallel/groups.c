#include "worker/parallel/groups.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns how many tensor-parallel ranks hold the same key head. */
static int key_head_holders(int tp, const struct wlb_model *model)
{
	return tp > model->num_key_value_heads ? tp / (int)model->num_key_value_heads : 1;
}

/* Every rank splits off all groups, in the same order. The place of its first member distinguishes a group from others
 * of its kind. */
static int open_groups(struct wlb_groups *g, int shared_head, const struct wlb_model *model, struct wlb_error *error)
{
	const struct wlb_layout *layout = &g->layout;
	const struct wlb_coordinates coords = g->coords;
	int holders = key_head_holders(layout->tp, model);
	int is_end = model->tie_word_embeddings && (coords.pp == 0 || coords.pp == layout->pp - 1);
	int is_tied = is_end || shared_head;
	const struct {
		struct wlb_comm **group;
		const char *name;
		struct wlb_coordinates first;
		int key;
	} splits[] = {
		{&g->tp, "tp", {.tp = 0, coords.cp, coords.pp, coords.dp}, coords.tp},
		{&g->cp, "cp", {coords.tp, .cp = 0, coords.pp, coords.dp}, coords.cp},
		{&g->data, "data", {coords.tp, .cp = 0, coords.pp, .dp = 0}, coords.dp * layout->cp + coords.cp},
		{&g->kv, "kv", {.tp = coords.tp - coords.tp % holders, coords.cp, coords.pp, coords.dp}, coords.tp},
		{&g->tied, "tied", {coords.tp, coords.cp, .pp = is_tied ? 0 : coords.pp, coords.dp}, coords.pp},
	};
	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		int color = wlb_layout_place(layout, &splits[i].first);
		*splits[i].group = wlb_comm_split(g->world, color, splits[i].key, splits[i].name, error);
		if (*splits[i].group == NULL)
			return -1;
	}
	g->key_groups[g->key_group_count++] = g->cp;
	return 0;
}

/* Splits off the group of `size` ranks of the data group that this rank is in. */
static int open_key_group(struct wlb_groups *g, int size, struct wlb_error *error)
{
	int cp = g->layout.cp, ranks = cp * g->layout.dp, own = g->coords.dp * cp + g->coords.cp;
	int first = own - own % size;
	if (first + size > ranks)
		first = own;
	const struct wlb_coordinates place = {g->coords.tp, first % cp, g->coords.pp, first / cp};
	char name[32];
	snprintf(name, sizeof(name), "cp of %d", size);
	struct wlb_comm *group = wlb_comm_split(g->world, wlb_layout_place(&g->layout, &place), own, name, error);
	if (group == NULL)
		return -1;
	g->key_groups[g->key_group_count++] = group;
	return 0;
}

/* Every rank splits off all sizes, in the same order. */
static int open_key_groups(struct wlb_groups *g, struct wlb_error *error)
{
	int size = g->layout.cp * g->layout.dp;
	for (;; size = wlb_dynamic_cp_smaller(size)) {
		if (size != g->layout.cp && open_key_group(g, size, error) < 0)
			return -1;
		if (size == 1)
			return 0;
	}
}

/* The edges of the ring of stages that are split off together: no stage has two of them. Edge i joins stage i and the
 * one after it. The last edge is apart, since it meets the first where the number of stages is odd. */
enum edges { EVEN_EDGES, ODD_EDGES, LAST_EDGE, EDGE_SETS };

static int edge_is_in(int edge, int stages, enum edges edges)
{
	return edge == stages - 1 ? edges == LAST_EDGE : edge % 2 == (int)edges;
}

/* Splits off one of these sets for one kind of message. The rank of a stage without an edge of it is alone there, and
 * closes that communicator. */
static int open_edges(struct wlb_groups *g, enum edges edges, int backward, struct wlb_error *error)
{
	int stages = g->layout.pp, own = g->coords.pp, edge = (own + stages - 1) % stages;
	if (edge_is_in(own, stages, edges))
		edge = own;
	int has_edge = edge_is_in(edge, stages, edges), is_sender = (edge == own) != backward;
	struct wlb_coordinates first = g->coords;
	first.pp = has_edge ? edge : own;
	char name[32];
	int before = edge, after = (edge + 1) % stages;
	snprintf(name, sizeof(name), backward ? "pp_back %d>%d" : "pp %d>%d", backward ? after : before,
	         backward ? before : after);
	struct wlb_comm *comm = wlb_comm_split(g->world, wlb_layout_place(&g->layout, &first), !is_sender, name, error);
	if (comm == NULL)
		return -1;
	if (!has_edge)
		wlb_comm_close(comm);
	else if (is_sender)
		*(backward ? &g->gradients_out : &g->activations_out) = comm;
	else
		*(backward ? &g->gradients_in : &g->activations_in) = comm;
	return 0;
}

/* A stage that is the only one has no neighbour: communicators of one rank. */
static int open_no_edges(struct wlb_groups *g, struct wlb_error *error)
{
	struct wlb_comm **edges[] = {&g->activations_in, &g->activations_out, &g->gradients_in, &g->gradients_out};
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		*edges[i] = wlb_comm_split(g->world, g->place, 0, i < 2 ? "pp" : "pp_back", error);
		if (*edges[i] == NULL)
			return -1;
	}
	return 0;
}

/* Every rank splits off all sets, in the same order. */
static int open_pipeline(struct wlb_groups *g, struct wlb_error *error)
{
	if (g->layout.pp == 1)
		return open_no_edges(g, error);
	for (int edges = EVEN_EDGES; edges < EDGE_SETS; edges++)
		for (int backward = 0; backward < 2; backward++)
			if (open_edges(g, (enum edges)edges, backward, error) < 0)
				return -1;
	return 0;
}

/* Splits off the communicator of one stage and the last. Returns -1 on failure; *comm stays NULL on other stages. */
static int open_head_edge(struct wlb_groups *g, int stage, int to_last, struct wlb_comm **comm, struct wlb_error *error)
{
	int last = g->layout.pp - 1, own = g->coords.pp, is_in = own == stage || own == last;
	struct wlb_coordinates first = g->coords;
	first.pp = is_in ? stage : own;
	char name[32];
	snprintf(name, sizeof(name), "head %d>%d", to_last ? stage : last, to_last ? last : stage);
	*comm = wlb_comm_split(g->world, wlb_layout_place(&g->layout, &first), (own == last) == to_last, name, error);
	if (*comm == NULL)
		return -1;
	if (!is_in) {
		wlb_comm_close(*comm);
		*comm = NULL;
	}
	return 0;
}

/* Every rank splits off all of them, in the same order. */
static int open_shared_head(struct wlb_groups *g, struct wlb_error *error)
{
	int others = g->layout.pp - 1;
	g->head_rows = calloc((size_t)others, sizeof(struct wlb_comm *));
	g->head_gradients = calloc((size_t)others, sizeof(struct wlb_comm *));
	if (g->head_rows == NULL || g->head_gradients == NULL)
		return wlb_fail(error, "out of memory for the communicators of %d stages", others + 1);
	for (int s = 0; s < others; s++)
		if (open_head_edge(g, s, 0, &g->head_rows[s], error) < 0 ||
		    open_head_edge(g, s, 1, &g->head_gradients[s], error) < 0)
			return -1;
	return 0;
}

struct wlb_groups *wlb_groups_open(struct wlb_comm *world, const struct wlb_plan *plan, int place,
                                   const struct wlb_model *model, struct wlb_error *error)
{
	struct wlb_groups *groups = calloc(1, sizeof(*groups));
	if (groups == NULL) {
		wlb_fail(error, "out of memory for the groups of place %d in the layout", place);
		return NULL;
	}
	groups->layout = plan->layout;
	groups->place = place;
	groups->coords = wlb_layout_coordinates(&plan->layout, place);
	groups->world = world;
	if (open_groups(groups, plan->shared_head, model, error) == 0 && open_pipeline(groups, error) == 0 &&
	    (plan->dynamic_cp == 0 || open_key_groups(groups, error) == 0) &&
	    (!plan->shared_head || open_shared_head(groups, error) == 0))
		return groups;
	wlb_groups_close(groups);
	return NULL;
}

void wlb_groups_progress(const struct wlb_groups *groups)
{
	wlb_comm_progress(groups->activations_in);
	wlb_comm_progress(groups->activations_out);
	wlb_comm_progress(groups->gradients_in);
	wlb_comm_progress(groups->gradients_out);
	wlb_comm_progress(groups->data);
	for (int s = 0; wlb_groups_share_head(groups, s); s++) {
		if (groups->head_rows[s] == NULL)
			continue;
		wlb_comm_progress(groups->head_rows[s]);
		wlb_comm_progress(groups->head_gradients[s]);
	}
}

void wlb_groups_close(struct wlb_groups *groups)
{
	if (groups == NULL)
		return;
	for (int s = groups->layout.pp - 2; s >= 0; s--) {
		if (groups->head_gradients != NULL)
			wlb_comm_close(groups->head_gradients[s]);
		if (groups->head_rows != NULL)
			wlb_comm_close(groups->head_rows[s]);
	}
	free(groups->head_gradients);
	free(groups->head_rows);
	while (groups->key_group_count > 1)
		wlb_comm_close(groups->key_groups[--groups->key_group_count]);
	wlb_comm_close(groups->gradients_out);
	wlb_comm_close(groups->gradients_in);
	wlb_comm_close(groups->activations_out);
	wlb_comm_close(groups->activations_in);
	wlb_comm_close(groups->tied);
	wlb_comm_close(groups->kv);
	wlb_comm_close(groups->data);
	wlb_comm_close(groups->cp);
	wlb_comm_close(groups->tp);
	free(groups);
}
