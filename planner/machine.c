#include "planner/machine.h"

#include <jansson.h>
#include <string.h>

/* The member that a field of the file fills. */
struct place {
	const char *name;
	size_t offset;
};

#define PLACE(field)                                                                                                   \
	{                                                                                                              \
		.name = #field, .offset = offsetof(struct wlb_machine, field)                                          \
	}

static const struct place reals[] = {
	PLACE(peak_flops),
	PLACE(gemm_efficiency),
	PLACE(attention_efficiency),
	PLACE(attention_backward_efficiency),
	PLACE(memory_bytes),
	PLACE(memory_bytes_per_s),
	PLACE(attention_overhead_keys),
	PLACE(switch_taper),
	PLACE(switch_latency_s),
};

static const struct place links[] = {PLACE(node_link), PLACE(network_link)};
static const struct place curves[] = {PLACE(gemm_curve)};

enum {
	REALS = sizeof(reals) / sizeof(reals[0]),
	LINKS = sizeof(links) / sizeof(links[0]),
	CURVES = sizeof(curves) / sizeof(curves[0]),
};

static void *at(struct wlb_machine *machine, size_t offset)
{
	return (char *)machine + offset;
}

static int read_real(const json_t *object, const char *name, double *out, struct wlb_error *error)
{
	const json_t *value = json_object_get(object, name);
	if (!json_is_number(value))
		return wlb_fail(error, "%s %s: it must be a number", name, value == NULL ? "is missing" : "is not one");
	*out = json_number_value(value);
	return 0;
}

static int read_count(const json_t *object, const char *name, int32_t *out, struct wlb_error *error)
{
	const json_t *value = json_object_get(object, name);
	json_int_t number = json_integer_value(value);
	if (!json_is_integer(value) || number < 1 || number > INT32_MAX)
		return wlb_fail(error, "%s %s: it must be a whole number from 1 on", name,
		                value == NULL ? "is missing" : "is not one");
	*out = (int32_t)number;
	return 0;
}

static int read_link(const json_t *root, const char *name, struct wlb_link *link, struct wlb_error *error)
{
	const json_t *object = json_object_get(root, name);
	if (!json_is_object(object))
		return wlb_fail(error, "%s %s: it must be an object of bytes_per_s and latency_s", name,
		                object == NULL ? "is missing" : "is not one");
	if (read_real(object, "bytes_per_s", &link->bytes_per_s, error) < 0 ||
	    read_real(object, "latency_s", &link->latency_s, error) < 0)
		return wlb_fail_in(error, "%s", name);
	return 0;
}

static int read_points(const json_t *array, int32_t points, const char *name, double *out, struct wlb_error *error)
{
	for (int32_t i = 0; i < points; i++) {
		const json_t *value = json_array_get(array, (size_t)i);
		if (!json_is_number(value))
			return wlb_fail(error, "%s: point %d is not a number", name, i);
		out[i] = json_number_value(value);
	}
	return 0;
}

/* Reads {"at": [...], "value": [...]}; absent or null if nothing was measured. */
static int read_curve(const json_t *root, const char *name, struct wlb_curve *curve, struct wlb_error *error)
{
	const json_t *object = json_object_get(root, name);
	if (object == NULL || json_is_null(object))
		return 0;
	const json_t *where = json_object_get(object, "at"), *value = json_object_get(object, "value");
	size_t points = json_array_size(where);
	if (points < 1 || points > WLB_CURVE_POINTS || json_array_size(value) != points)
		return wlb_fail(error, "%s: \"at\" and \"value\" must be lists of the same 1 to %d numbers", name,
		                WLB_CURVE_POINTS);
	curve->points = (int32_t)points;
	if (read_points(where, curve->points, name, curve->at, error) < 0)
		return -1;
	return read_points(value, curve->points, name, curve->value, error);
}

static bool is_known(const char *key)
{
	static const char *const others[] = {"name", "gpus_per_node", "attention_tile_tokens", "sources"};
	bool known = false;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		known |= strcmp(key, others[i]) == 0;
	for (int i = 0; i < REALS; i++)
		known |= strcmp(key, reals[i].name) == 0;
	for (int i = 0; i < LINKS; i++)
		known |= strcmp(key, links[i].name) == 0;
	for (int i = 0; i < CURVES; i++)
		known |= strcmp(key, curves[i].name) == 0;
	return known;
}

static int read_fields(json_t *root, struct wlb_machine *machine, struct wlb_error *error)
{
	const char *key, *name = json_string_value(json_object_get(root, "name"));
	json_t *value;
	int rc = 0;
	json_object_foreach(root, key, value) if (!is_known(key)) return wlb_fail(
		error, "field '%.60s' is unknown: the fields are those of struct wlb_machine, and sources", key);
	if (name == NULL || *name == '\0' || strlen(name) >= sizeof(machine->name))
		return wlb_fail(error, "name must be a text of 1 to %zu bytes", sizeof(machine->name) - 1);
	strcpy(machine->name, name);
	if (read_count(root, "gpus_per_node", &machine->gpus_per_node, error) < 0 ||
	    read_count(root, "attention_tile_tokens", &machine->attention_tile_tokens, error) < 0)
		return -1;
	for (int i = 0; rc == 0 && i < REALS; i++)
		rc = read_real(root, reals[i].name, at(machine, reals[i].offset), error);
	for (int i = 0; rc == 0 && i < LINKS; i++)
		rc = read_link(root, links[i].name, at(machine, links[i].offset), error);
	for (int i = 0; rc == 0 && i < CURVES; i++)
		rc = read_curve(root, curves[i].name, at(machine, curves[i].offset), error);
	return rc < 0 ? rc : wlb_machine_check(machine, error);
}

int wlb_machine_file_parse(const char *text, size_t bytes, struct wlb_machine *machine, struct wlb_error *error)
{
	json_error_t why;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
	if (root == NULL)
		return wlb_fail(error, "line %d: not JSON: %s", why.line, why.text);
	*machine = (struct wlb_machine){0};
	int rc = json_is_object(root) ? read_fields(root, machine, error)
	                              : wlb_fail(error, "must be an object, such as {\"name\": ...}");
	json_decref(root);
	return rc;
}
