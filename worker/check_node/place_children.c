#include "worker/check_node/place_children.h"

#include <stdbool.h>
#include <unistd.h>

#include "worker/check_node/bounds.h"

int wlb_place_children_run(struct wlb_children *children, const struct wlb_places *places, size_t result_bytes,
                           wlb_child_work *work, const void *context, double takes_s, struct wlb_error *error)
{
	return wlb_children_run(children, places->count, result_bytes, work, context,
	                        places->open_s + WLB_CHECK_LATE * takes_s, error);
}

int wlb_place_children_judge(const struct wlb_children *children, const struct wlb_places *places, const char *check,
                             struct wlb_check_report *report, struct wlb_error *error)
{
	char text[WLB_FINDING_BYTES];
	int broken = 0, first = -1, refused = -1;
	for (int i = 0; i < children->count; i++) {
		enum wlb_child_end end = children->list[i].end;
		bool is_refused = end == WLB_CHILD_REFUSED && places->list[i].gpu < 0;
		if (is_refused)
			refused = i;
		else if (end != WLB_CHILD_DONE && end != WLB_CHILD_IN_USE && broken++ == 0)
			first = i;
		report->hangs = report->hangs || end == WLB_CHILD_LATE;
	}
	int told = first >= 0 ? first : refused;
	if (told < 0)
		return 1;
	wlb_child_describe(children, told, text, sizeof(text));
	if (first < 0)
		return wlb_fail(error, "%s: %s", places->list[told].name, text);
	wlb_report_add(report, check, WLB_CHECK_FAILED, "%s: %s%s", places->list[told].name, text,
	               wlb_others_text(broken).text);
	return 0;
}

int wlb_place_children_in_use(const struct wlb_children *children, const struct wlb_places *places, const char *check,
                              struct wlb_check_report *report)
{
	char text[WLB_FINDING_BYTES];
	int in_use = 0, first = 0;
	for (int i = 0; i < children->count; i++)
		if (children->list[i].end == WLB_CHILD_IN_USE && in_use++ == 0)
			first = i;
	if (in_use == 0)
		return 0;
	wlb_child_describe(children, first, text, sizeof(text));
	wlb_report_add(report, check, WLB_CHECK_NOT_CHECKED, "in use by other processes: %s: %.200s%s",
	               places->list[first].name, text, wlb_others_text(in_use).text);
	return 1;
}

struct wlb_short_text wlb_places_text(const struct wlb_places *places)
{
	struct wlb_short_text text;
	int gpus = places->list[0].gpu >= 0, cpus = 0;
	for (int i = 0; i < places->count; i++)
		cpus += places->list[i].cpus;
	int count = gpus ? places->count : cpus;
	long online = gpus ? 0 : sysconf(_SC_NPROCESSORS_ONLN);
	if (count < online)
		snprintf(text.text, sizeof(text.text), "%d of %ld CPUs", count, online);
	else
		snprintf(text.text, sizeof(text.text), "%d %s%s", count, gpus ? "GPU" : "CPU", count > 1 ? "s" : "");
	return text;
}

struct wlb_short_text wlb_others_text(int wrong)
{
	struct wlb_short_text text = {""};
	if (wrong > 1)
		snprintf(text.text, sizeof(text.text), " (and %d other%s)", wrong - 1, wrong > 2 ? "s" : "");
	return text;
}
