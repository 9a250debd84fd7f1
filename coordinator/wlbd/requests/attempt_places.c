#include "coordinator/wlbd/requests/attempt_places.h"

#include <stdlib.h>

#include "coordinator/wlbd/http/fields.h"

/* Reads the number of ranks on each node. Ranks on a node that wlbd did not choose are counted in `ranks` alone. */
static int read_ranks(const json_t *ranks_on, struct wlbd_attempt_places *places)
{
	const char *node;
	json_t *ranks;
	places->ranks_on = calloc((size_t)places->nodes.count + 1, sizeof(*places->ranks_on));
	if (places->ranks_on == NULL)
		return -1;
	json_object_foreach((json_t *)ranks_on, node, ranks)
	{
		int at = wlbd_names_find(&places->nodes, node);
		if (at >= 0)
			places->ranks_on[at] = (int)json_integer_value(ranks);
		places->ranks += (int)json_integer_value(ranks);
	}
	return 0;
}

/* Returns the names of the members; NULL if out of memory. */
static json_t *keys_of(const json_t *object)
{
	const char *key;
	json_t *value, *keys = json_array();
	json_object_foreach((json_t *)object, key, value) json_array_append_new(keys, json_string(key));
	return keys;
}

int wlbd_attempt_places_read(const json_t *result, struct wlbd_attempt_places *places, struct wlb_error *error)
{
	const json_t *nodes = NULL, *ranks_on = NULL;
	int64_t tasks = 0;
	*places = (struct wlbd_attempt_places){0};
	if (wlbd_field_names(result, "nodes", WLBD_OPTIONAL, WLBD_NODES_MOST, &nodes, error) != 0 ||
	    wlbd_field_integer(result, "tasks_per_node", WLBD_OPTIONAL, 1, WLBD_RANKS_MOST, &tasks, error) != 0 ||
	    wlbd_field_object(result, "ranks_on", WLBD_OPTIONAL, &ranks_on, error) != 0)
		return -1;
	places->tasks_per_node = nodes != NULL ? (int)tasks : 0;
	json_t *names = places->tasks_per_node > 0 ? json_incref((json_t *)nodes) : keys_of(ranks_on);
	int rc = wlbd_names_from_json(&places->nodes, names);
	json_decref(names);
	if (rc == 0 && ranks_on != NULL)
		rc = read_ranks(ranks_on, places);
	return rc == 0 ? 0 : wlb_fail(error, "out of memory for the nodes of an attempt");
}

void wlbd_attempt_places_free(struct wlbd_attempt_places *places)
{
	wlbd_names_free(&places->nodes);
	free(places->ranks_on);
	*places = (struct wlbd_attempt_places){0};
}
