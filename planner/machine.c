#include "planner/machine.h"

#include <jansson.h>
#include <string.h>

#include "planner/machine_attention.h"
#include "planner/machine_rates.h"

/* The member that a field of the file fills. */
struct member {
	const char *name;
	size_t offset;
	bool optional; /* 0 where it is missing */
};

#define MEMBER(field) .name = #field, .offset = offsetof(struct wlb_machine, field)

static const struct member reals[] = {
	{MEMBER(peak_flops)},
	{MEMBER(gemm_efficiency)},
	{MEMBER(attention_efficiency)},
	{MEMBER(attention_backward_efficiency)},
	{MEMBER(memory_bytes)},
	{MEMBER(memory_bytes_per_s)},
	{MEMBER(attention_overhead_keys)},
	{MEMBER(switch_taper)},
	{MEMBER(switch_latency_s)},
	{MEMBER(operation_s), .optional = true},
	/* calibrations from before there were "operations" */
	{.name = "rotary_angle_s",
         .offset = offsetof(struct wlb_machine, operations[WLB_OP_ROPE_ANGLES].element_s),
         .optional = true},
	{MEMBER(gemm_tile_depth), .optional = true},
	{MEMBER(slowest_rank), .optional = true},
	{MEMBER(fp8_rate), .optional = true},
	{MEMBER(mxfp8_rate), .optional = true},
};

static const struct member counts[] = {
	{MEMBER(gpus_per_node)},
	{MEMBER(attention_tile_tokens)},
	{MEMBER(element_bytes), .optional = true},
	{MEMBER(processors), .optional = true},
	{MEMBER(collective_processors), .optional = true},
	{MEMBER(gemm_tile_rows), .optional = true},
	{MEMBER(gemm_tile_columns), .optional = true},
	{MEMBER(blocking_messages), .optional = true},
	{MEMBER(link_nodes), .optional = true},
};

static const struct member links[] = {
	{MEMBER(node_link)}, {MEMBER(network_link)}, {MEMBER(switch_link), .optional = true}};

/* machine_rates.c reads the rates; no plan depends on sources, measured and calibration, of which the threads alone are
 * read. */
static const char *const others[] = {"name",       "sources",   "measured",   "calibration", "gemm",
                                     "gemm_curve", "attention", "node_calls", "operations",  "attention_kernels"};

enum {
	REALS = sizeof(reals) / sizeof(reals[0]),
	COUNTS = sizeof(counts) / sizeof(counts[0]),
	LINKS = sizeof(links) / sizeof(links[0]),
	OTHERS = sizeof(others) / sizeof(others[0]),
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

static bool is_among(const char *key, const struct member *members, int count)
{
	bool found = false;
	for (int i = 0; i < count; i++)
		found |= strcmp(key, members[i].name) == 0;
	return found;
}

static bool is_known(const char *key)
{
	bool known = is_among(key, reals, REALS) || is_among(key, counts, COUNTS) || is_among(key, links, LINKS);
	for (int i = 0; i < OTHERS; i++)
		known |= strcmp(key, others[i]) == 0;
	return known;
}

/* Returns true where an optional field is missing. */
static bool is_absent(const json_t *root, const struct member *member)
{
	return member->optional && json_object_get(root, member->name) == NULL;
}

/* Other users print the name: a terminal would obey control characters in it. */
static bool has_control(const char *text)
{
	bool found = false;
	for (size_t left = strlen(text), bytes; left > 0; text += bytes, left -= bytes) {
		uint32_t code;
		bytes = wlb_text_first(text, left, &code);
		found |= wlb_text_is_control(code);
	}
	return found;
}

static int read_name(const json_t *root, struct wlb_machine *machine, struct wlb_error *error)
{
	const char *name = json_string_value(json_object_get(root, "name"));
	if (name == NULL || *name == '\0' || strlen(name) >= sizeof(machine->name) || has_control(name))
		return wlb_fail(error, "name must be a string of 1 to %zu bytes without control characters",
		                sizeof(machine->name) - 1);
	strcpy(machine->name, name);
	return 0;
}

/* Files have 0, or none, where nobody named the threads. */
static int32_t measured_threads(const json_t *root)
{
	json_int_t threads = json_integer_value(json_object_get(json_object_get(root, "measured"), "threads"));
	return threads > 0 && threads <= INT32_MAX ? (int32_t)threads : 0;
}

static int read_fields(json_t *root, struct wlb_machine *machine, struct wlb_error *error)
{
	const char *key;
	json_t *value;
	json_object_foreach(root, key, value) if (!is_known(key)) return wlb_fail(
		error,
		"field '%.60s' is unknown: the fields are those of struct wlb_machine, sources, measured and "
		"calibration",
		key);
	int rc = read_name(root, machine, error);
	for (int i = 0; rc == 0 && i < COUNTS; i++)
		if (!is_absent(root, &counts[i]))
			rc = read_count(root, counts[i].name, at(machine, counts[i].offset), error);
	for (int i = 0; rc == 0 && i < REALS; i++)
		if (!is_absent(root, &reals[i]))
			rc = read_real(root, reals[i].name, at(machine, reals[i].offset), error);
	for (int i = 0; rc == 0 && i < LINKS; i++)
		if (!is_absent(root, &links[i]))
			rc = read_link(root, links[i].name, at(machine, links[i].offset), error);
	machine->measured_threads = measured_threads(root);
	if (rc == 0)
		rc = wlb_machine_rates_read(root, machine, error);
	if (rc == 0)
		rc = wlb_machine_attention_read(json_object_get(root, "attention_kernels"), machine, error);
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
