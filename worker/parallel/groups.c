#include "worker/parallel/groups.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns how many tensor-parallel ranks hold the same key head. */
static int key_head_holders(int tp, const struct wlb_model *model)
{
	return tp > model->num_key_value_heads ? tp / (int)model->num_key_value_heads : 1;
}

/* The splits of all groups, in the same order on every rank. A split has the place of the group's first member as its
 * color, which distinguishes the group from others of its kind. */
struct splits {
	struct wlb_comm_split *list;
	int count;
};

static struct wlb_comm_split *add(struct splits *splits, struct wlb_comm **comm, int color, int key)
{
	struct wlb_comm_split *split = &splits->list[splits->count++];
	*split = (struct wlb_comm_split){.comm = comm, .color = color, .key = key};
	return split;
}

static void add_groups(struct splits *splits, struct wlb_groups *g, int shared_head, const struct wlb_model *model)
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
	} groups[] = {
		{&g->tp, "tp", {.tp = 0, coords.cp, coords.pp, coords.dp}, coords.tp},
		{&g->cp, "cp", {coords.tp, .cp = 0, coords.pp, coords.dp}, coords.cp},
		{&g->data, "data", {coords.tp, .cp = 0, coords.pp, .dp = 0}, coords.dp * layout->cp + coords.cp},
		{&g->kv, "kv", {.tp = coords.tp - coords.tp % holders, coords.cp, coords.pp, coords.dp}, coords.tp},
		{&g->tied, "tied", {coords.tp, coords.cp, .pp = is_tied ? 0 : coords.pp, coords.dp}, coords.pp},
	};
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		struct wlb_comm_split *split =
			add(splits, groups[i].group, wlb_layout_place(layout, &groups[i].first), groups[i].key);
		snprintf(split->name, sizeof(split->name), "%s", groups[i].name);
	}
}

/* The group of `size` ranks of the data group that this rank is in. */
static void add_key_group(struct splits *splits, struct wlb_groups *g, int size)
{
	int cp = g->layout.cp, ranks = cp * g->layout.dp, own = g->coords.dp * cp + g->coords.cp;
	int first = own - own % size;
	if (first + size > ranks)
		first = own;
	const struct wlb_coordinates place = {g->coords.tp, first % cp, g->coords.pp, first / cp};
	struct wlb_comm_split *split =
		add(splits, &g->key_groups[g->key_group_count++], wlb_layout_place(&g->layout, &place), own - first);
	snprintf(split->name, sizeof(split->name), "cp of %d", size);
}

/* Those of every size but cp. */
static void add_key_groups(struct splits *splits, struct wlb_groups *g)
{
	int size = g->layout.cp * g->layout.dp;
	for (;; size = wlb_dynamic_cp_smaller(size)) {
		if (size != g->layout.cp)
			add_key_group(splits, g, size);
		if (size == 1)
			return;
	}
}

/* The edges of the ring of stages that are split off together: no stage has two of them. Edge i joins stage i and the
 * one after it. The last edge is apart, since it meets the first where the number of stages is odd. */
enum edges { EVEN_EDGES, ODD_EDGES, LAST_EDGE, EDGE_SETS };

static int edge_is_in(int edge, int stages, enum edges edges)
{
	return edge == stages - 1 ? edges == LAST_EDGE : edge % 2 == (int)edges;
}

static int place_of_stage(const struct wlb_groups *g, int stage)
{
	struct wlb_coordinates at = g->coords;
	at.pp = stage;
	return wlb_layout_place(&g->layout, &at);
}

/* One of these sets for one kind of message. The rank of a stage without an edge of it is in no group. */
static void add_edges(struct splits *splits, struct wlb_groups *g, enum edges edges, int backward)
{
	int stages = g->layout.pp, own = g->coords.pp, edge = (own + stages - 1) % stages;
	if (edge_is_in(own, stages, edges))
		edge = own;
	int has_edge = edge_is_in(edge, stages, edges), is_sender = (edge == own) != backward;
	struct wlb_comm **comm = is_sender ? (backward ? &g->gradients_out : &g->activations_out)
	                                   : (backward ? &g->gradients_in : &g->activations_in);
	struct wlb_comm_split *split = add(splits, comm, has_edge ? place_of_stage(g, edge) : -1, !is_sender);
	int before = edge, after = (edge + 1) % stages;
	snprintf(split->name, sizeof(split->name), backward ? "pp_back %d>%d" : "pp %d>%d", backward ? after : before,
	         backward ? before : after);
}

/* A stage that is the only one has no neighbour: communicators of one rank. */
static void add_no_edges(struct splits *splits, struct wlb_groups *g)
{
	struct wlb_comm **edges[] = {&g->activations_in, &g->activations_out, &g->gradients_in, &g->gradients_out};
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		struct wlb_comm_split *split = add(splits, edges[i], g->place, 0);
		snprintf(split->name, sizeof(split->name), i < 2 ? "pp" : "pp_back");
	}
}

static void add_pipeline(struct splits *splits, struct wlb_groups *g)
{
	if (g->layout.pp == 1) {
		add_no_edges(splits, g);
		return;
	}
	for (int edges = EVEN_EDGES; edges < EDGE_SETS; edges++)
		for (int backward = 0; backward < 2; backward++)
			add_edges(splits, g, (enum edges)edges, backward);
}

/* The communicator of one stage and the last; other stages are in no group. */
static void add_head_edge(struct splits *splits, struct wlb_groups *g, int stage, int to_last, struct wlb_comm **comm)
{
	int last = g->layout.pp - 1, own = g->coords.pp, is_in = own == stage || own == last;
	struct wlb_comm_split *split =
		add(splits, comm, is_in ? place_of_stage(g, stage) : -1, (own == last) == to_last);
	snprintf(split->name, sizeof(split->name), "head %d>%d", to_last ? stage : last, to_last ? last : stage);
}

static int add_shared_head(struct splits *splits, struct wlb_groups *g, struct wlb_error *error)
{
	int others = g->layout.pp - 1;
	g->head_rows = calloc((size_t)others, sizeof(struct wlb_comm *));
	g->head_gradients = calloc((size_t)others, sizeof(struct wlb_comm *));
	if (g->head_rows == NULL || g->head_gradients == NULL)
		return wlb_fail(error, "out of memory for the communicators of %d stages", others + 1);
	for (int s = 0; s < others; s++) {
		add_head_edge(splits, g, s, 0, &g->head_rows[s]);
		add_head_edge(splits, g, s, 1, &g->head_gradients[s]);
	}
	return 0;
}

/* Splits off all groups and connects them, with the world, side by side. */
static int split_and_connect(struct wlb_groups *g, const struct splits *splits, struct wlb_error *error)
{
	struct wlb_comm **comms = calloc((size_t)splits->count + 1, sizeof(struct wlb_comm *));
	if (comms == NULL)
		return wlb_fail(error, "out of memory for %d communicators", splits->count);
	int rc = wlb_comm_split_all(g->world, splits->list, splits->count, error);
	comms[0] = g->world;
	for (int i = 0; i < splits->count; i++)
		comms[i + 1] = splits->list[i].color >= 0 ? *splits->list[i].comm : NULL;
	if (rc == 0)
		rc = wlb_comm_connect(comms, splits->count + 1, error);
	free(comms);
	return rc;
}

static int open_all(struct wlb_groups *g, const struct wlb_plan *plan, const struct wlb_model *model,
                    struct wlb_error *error)
{
	enum { MOST_WITHOUT_HEAD = 5 + WLB_DYNAMIC_CP_SIZES + 2 * EDGE_SETS };
	const size_t most = MOST_WITHOUT_HEAD + 2 * (size_t)g->layout.pp;
	struct splits splits = {.list = calloc(most, sizeof(*splits.list))};
	if (splits.list == NULL)
		return wlb_fail(error, "out of memory for %zu communicators", most);
	g->key_group_count = 1;
	add_groups(&splits, g, plan->shared_head, model);
	if (plan->dynamic_cp > 0)
		add_key_groups(&splits, g);
	add_pipeline(&splits, g);
	int rc = plan->shared_head ? add_shared_head(&splits, g, error) : 0;
	if (rc == 0)
		rc = split_and_connect(g, &splits, error);
	g->key_groups[0] = g->cp;
	free(splits.list);
	return rc;
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
	if (open_all(groups, plan, model, error) == 0)
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
