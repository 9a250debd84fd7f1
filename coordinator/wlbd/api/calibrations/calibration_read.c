#include "coordinator/wlbd/api/calibrations/calibration_read.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/http/fields.h"
#include "planner/machine.h"
#include "planner/node_type.h"

enum { MACHINE_MAX_BYTES = 256 << 10 };

static int check_machine(const json_t *object, struct wlb_error *error)
{
	struct wlb_machine *machine = malloc(sizeof(*machine));
	char *text = json_dumps(object, JSON_COMPACT);
	int rc = text != NULL && machine != NULL ? wlb_machine_file_parse(text, strlen(text), machine, error)
	                                         : wlb_fail(error, "out of memory");
	if (rc == 0)
		rc = wlb_machine_plausible(machine, error);
	free(text);
	free(machine);
	return rc < 0 ? wlb_fail_in(error, "field 'machine'") : 0;
}

static int check_type(const char *type, struct wlb_error *error)
{
	for (const char *c = type; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			return wlb_fail(error, "field 'node_type' must be printable ASCII");
	if (*type == '\0' || strncmp(type, WLB_NODE_TYPE_UNKNOWN, strlen(WLB_NODE_TYPE_UNKNOWN)) == 0)
		return wlb_fail(error,
		                "field 'node_type': '%s' names no processor: nodes whose type is not known share no "
		                "calibration; name the file with WLB_MACHINE",
		                type);
	return 0;
}

static int check_nodes(const json_t *nodes, struct wlb_error *error)
{
	return json_array_size(nodes) > 0 ? 0 : wlb_fail(error, "field 'nodes' must name the nodes that were measured");
}

int wlbd_calibration_read(const json_t *body, struct wlbd_calibration *c, struct wlb_error *error)
{
	*c = (struct wlbd_calibration){0};
	if (wlbd_field_text(body, "node_type", WLBD_REQUIRED, WLBD_NODE_TYPE_MAX, &c->node_type, error) != 0 ||
	    check_type(c->node_type, error) != 0 ||
	    wlbd_field_integer(body, "ranks_per_node", WLBD_REQUIRED, 1, WLBD_NODE_RANKS_MAX, &c->ranks_per_node,
	                       error) != 0 ||
	    wlbd_field_integer(body, "job_id", WLBD_OPTIONAL, 1, UINT32_MAX, &c->job_id, error) != 0 ||
	    wlbd_field_names(body, "nodes", WLBD_REQUIRED, WLBD_NODES_MAX, &c->nodes, error) != 0 ||
	    check_nodes(c->nodes, error) != 0 ||
	    wlbd_field_object(body, "machine", WLBD_REQUIRED, &c->machine, error) != 0 ||
	    wlbd_field_bounded(body, "machine", MACHINE_MAX_BYTES, error) != 0)
		return -1;
	return check_machine(c->machine, error);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int wlbd_calibration_check_job(const struct wlbd_calibration *c, const struct wlb_slurm_job *job,
                               struct wlb_error *error)
{
	char **names = NULL;
	int count = 0, rc = 0;
	if (!job->running || job->nodes[0] == '\0')
		return wlb_fail(error, "job %u does not run: store a calibration before its job ends", job->job_id);
	if (wlb_hostlist_expand(job->nodes, &names, &count, error) != 0)
		return -1;
	qsort(names, (size_t)count, sizeof(*names), by_name);
	for (size_t i = 0; rc == 0 && i < json_array_size(c->nodes); i++) {
		const char *node = json_string_value(json_array_get(c->nodes, i));
		if (bsearch(&node, names, (size_t)count, sizeof(*names), by_name) == NULL)
			rc = wlb_fail(error, "field 'nodes': job %u has no node %.256s; it has %.256s", job->job_id,
			              node, job->nodes);
	}
	wlb_strings_free(names, count);
	return rc;
}
