#include "coordinator/wlb/history/save_interval.h"

#include "coordinator/wlb/output/reply_fields.h"

/* Two digits, or whole minutes and hours. */
static void format_interval(double seconds, char text[32])
{
	if (seconds < 10.0)
		snprintf(text, 32, "%.2g s", seconds);
	else if (seconds < 300.0)
		snprintf(text, 32, "%.0f s", seconds);
	else if (seconds < 7200.0)
		snprintf(text, 32, "%.0f min", seconds / 60.0);
	else
		snprintf(text, 32, "%.1f h", seconds / 3600.0);
}

void wlb_show_save_interval(const json_t *run, FILE *out)
{
	const json_t *known = json_object_get(run, "save_interval");
	const json_t *now = json_object_get(known, "now_s"), *step = json_object_get(known, "interval_steps");
	char interval[32], stall[32], steps[64] = "", at_present[48] = "", text[32];
	if (!json_is_object(known))
		return;
	format_interval(json_number_value(json_object_get(known, "interval_s")), interval);
	format_interval(json_number_value(json_object_get(known, "stall_s")), stall);
	if (json_is_number(step))
		snprintf(steps, sizeof(steps), " (%.0f steps)", json_number_value(step));
	if (json_is_number(now)) {
		format_interval(json_number_value(now), text);
		snprintf(at_present, sizeof(at_present), "; now every %s", text);
	}
	wlb_field_number(known, "faults", text, sizeof(text));
	fprintf(out, "  checkpoints: every %s%s loses least, by %s faults in %.0f node-hours and a stall of %s%s\n",
	        interval, steps, text, json_number_value(json_object_get(known, "node_hours")), stall, at_present);
}
