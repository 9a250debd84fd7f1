#include "coordinator/wlb/run/machine.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "coordinator/wlb/calibration.h"
#include "coordinator/wlb/run/print.h"
#include "planner/machine.h"

enum { ASK_MS = 2000 };

/* The machine of the reply as a file that a plan can be made from. Returns -1 where it cannot, or cannot be written. */
static int write_machine(const json_t *reply, const char *path, struct wlb_error *error)
{
	struct wlb_machine *machine = malloc(sizeof(*machine));
	char *text = json_dumps(json_object_get(reply, "machine"), JSON_INDENT(1));
	int rc = machine != NULL && text != NULL ? wlb_machine_file_parse(text, strlen(text), machine, error)
	                                         : wlb_fail(error, "out of memory");
	if (rc == 0)
		rc = wlb_file_write(path, text, strlen(text), 0644, error);
	free(text);
	free(machine);
	return rc;
}

static int ask(const struct wlb_run *run, const char *gpu_type, const char *path)
{
	struct wlb_error error;
	int rc = -1;
	json_t *reply = wlb_calibration_ask(run->connection, run->job.gpus_per_node > 0, gpu_type,
	                                    run->job.tasks_per_node, ASK_MS, &error);
	const char *source = wlb_calibration_source(reply);
	if (source != NULL && write_machine(reply, path, &error) == 0) {
		wlb_run_print("planned with %s of nodes of this type", source);
		rc = 0;
	} else if (source != NULL) {
		wlb_run_print("the machine that the coordinator keeps is not used: %s", error.message);
	}
	json_decref(reply);
	return rc;
}

/* Returns whether the file of this type is there; its first attempt asks for it. */
static bool find_file(const struct wlb_run *run, const struct wlb_attempt *attempt, const char *gpu_type, char *path,
                      size_t size)
{
	int n = gpu_type != NULL ? snprintf(path, size, "%s/machine-%s-%s.json", run->job.spool_dir, run->id, gpu_type)
	                         : snprintf(path, size, "%s/machine-%s.json", run->job.spool_dir, run->id);
	return n < (int)size && strchr(gpu_type != NULL ? gpu_type : "", '/') == NULL &&
	       (access(path, R_OK) == 0 ||
	        (attempt->number == 1 && run->connection != NULL && ask(run, gpu_type, path) == 0));
}

/* Replaces the types that were measured by their files; those together have to fit. */
static void find_each(const struct wlb_run *run, const struct wlb_attempt *attempt, char types[WLB_RUN_GPU_TYPES_BYTES])
{
	char text[WLB_RUN_GPU_TYPES_BYTES], path[PATH_MAX], *rest = memcpy(text, types, sizeof(text));
	size_t used = 0;
	for (const char *type; (type = strsep(&rest, ",")) != NULL;) {
		const char *word = find_file(run, attempt, type, path, sizeof(path)) ? path : type;
		if (strlen(word) + used + 2 > WLB_RUN_GPU_TYPES_BYTES)
			word = type;
		used += (size_t)snprintf(types + used, WLB_RUN_GPU_TYPES_BYTES - used, "%s%s", used > 0 ? "," : "",
		                         word);
		if (used >= WLB_RUN_GPU_TYPES_BYTES)
			return;
	}
}

void wlb_run_find_machine(const struct wlb_run *run, const struct wlb_attempt *attempt,
                          char types[WLB_RUN_GPU_TYPES_BYTES])
{
	const char *named = getenv("WLB_MACHINE");
	char path[PATH_MAX];
	if (named != NULL && *named != '\0')
		return;
	if (strchr(types, ',') != NULL)
		find_each(run, attempt, types);
	else if (find_file(run, attempt, types[0] != '\0' ? types : NULL, path, sizeof(path)))
		setenv("WLB_MACHINE", path, 1);
}
