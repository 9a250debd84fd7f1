#include "coordinator/wlbd/api/calibrations/node_check_read.h"

#include "coordinator/wlbd/http/fields.h"

/* What is stored is printed by others: it is one line of printable characters. */
static int check_printable(const char *name, const char *text, struct wlb_error *error)
{
	for (const char *c = text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			return wlb_fail(error, "field '%s': '%.60s' has a character that is not printable ASCII", name,
			                text);
	return 0;
}

static int read_text(const json_t *object, const char *name, enum wlbd_need need, const char **value,
                     struct wlb_error *error)
{
	if (wlbd_field_text(object, name, need, WLBD_NODE_CHECK_TEXT_MAX, value, error) != 0)
		return -1;
	return *value != NULL ? check_printable(name, *value, error) : 0;
}

static int read_entry(const json_t *entry, struct wlb_error *error)
{
	static const char *const verdicts[] = {"ok", "failed", "not checked", NULL};
	const char *check = NULL, *verdict = NULL, *measured = NULL, *limit = NULL;
	if (!json_is_object(entry))
		return wlb_fail(error, "must be an object with check, verdict, measured and limit");
	if (read_text(entry, "check", WLBD_REQUIRED, &check, error) != 0 ||
	    wlbd_field_choice(entry, "verdict", WLBD_REQUIRED, verdicts, &verdict, error) != 0 ||
	    read_text(entry, "measured", WLBD_REQUIRED, &measured, error) != 0 ||
	    read_text(entry, "limit", WLBD_OPTIONAL, &limit, error) != 0)
		return -1;
	if (json_object_size(entry) > 4)
		return wlb_fail(error, "has more fields than check, verdict, measured and limit");
	return 0;
}

static int read_entries(const json_t *checks, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(checks); i++)
		if (read_entry(json_array_get(checks, i), error) != 0)
			return wlb_fail_in(error, "field 'checks', entry %zu", i);
	return 0;
}

int wlbd_node_check_read(const json_t *body, struct wlbd_node_check *check, struct wlb_error *error)
{
	*check = (struct wlbd_node_check){.reason = ""};
	if (wlbd_field_text(body, "node", WLBD_REQUIRED, WLBD_NAME_MAX, &check->node, error) != 0 ||
	    wlbd_field_boolean(body, "healthy", WLBD_REQUIRED, &check->healthy, error) != 0 ||
	    read_text(body, "reason", WLBD_OPTIONAL, &check->reason, error) != 0 ||
	    wlbd_field_array(body, "checks", WLBD_OPTIONAL, WLBD_NODE_CHECKS_MAX, &check->checks, error) != 0 ||
	    read_entries(check->checks, error) != 0 ||
	    wlbd_field_boolean(body, "clears", WLBD_OPTIONAL, &check->clears, error) != 0)
		return -1;
	if (check->node[0] == '\0')
		return wlb_fail(error, "field 'node': '': must be the name of a node");
	if (check->clears && !check->healthy)
		return wlb_fail(error, "field 'clears': true: only of a node that is healthy");
	if (check->healthy != (check->reason[0] == '\0'))
		return wlb_fail(error, "field 'reason': '%.60s': a node that is not healthy has a reason, another none",
		                check->reason);
	return 0;
}
