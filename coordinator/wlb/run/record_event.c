#include "coordinator/wlb/run/record_event.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/json_text.h"
#include "coordinator/wlb/run/print.h"
#include "libwlb/wlb.h"

void wlb_run_record(struct wlb_reporter *reporter, const char *type, json_t *data)
{
	wlb_run_record_of(reporter, type, data, wlb_clock_unix_s());
}

void wlb_run_record_of(struct wlb_reporter *reporter, const char *type, json_t *data, double time_s)
{
	struct wlb_error error;
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	json_decref(data);
	int rc = 0;
	if (text == NULL)
		rc = wlb_fail(&error, "out of memory");
	else if (reporter != NULL)
		rc = wlb_reporter_record_of(reporter, type, text, time_s, &error);
	if (rc != 0)
		wlb_run_print("a record of type %s is missing: %s", type, error.message);
	free(text);
}

void wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail)
{
	wlb_run_record(reporter, "event", json_pack("{s:s, s:o}", "kind", kind, "detail", wlb_json_text(detail)));
}
