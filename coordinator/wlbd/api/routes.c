#include "coordinator/wlbd/api/routes.h"

#include "coordinator/wlbd/api/handlers.h"

enum {
	BODY_MAX_BYTES = 1 << 20,
	RECORDS_MAX_BYTES = 8 << 20,
	SETTINGS_MAX_BYTES = 4096,
	TAGS_MAX_BYTES = 32 << 10, /* a note of 4,096 bytes, each escaped, is shorter */
	STACKS_MAX_BYTES = 256 << 10,
	QUERY_MAX_BYTES = 128 << 10, /* of a statement of 16 KiB, each byte escaped */
};

static const struct wlbd_route list[] = {
	{"POST", "/v1/runs/*/report", false, true, BODY_MAX_BYTES, wlbd_post_report, false},
	{"POST", "/v1/runs/*/records", false, false, RECORDS_MAX_BYTES, wlbd_post_records, false},
	{"POST", "/v1/runs/*/attempts", false, false, BODY_MAX_BYTES, wlbd_post_attempt, false},
	{"POST", "/v1/runs/*/end", false, false, BODY_MAX_BYTES, wlbd_post_end, false},
	{"POST", "/v1/runs/*/settings", false, false, SETTINGS_MAX_BYTES, wlbd_post_settings, true},
	{"POST", "/v1/runs/*/tags", false, false, TAGS_MAX_BYTES, wlbd_post_tags, true},
	{"POST", "/v1/runs/*/notes", false, false, TAGS_MAX_BYTES, wlbd_post_notes, true},
	{"POST", "/v1/runs", false, false, BODY_MAX_BYTES, wlbd_post_run, false},
	{"GET", "/v1/runs", false, false, 0, wlbd_get_runs, false},
	{"GET", "/v1/runs/*/steps", false, false, 0, wlbd_get_steps, true},
	{"GET", "/v1/runs/*/ranks", false, false, 0, wlbd_get_ranks, true},
	{"POST", "/v1/runs/*/stacks/gather", false, false, BODY_MAX_BYTES, wlbd_post_stacks_gather, true},
	{"POST", "/v1/runs/*/stacks", false, false, STACKS_MAX_BYTES, wlbd_post_stacks, false},
	{"GET", "/v1/runs/*/stacks", false, false, 0, wlbd_get_stacks, true},
	{"GET", "/v1/runs/*", false, false, 0, wlbd_get_run, true},
	{"POST", "/v1/query", false, true, QUERY_MAX_BYTES, wlbd_post_query, false},
	{"POST", "/v1/calibrations", false, false, BODY_MAX_BYTES, wlbd_post_calibration, false},
	{"GET", "/v1/calibrations", false, false, 0, wlbd_get_calibration, false},
	{"POST", "/v1/runs/*/node_checks", false, false, BODY_MAX_BYTES, wlbd_post_run_node_check, false},
	{"POST", "/v1/node_checks", false, false, BODY_MAX_BYTES, wlbd_post_node_check, false},
	{"GET", "/v1/nodes", false, false, 0, wlbd_get_nodes, false},
	{"GET", "/v1/faults", false, false, 0, wlbd_get_faults, false},
	{"GET", "/healthz", true, false, 0, wlbd_get_health, false},
	{"GET", "/metrics", true, false, 0, wlbd_get_metrics, false},
};

const struct wlbd_routes wlbd_routes = {list, sizeof(list) / sizeof(list[0])};
