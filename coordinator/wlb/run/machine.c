#include "coordinator/wlb/run/machine.h"

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

static int ask(const struct wlb_run *run, const char *path)
{
	struct wlb_error error;
	int rc = -1;
	json_t *reply = wlb_calibration_ask(run->connection, run->job.gpus_per_node > 0, run->job.tasks_per_node,
	                                    ASK_MS, &error);
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

void wlb_run_find_machine(struct wlb_run *run)
{
	const char *named = getenv("WLB_MACHINE");
	char path[sizeof(run->job.spool_dir) + sizeof(run->id) + 32];
	if ((named != NULL && *named != '\0') || run->connection == NULL)
		return;
	snprintf(path, sizeof(path), "%s/machine-%s.json", run->job.spool_dir, run->id);
	if (access(path, R_OK) == 0 || ask(run, path) == 0)
		setenv("WLB_MACHINE", path, 1);
}
