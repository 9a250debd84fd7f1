#include "coordinator/wlb/doctor/machine.h"

#include <glob.h>
#include <stdlib.h>

#include "coordinator/wlb/calibration.h"
#include "planner/machine_choose.h"
#include "planner/node_type.h"

enum { ASK_MS = 5000 };

static int has_gpus(void)
{
	glob_t devices;
	int rc = glob("/dev/nvidia[0-9]*", 0, NULL, &devices);
	if (rc == 0)
		globfree(&devices);
	return rc == 0;
}

/* Returns the coordinator's reply; NULL where there is none. */
static json_t *ask_calibration(int gpus)
{
	struct wlb_client_config config;
	if (wlb_client_config_load(&config, NULL) < 0)
		return NULL;
	struct wlb_connection *connection = wlb_connection_new(&config);
	json_t *reply = connection != NULL ? wlb_calibration_ask(connection, gpus, NULL, 0, ASK_MS, NULL) : NULL;
	wlb_connection_free(connection);
	return reply;
}

/* Notes the measured machine. Returns 0 where there is none. */
static int note_measured(struct wlb_doctor *doctor, int gpus, const char *type)
{
	json_t *reply = ask_calibration(gpus);
	const char *source = wlb_calibration_source(reply);
	int outvoted = (int)json_integer_value(json_object_get(reply, "outvoted"));
	if (outvoted > 0)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "machine", "measure again on idle nodes: wlb calibrate",
		                "%d calibrations of '%s' differ from those of three other users and are not used",
		                outvoted, type);
	if (source != NULL)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "machine", "", "'%s', measured: %s", type, source);
	json_decref(reply);
	return source != NULL;
}

void wlb_doctor_machine(struct wlb_doctor *doctor)
{
	char type[128], gpu[128];
	int gpus = has_gpus(), known = wlb_gpu_type(gpu, sizeof(gpu));
	const char *from, *variable = getenv("WLB_MACHINE");
	struct wlb_machine *machine = malloc(sizeof(*machine));
	struct wlb_error error = {0};
	wlb_node_type(gpus, type, sizeof(type));
	if (machine == NULL || ((variable == NULL || *variable == '\0') && note_measured(doctor, gpus, type))) {
		free(machine);
		return;
	}
	if (wlb_machine_choose(NULL, known ? gpu : NULL, 1, machine, &from, &error) < 0)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "machine", "measure it: wlb calibrate", "%s", error.message);
	else
		wlb_doctor_note(doctor, WLB_FINDING_INFO, "machine",
		                "measure these nodes in a job: srun --mpi=pmix wlb calibrate",
		                "a job here is planned with '%s', not measured, from %s", machine->name, from);
	free(machine);
}
