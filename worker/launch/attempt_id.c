#include "worker/launch/attempt_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/uuid.h"

int wlb_launch_attempt_id(char *id, size_t size, struct wlb_error *error)
{
	const char *given = getenv("WLB_ATTEMPT_ID");
	id[0] = '\0';
	if (getenv("WLB_RUN_ID") == NULL)
		return 0;
	if (given == NULL)
		return wlb_uuid_make(id, size, error);
	if (strlen(given) >= size)
		return wlb_fail(error, "WLB_ATTEMPT_ID '%.100s...': it must be a UUID", given);
	snprintf(id, size, "%s", given);
	return 0;
}
