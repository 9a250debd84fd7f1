#include "coordinator/wlb/history/time_lost.h"

#include <string.h>

#include "common/output/table.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/seconds_text.h"

static const double shown_least_s = 0.05; /* less is printed as 0.0 s */

/* What a cause of docs/api.md means; a coordinator of a later release may have others. */
static const char *meaning_of(const char *cause)
{
	static const struct {
		const char *cause, *meaning;
	} causes[] = {
		{"detect", "from a fault until it was found"},
		{"decide", "from its discovery until the next attempt was decided"},
		{"start", "from the decision until the workers of the attempt had started"},
		{"load", "from then until their first step began: model, checkpoint, data"},
		{"repeated", "steps that were done again or lost, and those that a fault cut short"},
		{"checkpoint", "saving, while no step ran"},
		{"idle", "ranks and nodes of the job that an attempt did not use"},
		{"other", "before the first attempt, after the last, between steps, a step under way"},
	};
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (strcmp(cause, causes[i].cause) == 0)
			return causes[i].meaning;
	return "";
}

static void print_ratio(const json_t *lost, double held_s, FILE *out)
{
	char held[32], effective[32];
	const json_t *ettr = json_object_get(lost, "ettr");
	wlb_seconds_format(held_s, held, sizeof(held));
	wlb_seconds_format(json_number_value(json_object_get(lost, "effective_s")), effective, sizeof(effective));
	if (json_is_number(ettr))
		fprintf(out, "  ETTR %.3f: %s of the %s of allocated time advanced training\n", json_number_value(ettr),
		        effective, held);
	else
		fprintf(out,
		        "  the job had its nodes allocated for %s; no step is recorded, so the ETTR is not known\n",
		        held);
}

int wlb_show_time_lost(const json_t *run, FILE *out)
{
	const json_t *lost = json_object_get(run, "time_lost"), *entry;
	double held_s = json_number_value(json_object_get(lost, "held_s"));
	struct wlb_table table = {.columns = 4, .right = "lrrl", .shrink = "---n", .is_untitled = true};
	size_t i;
	if (held_s <= 0)
		return 0;
	fputs("\nTime lost\n", out);
	wlb_table_fit_terminal(&table);
	print_ratio(lost, held_s, out);
	json_array_foreach(json_object_get(lost, "causes"), i, entry)
	{
		char seconds[32], share[32];
		const char *cause = wlb_field_text(entry, "cause", "?");
		double lost_s = json_number_value(json_object_get(entry, "seconds"));
		if (lost_s < shown_least_s)
			continue;
		wlb_seconds_format(lost_s, seconds, sizeof(seconds));
		snprintf(share, sizeof(share), "%.1f %%", 100 * json_number_value(json_object_get(entry, "share")));
		wlb_table_add(&table, (const char *const[]){cause, seconds, share, meaning_of(cause)});
	}
	return wlb_table_print(&table, "  ", out);
}
