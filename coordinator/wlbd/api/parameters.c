#include "coordinator/wlbd/api/parameters.h"

#include <stdlib.h>

#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/wlbd.h"

void wlbd_parameter_add_reader(struct wlbd_params *params, const struct wlbd_call *call)
{
	bool is_restricted = call->wlbd->config.private_data && !wlbd_call_privileged(call);
	wlbd_params_add_integer_if(params, is_restricted, call->uid);
}

int wlbd_parameter_number(struct wlbd_call *call, const char *name, int64_t least, int64_t most, int64_t *number)
{
	const char *value = wlbd_call_parameter(call, name);
	char *end;
	if (value == NULL)
		return 0;
	long long parsed = strtoll(value, &end, 10);
	if (*end != '\0' || parsed < least || parsed > most) {
		wlbd_call_fail(call, 400, "parameter '%s': '%.60s' must be a whole number from %lld to %lld", name,
		               value, (long long)least, (long long)most);
		return -1;
	}
	*number = parsed;
	return 0;
}
