#include "planner/cli/plan/time.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "common/output/terminal.h"
#include "planner/cli/chart.h"

static const struct {
	const char *name, *words;
	size_t offset;
} parts[WLB_TIME_PARTS] = {
	{"compute", "computation", offsetof(struct wlb_sim_time, compute_s)},
	{"recompute", "computation done again", offsetof(struct wlb_sim_time, recompute_s)},
	{"tp", "tensor-parallel communication", offsetof(struct wlb_sim_time, tp_s)},
	{"cp", "context-parallel communication", offsetof(struct wlb_sim_time, cp_s)},
	{"ep", "rows sent to experts and back", offsetof(struct wlb_sim_time, ep_s)},
	{"pp", "sends between stages", offsetof(struct wlb_sim_time, pp_s)},
	{"dp", "gradients and weights of replicas", offsetof(struct wlb_sim_time, dp_s)},
	{"optimizer", "optimizer", offsetof(struct wlb_sim_time, optimizer_s)},
	{"bubble", "pipeline bubble", offsetof(struct wlb_sim_time, bubble_s)},
	{"cp_imbalance", "unequal shards", offsetof(struct wlb_sim_time, cp_imbalance_s)},
	{"imbalance", "unequal micro-batches and stages", offsetof(struct wlb_sim_time, imbalance_s)},
	{"straggler", "slow ranks", offsetof(struct wlb_sim_time, straggler_s)},
};

const char *wlb_time_words(int part)
{
	return parts[part].words;
}

const char *wlb_time_name(int part)
{
	return parts[part].name;
}

double wlb_time_part(const struct wlb_sim_time *time, int part)
{
	return *(const double *)((const char *)time + parts[part].offset);
}

json_t *wlb_time_to_json(const struct wlb_sim_time *time)
{
	json_t *object = json_pack("{s:f}", "step_s", time->step_s);
	char key[64];
	for (int i = 0; object != NULL && i < WLB_TIME_PARTS; i++) {
		snprintf(key, sizeof(key), "%s_s", parts[i].name);
		if (json_object_set_new(object, key, json_real(wlb_time_part(time, i))) < 0) {
			json_decref(object);
			object = NULL;
		}
	}
	return object;
}

int wlb_time_decimals(double step_s)
{
	if (step_s >= 1.0)
		return 3;
	return step_s >= 0.01 ? 5 : 6;
}

void wlb_time_round(const struct wlb_sim_time *time, int decimals, double seconds[WLB_TIME_PARTS])
{
	const double units_per_s = pow(10.0, decimals);
	double units[WLB_TIME_PARTS], rest[WLB_TIME_PARTS];
	double left = round(units_per_s * time->step_s);
	for (int i = 0; i < WLB_TIME_PARTS; i++) {
		double exact = units_per_s * wlb_time_part(time, i);
		units[i] = floor(exact);
		rest[i] = exact - units[i];
		left -= units[i];
	}
	for (; left > 0.0; left -= 1.0) {
		int most = 0;
		for (int i = 1; i < WLB_TIME_PARTS; i++)
			if (rest[i] > rest[most])
				most = i;
		units[most] += 1.0;
		rest[most] -= 1.0;
	}
	for (int i = 0; i < WLB_TIME_PARTS; i++)
		seconds[i] = units[i] / units_per_s;
}

void wlb_time_print(const struct wlb_sim_time *time)
{
	struct wlb_bar bars[WLB_TIME_PARTS];
	double seconds[WLB_TIME_PARTS];
	const int decimals = wlb_time_decimals(time->step_s);
	int count = 0;
	wlb_time_round(time, decimals, seconds);
	for (int i = 0; i < WLB_TIME_PARTS; i++) {
		if (seconds[i] == 0.0)
			continue;
		struct wlb_bar *bar = &bars[count++];
		snprintf(bar->label, sizeof(bar->label), "%s", parts[i].words);
		snprintf(bar->note, sizeof(bar->note), "%.*f s  %4.1f%%", decimals, seconds[i],
		         100.0 * wlb_time_part(time, i) / time->step_s);
		bar->value = fmax(seconds[i], 0.0);
	}
	wlb_bars(stdout, bars, count, wlb_terminal_columns(), wlb_terminal_unicode());
}
