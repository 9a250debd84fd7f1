#include "coordinator/wlbd/requests/plan_places.h"

#include <stdbool.h>
#include <stdlib.h>

#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/requests/plan_nodes.h"

/* `wlb run` records the first 32 switches. */
enum { SWITCHES_RECORDED = 32, PLANS_OF_NAMES = 8 };

/* Where a plan has a node: in `idle`, nowhere, or in an entry of `placement`, whose index is added to FIRST_ENTRY. */
enum { IN_IDLE = -1, NOWHERE = 0, FIRST_ENTRY = 1 };

struct check {
	const json_t *data;
	const struct wlbd_attempt_places *places;
	const struct wlbd_names *nodes; /* of the attempt */
	struct wlbd_names named;        /* those of the plan, where the attempt's are not known */
	int *names_left;
	int *place;           /* [nodes->count] */
	int *idle_on;         /* [nodes->count] ranks that idle_local_ranks names */
	int64_t ranks;        /* of the layout */
	int64_t idle_ranks;   /* as the plan counts them */
	int64_t idle_named;   /* those that it names */
	int64_t placed_ranks; /* of the entries of `placement` so far */
	bool is_cut;          /* the list of nodes that was read last */
};

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static int64_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* ---- lists of nodes ------------------------------------------------------------------------------------ */

/* Calls `take` with the index of each node of the list. */
static int each_node(struct check *c, const char *text,
                     int (*take)(struct check *c, int node, void *context, struct wlb_error *error), void *context,
                     struct wlb_error *error)
{
	struct wlbd_plan_nodes list;
	/* A list of each node twice is read, so that the message names one. */
	if (wlbd_plan_nodes_read(text, 2 * c->nodes->count, c->names_left, &list, error) != 0)
		return wlb_fail_in(error, "nodes");
	int rc = 0;
	for (int i = 0; rc == 0 && i < list.count; i++) {
		int node = wlbd_names_find(c->nodes, list.names[i]);
		rc = node >= 0 ? take(c, node, context, error)
		               : wlb_fail(error,
		                          "%s is none of the attempt's %d nodes, which begin with %s: name nodes that "
		                          "the attempt was started on",
		                          list.names[i], c->nodes->count, c->nodes->list[0]);
	}
	c->is_cut = list.is_cut;
	wlbd_plan_nodes_free(&list);
	return rc;
}

/* Adds the names of a list to a JSON array. */
static int collect_list(struct check *c, const char *text, json_t *names, struct wlb_error *error)
{
	struct wlbd_plan_nodes list;
	if (wlbd_plan_nodes_read(text, WLBD_CLAIMED_NODES_MOST, c->names_left, &list, error) != 0)
		return wlb_fail_in(error, "nodes");
	for (int i = 0; i < list.count; i++)
		json_array_append_new(names, json_string(list.names[i]));
	wlbd_plan_nodes_free(&list);
	return 0;
}

/* Takes the nodes that the plan names for those of an attempt of which wlbd knows none. */
static int collect_named(struct check *c, struct wlb_error *error)
{
	static const char *const lists[] = {"placement", "idle_local_ranks"};
	json_t *names = json_array();
	const char *idle = text_of(c->data, "idle");
	int rc = idle != NULL ? collect_list(c, idle, names, error) : 0;
	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
		const json_t *list = json_object_get(c->data, lists[k]);
		for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
			rc = collect_list(c, text_of(json_array_get(list, i), "nodes"), names, error);
	}
	if (rc == 0 && wlbd_names_from_json(&c->named, names) != 0)
		rc = wlb_fail(error, "out of memory for the nodes of a plan");
	json_decref(names);
	c->nodes = &c->named;
	return rc;
}

/* ---- the ranks of the layout ---------------------------------------------------------------------------- */

static int check_ranks(struct check *c, struct wlb_error *error)
{
	const json_t *layout = json_object_get(c->data, "layout");
	const struct wlbd_attempt_places *places = c->places;
	int64_t tp = number_of(layout, "tp"), tasks = (int64_t)places->nodes.count * places->tasks_per_node;
	c->ranks = tp * number_of(layout, "cp") * number_of(layout, "pp") * number_of(layout, "dp");
	c->idle_ranks = number_of(c->data, "idle_ranks");
	if (places->tasks_per_node > 0 && tp > places->tasks_per_node)
		return wlb_fail(error,
		                "layout: tp %lld must be at most the %d tasks of a node: plan with the attempt's "
		                "tasks_per_node",
		                (long long)tp, places->tasks_per_node);
	if (places->tasks_per_node > 0 && c->ranks + c->idle_ranks != tasks)
		return wlb_fail(error,
		                "layout of %lld ranks, %lld idle: must be %lld together, %d tasks on each of %d nodes: "
		                "plan for the nodes of the attempt, and count in idle_ranks what the layout leaves",
		                (long long)c->ranks, (long long)c->idle_ranks, (long long)tasks, places->tasks_per_node,
		                places->nodes.count);
	if (places->ranks_on != NULL && c->ranks != places->ranks)
		return wlb_fail(error,
		                "layout of %lld ranks: must be the %d that rank 0 recorded: record the plan that runs",
		                (long long)c->ranks, places->ranks);
	return 0;
}

/* ---- idle and placed nodes ------------------------------------------------------------------------------ */

static int take_idle(struct check *c, int node, void *context, struct wlb_error *error)
{
	(void)context;
	if (c->place[node] != NOWHERE)
		return wlb_fail(error, "%s is there twice: name each node once", c->nodes->list[node]);
	if (c->places->ranks_on != NULL && c->places->ranks_on[node] > 0)
		return wlb_fail(error, "%s must have no rank, and rank 0 recorded %d there: name nodes without a rank",
		                c->nodes->list[node], c->places->ranks_on[node]);
	c->place[node] = IN_IDLE;
	c->idle_named += c->places->tasks_per_node;
	return 0;
}

static int check_idle(struct check *c, struct wlb_error *error)
{
	const char *text = text_of(c->data, "idle");
	return text == NULL || each_node(c, text, take_idle, NULL, error) == 0 ? 0 : wlb_fail_in(error, "idle");
}

struct local_ranks {
	int64_t first, last;
};

static int take_local(struct check *c, int node, void *context, struct wlb_error *error)
{
	const struct local_ranks *idle = context;
	int count = (int)(idle->last - idle->first + 1), used = c->places->tasks_per_node - count;
	const char *name = c->nodes->list[node];
	if (c->place[node] == IN_IDLE)
		return wlb_fail(error, "%s is in 'idle' too: name each idle rank once", name);
	if (c->idle_on[node] > 0)
		return wlb_fail(error, "%s is there twice: name each node once", name);
	if (c->places->tasks_per_node > 0 && c->places->ranks_on != NULL && c->places->ranks_on[node] > used)
		return wlb_fail(error, "%s must have %d ranks at most, and rank 0 recorded %d there: name idle ranks",
		                name, used, c->places->ranks_on[node]);
	c->idle_on[node] = count;
	c->idle_named += count;
	return 0;
}

static int check_local_ranks(struct check *c, struct wlb_error *error)
{
	const json_t *list = json_object_get(c->data, "idle_local_ranks");
	int tasks = c->places->tasks_per_node;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		struct local_ranks idle = {number_of(entry, "first"), number_of(entry, "last")};
		int rc = 0;
		if (idle.last < idle.first)
			rc = wlb_fail(error, "last: %lld must not be below 'first', which is %lld",
			              (long long)idle.last, (long long)idle.first);
		else if (tasks > 0 && idle.last >= tasks)
			rc = wlb_fail(error,
			              "last: %lld must be below the %d tasks of a node, whose local ranks begin with 0",
			              (long long)idle.last, tasks);
		if (rc != 0 || each_node(c, text_of(entry, "nodes"), take_local, &idle, error) != 0)
			return wlb_fail_in(error, "idle_local_ranks[%zu]", i);
	}
	if (tasks == 0 || (json_array_size(list) > 0 ? c->idle_named == c->idle_ranks : c->idle_named <= c->idle_ranks))
		return 0;
	return wlb_fail(error,
	                "idle_ranks: %lld, and 'idle' and 'idle_local_ranks' name %lld ranks: name each idle rank once",
	                (long long)c->idle_ranks, (long long)c->idle_named);
}

/* An entry of `placement`: how many ranks its nodes can have, by what is known of them. */
struct entry {
	int place;
	int64_t least, most;
};

static int take_placed(struct check *c, int node, void *context, struct wlb_error *error)
{
	struct entry *entry = context;
	const struct wlbd_attempt_places *places = c->places;
	const char *name = c->nodes->list[node];
	int tasks = places->tasks_per_node > 0 ? places->tasks_per_node : WLBD_NODE_RANKS_MOST,
	    left = tasks - c->idle_on[node];
	if (c->place[node] == IN_IDLE)
		return wlb_fail(error, "%s is in 'idle' too: name each node once", name);
	if (c->place[node] != NOWHERE)
		return wlb_fail(error, "%s is in placement[%d] too: name each node once", name,
		                c->place[node] - FIRST_ENTRY);
	c->place[node] = entry->place;
	bool is_exact = places->tasks_per_node > 0 && c->idle_named == c->idle_ranks;
	entry->least += places->ranks_on != NULL ? places->ranks_on[node] : is_exact ? left : 1;
	entry->most += places->ranks_on != NULL ? places->ranks_on[node] : left;
	return 0;
}

static int refuse_ranks(const struct entry *entry, int64_t ranks, struct wlb_error *error)
{
	if (entry->least == entry->most)
		return wlb_fail(error, "ranks: %lld must be %lld, as many as the nodes have: place each rank once",
		                (long long)ranks, (long long)entry->least);
	return wlb_fail(error, "ranks: %lld must be from %lld to %lld, as the nodes have them: place each rank once",
	                (long long)ranks, (long long)entry->least, (long long)entry->most);
}

static int check_entry(struct check *c, const json_t *object, int place, struct wlb_error *error)
{
	struct entry entry = {.place = place};
	int64_t first = number_of(object, "first_rank"), ranks = number_of(object, "ranks");
	if (each_node(c, text_of(object, "nodes"), take_placed, &entry, error) != 0)
		return -1;
	if (c->is_cut)
		entry.most = c->ranks;
	if (first != c->placed_ranks)
		return wlb_fail(
			error, "first_rank: %lld must be %lld, the next after the entries before: place each rank once",
			(long long)first, (long long)c->placed_ranks);
	if (ranks < entry.least || ranks > entry.most)
		return refuse_ranks(&entry, ranks, error);
	c->placed_ranks += ranks;
	return 0;
}

static int check_placement(struct check *c, struct wlb_error *error)
{
	const json_t *list = json_object_get(c->data, "placement");
	size_t count = json_array_size(list);
	for (size_t i = 0; i < count; i++)
		if (check_entry(c, json_array_get(list, i), FIRST_ENTRY + (int)i, error) != 0)
			return wlb_fail_in(error, "placement[%zu]", i);
	if (count == 0 || c->placed_ranks == c->ranks || (count == SWITCHES_RECORDED && c->placed_ranks < c->ranks))
		return 0;
	return wlb_fail(error, "placement: %lld ranks: must be the %lld of the layout: place each rank once",
	                (long long)c->placed_ranks, (long long)c->ranks);
}

int wlbd_plan_names_most(const struct wlbd_attempt_places *places)
{
	return PLANS_OF_NAMES * (places->nodes.count > 0 ? places->nodes.count : WLBD_CLAIMED_NODES_MOST);
}

int wlbd_plan_places_check(const json_t *data, const struct wlbd_attempt_places *places, int *names_left,
                           struct wlb_error *error)
{
	struct check c = {.data = data, .places = places, .nodes = &places->nodes, .names_left = names_left};
	int rc = places->nodes.count > 0 ? 0 : collect_named(&c, error);
	if (rc == 0) {
		c.place = calloc((size_t)c.nodes->count + 1, sizeof(*c.place));
		c.idle_on = calloc((size_t)c.nodes->count + 1, sizeof(*c.idle_on));
		if (c.place == NULL || c.idle_on == NULL)
			rc = wlb_fail(error, "out of memory for the nodes of a plan");
	}
	if (rc == 0 && (check_ranks(&c, error) != 0 || check_idle(&c, error) != 0 ||
	                check_local_ranks(&c, error) != 0 || check_placement(&c, error) != 0))
		rc = -1;
	wlbd_names_free(&c.named);
	free(c.place);
	free(c.idle_on);
	return rc;
}
