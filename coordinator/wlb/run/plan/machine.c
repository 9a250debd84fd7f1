#include "coordinator/wlb/run/plan/machine.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/json_text.h"
#include "coordinator/wlb/calibration.h"
#include "coordinator/wlb/run/plan/cpu_calibration.h"
#include "coordinator/wlb/run/state/print.h"
#include "planner/machine.h"
#include "planner/machine_choose.h"
#include "planner/machine_compare.h"

enum { ASK_MS = 2000, LARGEST_FILE_BYTES = 1 << 20 };

/* Reads the machine file in a JSON object; the caller frees it. Returns NULL with the reason. */
static struct wlb_machine *read_machine(const json_t *object, struct wlb_error *error)
{
	struct wlb_machine *machine = malloc(sizeof(*machine));
	char *text = json_dumps(object, JSON_COMPACT);
	int rc = machine != NULL && text != NULL ? wlb_machine_file_parse(text, strlen(text), machine, error)
	                                         : wlb_fail(error, "out of memory");
	free(text);
	if (rc == 0)
		return machine;
	free(machine);
	return NULL;
}

/* Adds how fast the machine is relative to `before`, the calibration before it, or to the machine of these nodes
 * without a calibration, where GPUs have the type `gpu_type`. */
static void compare(const struct wlb_machine *machine, const char *gpu_type, const json_t *before, json_t *calibration)
{
	char name[sizeof(machine->name) + 32];
	const char *from;
	struct wlb_machine *other = read_machine(json_object_get(before, "machine"), NULL);
	if (other != NULL) {
		snprintf(name, sizeof(name), "calibration %lld",
		         (long long)json_integer_value(json_object_get(before, "id")));
	} else {
		other = malloc(sizeof(*other));
		if (other == NULL || wlb_machine_choose(NULL, gpu_type, 1, other, &from, NULL) < 0) {
			free(other);
			return;
		}
		snprintf(name, sizeof(name), "the machine %s", other->name);
	}
	json_object_set_new(calibration, "compared_with", wlb_json_text(name));
	json_object_set_new(calibration, "times_as_fast", wlb_machine_compare(machine, other));
	free(other);
}

/* Returns what the record of a plan says of the calibration in a reply: who measured it, when and where, and what
 * differs from the one before it. */
static json_t *describe(const json_t *reply, const char *gpu_type, const struct wlb_machine *machine)
{
	static const char *const copied[] = {"id",    "node_type",           "source",         "uid",  "at", "job_id",
	                                     "types", "outvoted_operations", "outvoted_parts", "users"};
	json_t *calibration = json_object();
	for (size_t i = 0; calibration != NULL && i < sizeof(copied) / sizeof(copied[0]); i++)
		if (json_object_get(reply, copied[i]) != NULL)
			json_object_set(calibration, copied[i], json_object_get(reply, copied[i]));
	if (calibration != NULL)
		compare(machine, gpu_type, json_object_get(reply, "before"), calibration);
	return calibration;
}

/* Writes the machine of the reply as a file that a plan can be made from, with a description of its calibration. */
static int write_machine(const json_t *reply, const char *gpu_type, const char *path, json_t **calibration,
                         struct wlb_error *error)
{
	json_t *file = json_copy(json_object_get(reply, "machine"));
	struct wlb_machine *machine = read_machine(file, error);
	char *text = NULL;
	int rc = -1;
	if (machine != NULL) {
		*calibration = describe(reply, gpu_type, machine);
		json_object_set(file, "calibration", *calibration);
		text = json_dumps(file, JSON_INDENT(1));
		rc = text != NULL ? wlb_file_write(path, text, strlen(text), 0644, error)
		                  : wlb_fail(error, "out of memory");
	}
	free(text);
	free(machine);
	json_decref(file);
	return rc;
}

static void set_calibration(struct wlb_run *run, json_t *calibration)
{
	json_incref(calibration);
	json_decref(run->calibration);
	run->calibration = calibration;
}

static void print_source(const json_t *reply, const char *source)
{
	long long types = (long long)json_integer_value(json_object_get(reply, "types"));
	if (types > 1)
		wlb_run_print("planned with %s of nodes of type '%s', the slowest of %lld types", source,
		              json_string_value(json_object_get(reply, "node_type")), types);
	else
		wlb_run_print("planned with %s of nodes of this type", source);
}

static int ask(struct wlb_run *run, const struct wlb_attempt *attempt, const char *gpu_type, const char *path)
{
	struct wlb_error error;
	int rc = -1;
	json_t *calibration = NULL;
	bool gpus = run->job.gpus_per_node > 0;
	json_t *reply =
		gpus ? wlb_calibration_ask(run->connection, 1, gpu_type, run->job.tasks_per_node, ASK_MS, &error)
		     : wlb_run_ask_cpu_calibration(run, attempt, ASK_MS);
	const char *source = wlb_calibration_source(reply);
	const char *known = gpu_type != NULL ? gpu_type : gpus ? "" : NULL;
	if (source != NULL && write_machine(reply, known, path, &calibration, &error) == 0) {
		print_source(reply, source);
		set_calibration(run, calibration);
		rc = 0;
	} else if (source != NULL) {
		wlb_run_print("the machine that the coordinator keeps is not used: %s", error.message);
	}
	json_decref(calibration);
	json_decref(reply);
	return rc;
}

/* Reads the file that an earlier attempt of the run wrote. */
static int read_written(struct wlb_run *run, const char *path)
{
	char *text;
	size_t bytes;
	if (wlb_file_read(path, LARGEST_FILE_BYTES, &text, &bytes, NULL) < 0)
		return -1;
	json_t *file = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	set_calibration(run, json_object_get(file, "calibration"));
	json_decref(file);
	free(text);
	return 0;
}

/* Returns whether the file of this type is there; the first attempt asks for it. */
static bool find_file(struct wlb_run *run, const struct wlb_attempt *attempt, const char *gpu_type, char *path,
                      size_t size)
{
	int n = gpu_type != NULL ? snprintf(path, size, "%s/machine-%s-%s.json", run->job.spool_dir, run->id, gpu_type)
	                         : snprintf(path, size, "%s/machine-%s.json", run->job.spool_dir, run->id);
	return n < (int)size && strchr(gpu_type != NULL ? gpu_type : "", '/') == NULL &&
	       (read_written(run, path) == 0 ||
	        (attempt->number == 1 && run->connection != NULL && ask(run, attempt, gpu_type, path) == 0));
}

/* Replaces each type that was measured by its file, as long as the list fits. The record names no calibration: each
 * type has its own. */
static void find_each(struct wlb_run *run, const struct wlb_attempt *attempt, char types[WLB_RUN_GPU_TYPES_BYTES])
{
	char text[WLB_RUN_GPU_TYPES_BYTES], path[PATH_MAX], *rest = memcpy(text, types, sizeof(text));
	size_t used = 0;
	for (const char *type; used < WLB_RUN_GPU_TYPES_BYTES && (type = strsep(&rest, ",")) != NULL;) {
		const char *word = find_file(run, attempt, type, path, sizeof(path)) ? path : type;
		if (strlen(word) + used + 2 > WLB_RUN_GPU_TYPES_BYTES)
			word = type;
		used += (size_t)snprintf(types + used, WLB_RUN_GPU_TYPES_BYTES - used, "%s%s", used > 0 ? "," : "",
		                         word);
	}
	set_calibration(run, NULL);
}

/* An attempt may have nodes of other types than the attempt before, whose machine does not describe them. */
static void forget_machine(struct wlb_run *run)
{
	if (!run->machine_is_ours)
		return;
	unsetenv("WLB_MACHINE");
	run->machine_is_ours = false;
	set_calibration(run, NULL);
}

void wlb_run_find_machine(struct wlb_run *run, const struct wlb_attempt *attempt, char types[WLB_RUN_GPU_TYPES_BYTES])
{
	char path[PATH_MAX];
	forget_machine(run);
	const char *named = getenv("WLB_MACHINE");
	if (named != NULL && *named != '\0')
		return;
	if (strchr(types, ',') != NULL)
		find_each(run, attempt, types);
	else if (find_file(run, attempt, types[0] != '\0' ? types : NULL, path, sizeof(path)))
		run->machine_is_ours = setenv("WLB_MACHINE", path, 1) == 0;
}
