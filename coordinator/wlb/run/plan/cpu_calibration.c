#include "coordinator/wlb/run/plan/cpu_calibration.h"

#include <string.h>

#include "common/clock.h"
#include "coordinator/wlb/calibration.h"
#include "planner/node_type.h"

enum { TYPES_MAX = 16 };

/* The slowest calibration so far. */
struct slowest {
	json_t *reply; /* NULL: there is none */
	double peak_flops;
	double memory_bytes; /* the least */
	int types;
};

static double number(const json_t *reply, const char *name)
{
	return json_number_value(json_object_get(json_object_get(reply, "machine"), name));
}

/* Asks for the calibration of a type. Returns -1 where the coordinator does not answer. */
static int add_type(const struct wlb_run *run, const char *type, int64_t until_ms, struct slowest *slowest)
{
	int left_ms = wlb_clock_left_ms(until_ms);
	json_t *reply = left_ms > 0
	                        ? wlb_calibration_of_type(run->connection, type, run->job.tasks_per_node, left_ms, NULL)
	                        : NULL;
	if (reply == NULL)
		return -1;
	if (wlb_calibration_source(reply) != NULL) {
		double peak = number(reply, "peak_flops"), memory = number(reply, "memory_bytes");
		if (slowest->types == 0 || memory < slowest->memory_bytes)
			slowest->memory_bytes = memory;
		if (slowest->types++ == 0 || peak < slowest->peak_flops) {
			json_decref(slowest->reply);
			slowest->reply = json_incref(reply);
			slowest->peak_flops = peak;
		}
	}
	json_decref(reply);
	return 0;
}

json_t *wlb_run_ask_cpu_calibration(const struct wlb_run *run, const struct wlb_attempt *attempt, int timeout_ms)
{
	int64_t until_ms = wlb_clock_ms() + timeout_ms;
	struct slowest slowest = {0};
	char own[128];
	wlb_node_type(0, own, sizeof(own));
	if (add_type(run, own, until_ms, &slowest) < 0)
		return NULL;
	json_t *types = wlb_calibration_node_types(run->connection, attempt->id, wlb_clock_left_ms(until_ms));
	for (size_t i = 0; i < json_array_size(types) && i < TYPES_MAX; i++) {
		const char *type = json_string_value(json_array_get(types, i));
		if (type != NULL && strcmp(type, own) != 0 && add_type(run, type, until_ms, &slowest) < 0)
			break;
	}
	json_decref(types);
	if (slowest.types > 1) {
		json_object_set_new(slowest.reply, "types", json_integer(slowest.types));
		json_object_set_new(json_object_get(slowest.reply, "machine"), "memory_bytes",
		                    json_real(slowest.memory_bytes));
	}
	return slowest.reply;
}
