#include "coordinator/wlb/run/record_event.h"

#include <stdlib.h>

#include <jansson.h>

void wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail)
{
	json_t *data = json_pack("{s:s, s:s}", "kind", kind, "detail", detail);
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	if (text != NULL && reporter != NULL)
		wlb_reporter_record(reporter, "event", text, NULL);
	free(text);
	json_decref(data);
}
