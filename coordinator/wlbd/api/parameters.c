#include "coordinator/wlbd/api/parameters.h"

#include <stdlib.h>

#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/wlbd.h"

void wlbd_parameter_add_reader(struct wlbd_params *params, const struct wlbd_request *request)
{
	bool is_restricted = request->wlbd->config.private_data && !wlbd_request_privileged(request);
	wlbd_params_add_integer_if(params, is_restricted, request->uid);
}

int wlbd_parameter_number(struct wlbd_request *request, const char *name, int64_t min, int64_t max, int64_t *number)
{
	const char *value = wlbd_request_parameter(request, name);
	char *end;
	if (value == NULL)
		return 0;
	long long parsed = strtoll(value, &end, 10);
	if (*end != '\0' || parsed < min || parsed > max) {
		wlbd_request_fail(request, 400, "parameter '%s': '%.60s' must be a whole number from %lld to %lld",
		                  name, value, (long long)min, (long long)max);
		return -1;
	}
	*number = parsed;
	return 0;
}
