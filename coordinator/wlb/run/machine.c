#include "coordinator/wlb/run/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "coordinator/wlb/calibration.h"
#include "coordinator/wlb/run/print.h"
#include "planner/machine.h"
#include "planner/machine_choose.h"
#include "planner/machine_compare.h"
#include "planner/node_type.h"

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
 * without a calibration. */
static void compare(const struct wlb_machine *machine, const json_t *before, json_t *calibration)
{
	char type[128], name[sizeof(machine->name) + 32];
	const char *from;
	struct wlb_machine *other = read_machine(json_object_get(before, "machine"), NULL);
	if (other != NULL) {
		snprintf(name, sizeof(name), "calibration %lld",
		         (long long)json_integer_value(json_object_get(before, "id")));
	} else {
		other = malloc(sizeof(*other));
		if (other == NULL || wlb_machine_choose(NULL, wlb_gpu_type(type, sizeof(type)) ? type : NULL, 1, other,
		                                        &from, NULL) < 0) {
			free(other);
			return;
		}
		snprintf(name, sizeof(name), "the machine %s", other->name);
	}
	json_object_set_new(calibration, "compared_with", json_string(name));
	json_object_set_new(calibration, "times_as_fast", wlb_machine_compare(machine, other));
	free(other);
}

/* Returns what the record of a plan says of the calibration in a reply: who measured it, when and where, and what
 * differs from the one before it. */
static json_t *describe(const json_t *reply, const struct wlb_machine *machine)
{
	static const char *const copied[] = {"id", "node_type", "source", "uid", "at", "job_id"};
	json_t *calibration = json_object();
	for (size_t i = 0; calibration != NULL && i < sizeof(copied) / sizeof(copied[0]); i++)
		if (json_object_get(reply, copied[i]) != NULL)
			json_object_set(calibration, copied[i], json_object_get(reply, copied[i]));
	if (calibration != NULL)
		compare(machine, json_object_get(reply, "before"), calibration);
	return calibration;
}

/* Writes the machine of the reply as a file that a plan can be made from, with a description of its calibration. */
static int write_machine(const json_t *reply, const char *path, json_t **calibration, struct wlb_error *error)
{
	json_t *file = json_copy(json_object_get(reply, "machine"));
	struct wlb_machine *machine = read_machine(file, error);
	char *text = NULL;
	int rc = -1;
	if (machine != NULL) {
		*calibration = describe(reply, machine);
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

static int ask(struct wlb_run *run, const char *path)
{
	struct wlb_error error;
	int rc = -1;
	json_t *reply = wlb_calibration_ask(run->connection, run->job.gpus_per_node > 0, run->job.tasks_per_node,
	                                    ASK_MS, &error);
	const char *source = wlb_calibration_source(reply);
	if (source != NULL && write_machine(reply, path, &run->calibration, &error) == 0) {
		wlb_run_print("planned with %s of nodes of this type", source);
		rc = 0;
	} else if (source != NULL) {
		wlb_run_print("the machine that the coordinator keeps is not used: %s", error.message);
	}
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
	run->calibration = json_incref(json_object_get(file, "calibration"));
	json_decref(file);
	free(text);
	return 0;
}

void wlb_run_find_machine(struct wlb_run *run)
{
	const char *named = getenv("WLB_MACHINE");
	char path[sizeof(run->job.spool_dir) + sizeof(run->id) + 32];
	if ((named != NULL && *named != '\0') || run->connection == NULL)
		return;
	snprintf(path, sizeof(path), "%s/machine-%s.json", run->job.spool_dir, run->id);
	if (read_written(run, path) == 0 || ask(run, path) == 0)
		setenv("WLB_MACHINE", path, 1);
}
