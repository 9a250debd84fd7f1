#include "checks/node/send.h"

#include <stdlib.h>

#include "coordinator/client/call_once.h"

enum { SEND_MS = 10000 };

int wlb_check_report_send(const struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_client_config config;
	if (wlb_client_config_load(&config, error) < 0)
		return -1;
	char *body = wlb_report_json(report, false, error);
	char *reply =
		body != NULL ? wlb_client_call_once(&config, "POST", "/v1/node_checks", body, SEND_MS, error) : NULL;
	int rc = reply != NULL ? 0 : -1;
	free(body);
	free(reply);
	return rc;
}
