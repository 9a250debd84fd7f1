#include "coordinator/wlbd/requests/routes.h"

#include "coordinator/wlbd/requests/handlers.h"

enum {
	BODY_MOST_BYTES = 1 << 20,
	RECORDS_MOST_BYTES = 8 << 20,
	SETTINGS_MOST_BYTES = 4096,
	STACKS_MOST_BYTES = 256 << 10,
};

static const struct wlbd_route list[] = {
	{"POST", "/v1/runs/*/report", false, true, BODY_MOST_BYTES, wlbd_post_report},
	{"POST", "/v1/runs/*/records", false, false, RECORDS_MOST_BYTES, wlbd_post_records},
	{"POST", "/v1/runs/*/attempts", false, false, BODY_MOST_BYTES, wlbd_post_attempt},
	{"POST", "/v1/runs/*/end", false, false, BODY_MOST_BYTES, wlbd_post_end},
	{"POST", "/v1/runs/*/settings", false, false, SETTINGS_MOST_BYTES, wlbd_post_settings},
	{"POST", "/v1/runs", false, false, BODY_MOST_BYTES, wlbd_post_run},
	{"GET", "/v1/runs", false, false, 0, wlbd_get_runs},
	{"GET", "/v1/runs/*/steps", false, false, 0, wlbd_get_steps},
	{"GET", "/v1/runs/*/ranks", false, false, 0, wlbd_get_ranks},
	{"POST", "/v1/runs/*/stacks/gather", false, false, BODY_MOST_BYTES, wlbd_post_stacks_gather},
	{"POST", "/v1/runs/*/stacks", false, false, STACKS_MOST_BYTES, wlbd_post_stacks},
	{"GET", "/v1/runs/*/stacks", false, false, 0, wlbd_get_stacks},
	{"GET", "/v1/runs/*", false, false, 0, wlbd_get_run},
	{"POST", "/v1/calibrations", false, false, BODY_MOST_BYTES, wlbd_post_calibration},
	{"GET", "/v1/calibrations", false, false, 0, wlbd_get_calibration},
	{"POST", "/v1/runs/*/node_checks", false, false, BODY_MOST_BYTES, wlbd_post_run_node_check},
	{"POST", "/v1/node_checks", false, false, BODY_MOST_BYTES, wlbd_post_node_check},
	{"GET", "/v1/nodes", false, false, 0, wlbd_get_nodes},
	{"GET", "/v1/faults", false, false, 0, wlbd_get_faults},
	{"GET", "/healthz", true, false, 0, wlbd_get_health},
	{"GET", "/metrics", true, false, 0, wlbd_get_metrics},
};

const struct wlbd_routes wlbd_routes = {list, sizeof(list) / sizeof(list[0])};
