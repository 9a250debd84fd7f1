#include "coordinator/wlbd/api/attempts/attempt_body.h"

#include <stdlib.h>

#include "coordinator/wlbd/api/policy.h"
#include "coordinator/wlbd/api/step_id.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/rules/name_index.h"

enum { TASKS_PER_NODE_MAX = 4096, STEP_ID_MAX = 31, EXIT_CODE_MAX = 255 };

static int read_policy(struct wlbd_attempt_body *out, struct wlb_error *error)
{
	const char *layout = "auto";
	if (out->policy != NULL &&
	    (wlbd_policy_check(out->policy, error) != 0 ||
	     wlbd_field_text(out->policy, "layout", WLBD_OPTIONAL, WLBD_NAME_MAX, &layout, error) != 0 ||
	     wlbd_field_integer(out->policy, "min_nodes", WLBD_OPTIONAL, 0, WLBD_NODES_MAX, &out->min_nodes, error) !=
	             0 ||
	     wlbd_field_integer(out->policy, "spares", WLBD_OPTIONAL, 0, WLBD_NODES_MAX, &out->spares, error) != 0))
		return -1;
	return wlb_policy_parse(layout, &out->layout, error);
}

static int read_previous(const char *run, const json_t *body, struct wlbd_previous_attempt *out,
                         struct wlb_error *error)
{
	const json_t *previous = NULL;
	if (wlbd_field_object(body, "previous", WLBD_OPTIONAL, &previous, error) != 0)
		return -1;
	if (previous == NULL)
		return 0;
	if (wlbd_field_uuid(previous, "attempt_id", &out->attempt_id, error) != 0 ||
	    wlbd_field_integer(previous, "exit_code", WLBD_REQUIRED, -EXIT_CODE_MAX, EXIT_CODE_MAX, &out->exit_code,
	                       error) != 0 ||
	    wlbd_field_text(previous, "step_id", WLBD_OPTIONAL, STEP_ID_MAX, &out->step_id, error) != 0 ||
	    wlbd_first_exit_read(previous, &out->first_exit, error) != 0)
		return wlb_fail_in(error, "previous");
	/* Empty: the step ended before its launcher knew its number. */
	if (out->step_id != NULL && out->step_id[0] == '\0')
		out->step_id = NULL;
	if (out->step_id != NULL && wlbd_step_id_check(run, out->step_id, error) != 0)
		return wlb_fail_in(error, "previous");
	return 0;
}

static int check_once(const json_t *nodes, struct wlb_error *error)
{
	struct wlbd_name_index index = {0};
	int count = (int)json_array_size(nodes);
	const char **names = calloc((size_t)count + 1, sizeof(*names));
	for (int i = 0; names != NULL && i < count; i++)
		names[i] = json_string_value(json_array_get(nodes, (size_t)i));
	int rc = names != NULL ? wlbd_name_index_make(&index, names, count) : -1;
	const char *repeated = rc == 0 ? wlbd_name_index_repeated(&index) : NULL;
	if (rc != 0)
		wlb_fail(error, "out of memory for %d names of nodes", count);
	else if (repeated != NULL)
		rc = wlb_fail(error, "field 'nodes': '%.100s' is there more than once: name each node once", repeated);
	wlbd_name_index_free(&index);
	free(names);
	return rc;
}

int wlbd_attempt_body_read(const char *run, const json_t *body, struct wlbd_attempt_body *out, struct wlb_error *error)
{
	static const char *const on_rank_exit[] = {"end", "continue", NULL};
	*out = (struct wlbd_attempt_body){
		.tasks_per_node = 1, .on_rank_exit = "end", .previous = {.exit_code = WLBD_EXIT_UNKNOWN}};
	if (wlbd_field_uuid(body, "attempt_id", &out->attempt_id, error) != 0 ||
	    wlbd_field_names(body, "nodes", WLBD_REQUIRED, WLBD_NODES_MAX, &out->nodes, error) != 0 ||
	    check_once(out->nodes, error) != 0 ||
	    wlbd_field_integer(body, "tasks_per_node", WLBD_OPTIONAL, 1, TASKS_PER_NODE_MAX, &out->tasks_per_node,
	                       error) != 0 ||
	    wlbd_field_choice(body, "on_rank_exit", WLBD_OPTIONAL, on_rank_exit, &out->on_rank_exit, error) != 0 ||
	    wlbd_field_object(body, "policy", WLBD_OPTIONAL, &out->policy, error) != 0 ||
	    read_policy(out, error) != 0 || wlbd_links_body_read(body, out->nodes, &out->links, error) != 0)
		return -1;
	return read_previous(run, body, &out->previous, error);
}
