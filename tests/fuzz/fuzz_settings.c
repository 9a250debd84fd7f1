/* Any wlbd.conf, any addresses of coordinators, any name of a run. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/client/config.h"
#include "coordinator/wlbd/config.h"
#include "coordinator/wlbd/http/route.h"
#include "tests/fuzz/scratch.h"

static void check_address(const char *text)
{
	struct wlb_client_config config = {0};
	struct wlb_error error = {0};
	if (wlb_client_config_addresses(&config, text, &error) < 0) {
		must(error.message[0] != '\0');
		return;
	}
	must(config.coordinator_count >= 1 && config.coordinator_count <= WLB_COORDINATORS_MAX);
	for (int i = 0; i < config.coordinator_count; i++) {
		int port = atoi(config.coordinators[i].port);
		must(config.coordinators[i].host[0] != '\0' && port >= 1 && port <= 65535);
	}
}

static void check_route(const char *text)
{
	static const struct wlbd_route routes[] = {{.method = "GET", .pattern = "/v1/runs"},
	                                           {.method = "GET", .pattern = "/v1/runs/*"},
	                                           {.method = "POST", .pattern = "/v1/runs/*/records"}};
	const struct wlbd_route *route = NULL;
	char run[WLBD_RUN_NAME_SIZE] = "";
	if (wlbd_run_name_valid(text))
		must(strlen(text) < WLBD_RUN_NAME_SIZE);
	if (wlbd_route_match(routes, 3, "GET", text, &route, run) == WLBD_MATCH)
		must(route == &routes[0] || (route == &routes[1] && wlbd_run_name_valid(run)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlbd_config config;
	struct wlb_error error = {0};
	char *text = malloc(bytes + 1);
	must(text != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (wlbd_config_parse("x.conf", text, &config, &error) == 0)
		must(config.listen_port >= 0 && config.listen_port <= 65535 && config.database_timeout_ms > 0);
	else
		must(strstr(error.message, "x.conf") != NULL);
	check_address(text);
	check_route(text);
	free(text);
	return 0;
}
