#include "coordinator/wlb/doctor/machine.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/calibration.h"
#include "planner/machine_choose.h"
#include "planner/node_type.h"

enum { ASK_MS = 5000 };

/* On CPUs a calibration counts only for runs with as many ranks on a node. */
#define CALIBRATE "srun --mpi=pmix --ntasks-per-node=N wlb calibrate, N as the runs here have ranks on a node"

static int has_gpus(void)
{
	glob_t devices;
	int rc = glob("/dev/nvidia[0-9]*", 0, NULL, &devices);
	if (rc == 0)
		globfree(&devices);
	return rc == 0;
}

/* Writes the type of this node's GPUs in Slurm's GRES. Returns 0 where it has none, or Slurm does not answer. */
static int find_type_in_gres(const struct wlb_doctor *doctor, char *type, size_t size)
{
	char host[256] = "";
	const char *node = getenv("SLURMD_NODENAME");
	struct wlb_slurm_node *nodes;
	int count;
	if (node == NULL && gethostname(host, sizeof(host) - 1) == 0) {
		host[strcspn(host, ".")] = '\0';
		node = host;
	}
	*type = '\0';
	if (doctor->without_slurm || wlb_slurm_nodes(&nodes, &count, NULL) != 0)
		return 0;
	for (int i = 0; i < count; i++)
		if (strcmp(nodes[i].name, node) == 0)
			snprintf(type, size, "%s", nodes[i].gpu_type);
	free(nodes);
	return *type != '\0';
}

/* Returns the coordinator's reply; NULL where there is none. */
static json_t *ask_calibration(int gpus, const char *gpu_type)
{
	struct wlb_client_config config;
	if (wlb_client_config_load(&config, NULL) < 0)
		return NULL;
	struct wlb_connection *connection = wlb_connection_new(&config);
	json_t *reply = connection != NULL ? wlb_calibration_ask(connection, gpus, gpu_type, 0, ASK_MS, NULL) : NULL;
	wlb_connection_free(connection);
	return reply;
}

/* Notes the measured machine. Returns 0 where there is none. */
static int note_measured(struct wlb_doctor *doctor, int gpus, const char *gpu_type, const char *type)
{
	json_t *reply = ask_calibration(gpus, gpu_type);
	const char *source = wlb_calibration_source(reply);
	int outvoted = (int)json_integer_value(json_object_get(reply, "outvoted"));
	if (outvoted > 0)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "machine", "measure again on idle nodes: " CALIBRATE,
		                "%d calibrations of '%s' differ from those of three other users and are not used",
		                outvoted, type);
	char names[WLB_OUTVOTED_NAMES_SIZE];
	if (wlb_calibration_outvoted(reply, names, sizeof(names)) > 0)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "machine", "measure again on idle nodes: " CALIBRATE,
		                "these measurements of '%s' differ from those of three other users, which are used: "
		                "%s",
		                type, names);
	if (source != NULL)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "machine", "", "'%s', measured: %s", type, source);
	json_decref(reply);
	return source != NULL;
}

void wlb_doctor_machine(struct wlb_doctor *doctor)
{
	char type[128], gpu[128];
	int gpus = has_gpus() || getenv("SLURM_GPUS_ON_NODE") != NULL;
	int known = wlb_gpu_type(gpu, sizeof(gpu)) || (gpus && find_type_in_gres(doctor, gpu, sizeof(gpu)));
	const char *from, *variable = getenv("WLB_MACHINE"), *gpu_type = known ? gpu : NULL;
	struct wlb_machine *machine = malloc(sizeof(*machine));
	struct wlb_error error = {0};
	wlb_node_type(gpus, type, sizeof(type));
	if (gpus && known)
		snprintf(type, sizeof(type), "gpu:%.100s", gpu);
	if (machine == NULL ||
	    ((variable == NULL || *variable == '\0') && note_measured(doctor, gpus, gpu_type, type))) {
		free(machine);
		return;
	}
	if (wlb_machine_choose(NULL, gpus && !known ? "" : gpu_type, 1, machine, &from, &error) < 0)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "machine", "measure it in a job: " CALIBRATE, "%s",
		                error.message);
	else
		wlb_doctor_note(doctor, WLB_FINDING_INFO, "machine", "measure these nodes in a job: " CALIBRATE,
		                "a job here is planned with '%s', not measured, from %s", machine->name, from);
	free(machine);
}
