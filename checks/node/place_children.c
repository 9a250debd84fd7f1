#include "checks/node/place_children.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks/node/bounds.h"
#include "checks/node/node_load.h"

int wlb_place_children_run(struct wlb_children *children, const struct wlb_places *places, size_t result_bytes,
                           wlb_child_work *work, const void *context, double takes_s, struct wlb_error *error)
{
	return wlb_children_run(children, places->count, result_bytes, work, context,
	                        places->open_s + WLB_CHECK_LATE * takes_s, error);
}

/* A child that was refused memory or a library, or was killed, says nothing of its CPU; nor does one of its GPU for
 * which the program has no kernels. */
static bool is_prevented(const struct wlb_child *child, const struct wlb_check_place *place)
{
	return child->end == WLB_CHILD_UNABLE ||
	       (place->gpu < 0 && (child->end == WLB_CHILD_REFUSED || wlb_child_was_killed(child)));
}

/* Tells why the child could not check its place. Returns -1. */
static int fail_prevented(const struct wlb_child *child, const struct wlb_check_place *place, struct wlb_error *error)
{
	if (child->end != WLB_CHILD_BROKEN)
		return wlb_fail(error, "%s: %s", place->name, child->error.message);
	int signal = WTERMSIG(child->status);
	return wlb_fail(error, "%s: could not be checked: killed by signal %d%s", place->name, signal,
	                signal == SIGKILL ? ", as where memory is exhausted: free memory and check again" : "");
}

int wlb_place_children_judge(const struct wlb_children *children, const struct wlb_places *places, const char *check,
                             struct wlb_check_report *report, struct wlb_error *error)
{
	char text[WLB_FINDING_BYTES];
	int broken = 0, first = -1, prevented = -1;
	for (int i = 0; i < children->count; i++) {
		enum wlb_child_end end = children->list[i].end;
		if (is_prevented(&children->list[i], &places->list[i]))
			prevented = i;
		else if (end != WLB_CHILD_DONE && end != WLB_CHILD_IN_USE && broken++ == 0)
			first = i;
		report->hangs = report->hangs || end == WLB_CHILD_LATE;
	}
	if (first < 0 && prevented >= 0)
		return fail_prevented(&children->list[prevented], &places->list[prevented], error);
	if (first < 0)
		return 1;
	wlb_child_describe(children, first, text, sizeof(text));
	wlb_report_add(report, check, WLB_CHECK_FAILED, "%s: %s%s", places->list[first].name, text,
	               wlb_others_text(broken).text);
	return 0;
}

int wlb_places_lack_memory(const struct wlb_places *places, double place_bytes, struct wlb_error *why)
{
	double needed_bytes = places->count * place_bytes, free_bytes = wlb_free_memory_bytes();
	if (places->list[0].gpu >= 0 || needed_bytes <= 0.5 * free_bytes)
		return 0;
	wlb_fail(why, "needs %.3g GB, more than half of the %.3g GB of free memory: free memory and check again",
	         1e-9 * needed_bytes, 1e-9 * free_bytes);
	return 1;
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
