/* Any body of POST /v1/calibrations: refused with a reason, or a calibration whose nodes are checked against a job's.
 */
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/calibrations/calibration_read.h"
#include "coordinator/wlbd/http/fields.h"
#include "planner/machine.h"
#include "tests/fuzz/scratch.h"

static void check_job(const struct wlbd_calibration *calibration)
{
	struct wlb_slurm_job job = {.job_id = 12, .running = true, .nodes = "n[1-2]"};
	struct wlb_error error = {0};
	if (wlbd_calibration_check_job(calibration, &job, &error) == 0) {
		for (size_t i = 0; i < json_array_size(calibration->nodes); i++) {
			const char *node = json_string_value(json_array_get(calibration->nodes, i));
			must(strcmp(node, "n1") == 0 || strcmp(node, "n2") == 0);
		}
	} else {
		must(error.message[0] != '\0');
	}
}

static void check_machine(const json_t *object)
{
	struct wlb_machine machine;
	char *text = json_dumps(object, JSON_COMPACT);
	must(text != NULL && wlb_machine_file_parse(text, strlen(text), &machine, NULL) == 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlbd_calibration calibration;
	struct wlb_error error = {0};
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body != NULL && wlbd_calibration_read(body, &calibration, &error) == 0) {
		must(*calibration.node_type != '\0' && strlen(calibration.node_type) <= WLBD_NODE_TYPE_MAX);
		must(calibration.ranks_per_node >= 1 && calibration.job_id >= 0);
		check_machine(calibration.machine);
		check_job(&calibration);
	} else {
		must(error.message[0] != '\0');
	}
	json_decref(body);
	return 0;
}
