#include "coordinator/wlbd/api/first_exit.h"

#include <string.h>

#include "coordinator/wlbd/http/fields.h"

/* More is no message of Slurm. */
enum { WHY_MAX = 511 };

/* Only the launch fails on a node. */
static int read_break(const json_t *object, const char *name, struct wlbd_reported_reason *reported,
                      struct wlb_error *error)
{
	const json_t *field = NULL;
	bool has_node = strcmp(name, "launch_failure") == 0;
	*reported = (struct wlbd_reported_reason){0};
	if (wlbd_field_object(object, name, WLBD_OPTIONAL, &field, error) != 0)
		return -1;
	if (field == NULL)
		return 0;
	if ((has_node && wlbd_field_text(field, "node", WLBD_REQUIRED, WLBD_NAME_MAX, &reported->node, error) != 0) ||
	    wlbd_field_text(field, "why", WLBD_REQUIRED, WHY_MAX, &reported->why, error) != 0 ||
	    wlbd_field_number(field, "time", WLBD_REQUIRED, 0, 1e11, &reported->time_s, error) != 0 ||
	    wlbd_field_boolean(field, "certain", WLBD_OPTIONAL, &reported->is_certain, error) != 0)
		return wlb_fail_in(error, "%s", name);
	return 0;
}

int wlbd_slurm_end_read(const json_t *object, struct wlbd_reported_reason *end, struct wlb_error *error)
{
	return read_break(object, "slurm_end", end, error);
}

int wlbd_first_exit_read(const json_t *object, struct wlbd_first_exit *first, struct wlb_error *error)
{
	const json_t *field = NULL;
	*first = (struct wlbd_first_exit){0};
	if (wlbd_field_object(object, "first_exit", WLBD_OPTIONAL, &field, error) != 0 ||
	    wlbd_field_integer(object, "srun_signal", WLBD_OPTIONAL, 0, 127, &first->srun_signal, error) != 0 ||
	    read_break(object, "launch_failure", &first->launch_failure, error) != 0 ||
	    wlbd_slurm_end_read(object, &first->slurm_end, error) != 0)
		return -1;
	if (field == NULL)
		return 0;
	bool is_exit = json_object_get(field, "signal") == NULL;
	if (wlbd_field_integer(field, "rank", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &first->rank, error) != 0 ||
	    wlbd_field_integer(field, is_exit ? "exit_code" : "signal", WLBD_REQUIRED, 1, is_exit ? 255 : 127,
	                       &first->exit_code, error) != 0 ||
	    wlbd_field_text(field, "node", WLBD_REQUIRED, WLBD_NAME_MAX, &first->node, error) != 0)
		return wlb_fail_in(error, "first_exit");
	if (!is_exit)
		first->exit_code += 128;
	return 0;
}
