#include "coordinator/wlb/run/record_event.h"

#include <stdlib.h>

#include <jansson.h>

#include "common/clock.h"

void wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail)
{
	wlb_run_record_event_of(reporter, kind, detail, wlb_clock_unix_s());
}

void wlb_run_record_event_of(struct wlb_reporter *reporter, const char *kind, const char *detail, double time_s)
{
	json_t *data = json_pack("{s:s, s:s}", "kind", kind, "detail", detail);
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	if (text != NULL && reporter != NULL)
		wlb_reporter_record_of(reporter, "event", text, time_s, NULL);
	free(text);
	json_decref(data);
}
