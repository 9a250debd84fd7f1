#include "planner/machine_write.h"

#include <jansson.h>

#include "common/json_text.h"

/* Digits of a double that a speed has: more would only be noise of the measurement. */
enum { DIGITS = 9 };

static json_t *numbers(const double *values, int32_t count)
{
	json_t *list = json_array();
	for (int32_t i = 0; list != NULL && i < count; i++)
		if (json_array_append_new(list, json_real(values[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* A list of `rows` lists of `columns` numbers. */
static json_t *table(const double *values, int32_t rows, int32_t columns)
{
	json_t *list = json_array();
	for (int32_t i = 0; list != NULL && i < rows; i++)
		if (json_array_append_new(list, numbers(values + i * columns, columns)) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *gemm_to_json(const struct wlb_gemm_rates *rates)
{
	json_t *list = json_array();
	int32_t plane = rates->depth_count * rates->columns_count;
	for (int32_t i = 0; list != NULL && i < rates->rows_count; i++)
		if (json_array_append_new(list, table(rates->flops_per_s + i * plane, rates->depth_count,
		                                      rates->columns_count)) < 0) {
			json_decref(list);
			return NULL;
		}
	return json_pack("{s:o, s:o, s:o, s:o}", "rows", numbers(rates->rows, rates->rows_count), "depth",
	                 numbers(rates->depth, rates->depth_count), "columns",
	                 numbers(rates->columns, rates->columns_count), "flops_per_s", list);
}

static json_t *attention_to_json(const struct wlb_attention_rates *rates)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "q_tokens", numbers(rates->q_tokens, rates->q_count), "k_tokens",
	                 numbers(rates->k_tokens, rates->k_count), "forward_flops_per_s",
	                 table(rates->forward_flops_per_s, rates->q_count, rates->k_count), "backward_flops_per_s",
	                 table(rates->backward_flops_per_s, rates->q_count, rates->k_count));
}

static json_t *calls_to_json(const struct wlb_link_calls *calls)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "bytes", numbers(calls->bytes, calls->count), "gather_s",
	                 numbers(calls->gather_s, calls->count), "reduce_s", numbers(calls->reduce_s, calls->count),
	                 "send_s", numbers(calls->send_s, calls->count));
}

/* Sets the member "operations" to the operations that were measured; sets no member where none was measured. */
static int set_operations(json_t *root, const struct wlb_machine *machine)
{
	json_t *object = json_object();
	int rc = object != NULL ? 0 : -1;
	for (int op = 0; rc == 0 && op < WLB_OPERATIONS; op++) {
		const struct wlb_op_time *time = &machine->operations[op];
		if (time->element_s > 0.0)
			rc = json_object_set_new(
				object, wlb_op_name((enum wlb_op)op),
				json_pack("{s:f, s:f}", "call_s", time->call_s, "element_s", time->element_s));
	}
	if (rc == 0 && json_object_size(object) > 0)
		return json_object_set_new(root, "operations", object);
	json_decref(object);
	return rc;
}

static json_t *link_to_json(const struct wlb_link *link)
{
	return json_pack("{s:f, s:f}", "bytes_per_s", link->bytes_per_s, "latency_s", link->latency_s);
}

/* The fields that every file has. */
static json_t *fields_to_json(const struct wlb_machine *m)
{
	return json_pack("{s:o, s:i, s:f, s:f, s:f, s:f, s:i, s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:i, s:f}", "name",
	                 wlb_json_text(m->name), "gpus_per_node", (int)m->gpus_per_node, "peak_flops", m->peak_flops,
	                 "gemm_efficiency", m->gemm_efficiency, "attention_efficiency", m->attention_efficiency,
	                 "attention_backward_efficiency", m->attention_backward_efficiency, "attention_tile_tokens",
	                 (int)m->attention_tile_tokens, "attention_overhead_keys", m->attention_overhead_keys,
	                 "memory_bytes", m->memory_bytes, "memory_bytes_per_s", m->memory_bytes_per_s, "node_link",
	                 link_to_json(&m->node_link), "network_link", link_to_json(&m->network_link), "switch_taper",
	                 m->switch_taper, "switch_latency_s", m->switch_latency_s, "element_bytes",
	                 (int)m->element_bytes, "operation_s", m->operation_s);
}

static json_t *measured_to_json(const struct wlb_measured *m, int threads)
{
	return json_pack("{s:s, s:o, s:o, s:s, s:s, s:i, s:i, s:i}", "at", m->at, "host", wlb_json_text(m->host),
	                 "device", wlb_json_text(m->device), "dtype", m->dtype, "wlb", m->wlb, "threads", threads,
	                 "ranks", m->ranks, "nodes", m->nodes);
}

static json_t *machine_to_json(const struct wlb_machine *machine, const struct wlb_measured *measured)
{
	json_t *root = fields_to_json(machine);
	int rc = root != NULL ? 0 : -1;
	if (rc == 0 && machine->switch_link.bytes_per_s > 0.0)
		rc |= json_object_set_new(root, "switch_link", link_to_json(&machine->switch_link));
	if (rc == 0 && machine->gemm.rows_count > 0)
		rc |= json_object_set_new(root, "gemm", gemm_to_json(&machine->gemm));
	if (rc == 0 && machine->attention.q_count > 0)
		rc |= json_object_set_new(root, "attention", attention_to_json(&machine->attention));
	if (rc == 0 && machine->node_calls.count > 0)
		rc |= json_object_set_new(root, "node_calls", calls_to_json(&machine->node_calls));
	if (rc == 0)
		rc |= set_operations(root, machine);
	if (rc == 0 && machine->slowest_rank > 0.0)
		rc |= json_object_set_new(root, "slowest_rank", json_real(machine->slowest_rank));
	if (rc == 0 && machine->blocking_messages)
		rc |= json_object_set_new(root, "blocking_messages", json_integer(machine->blocking_messages));
	if (rc == 0)
		rc |= json_object_set_new(root, "measured", measured_to_json(measured, machine->measured_threads));
	if (rc == 0)
		return root;
	json_decref(root);
	return NULL;
}

char *wlb_machine_text(const struct wlb_machine *machine, const struct wlb_measured *measured, struct wlb_error *error)
{
	if (wlb_machine_check(machine, error) < 0)
		return NULL;
	json_t *root = machine_to_json(machine, measured);
	char *text = root != NULL ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) : NULL;
	json_decref(root);
	if (text == NULL)
		wlb_fail(error, "machine '%s': out of memory for its file", machine->name);
	return text;
}
