#include "coordinator/wlb/calculators/plan/time.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "coordinator/wlb/output/chart.h"
#include "coordinator/wlb/output/terminal.h"

static const struct {
	const char *name, *words;
	size_t offset;
} parts[WLB_TIME_PARTS] = {
	{"compute", "computation", offsetof(struct wlb_sim_time, compute_s)},
	{"recompute", "computation done again", offsetof(struct wlb_sim_time, recompute_s)},
	{"tp", "tensor-parallel communication", offsetof(struct wlb_sim_time, tp_s)},
	{"cp", "context-parallel communication", offsetof(struct wlb_sim_time, cp_s)},
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

void wlb_time_round(const struct wlb_sim_time *time, int64_t ms[WLB_TIME_PARTS])
{
	double rest[WLB_TIME_PARTS];
	int64_t left = llround(1e3 * time->step_s);
	for (int i = 0; i < WLB_TIME_PARTS; i++) {
		double exact_ms = 1e3 * wlb_time_part(time, i);
		ms[i] = (int64_t)floor(exact_ms);
		rest[i] = exact_ms - (double)ms[i];
		left -= ms[i];
	}
	for (; left > 0; left--) {
		int most = 0;
		for (int i = 1; i < WLB_TIME_PARTS; i++)
			if (rest[i] > rest[most])
				most = i;
		ms[most]++;
		rest[most] -= 1.0;
	}
}

void wlb_time_print(const struct wlb_sim_time *time)
{
	struct wlb_bar bars[WLB_TIME_PARTS];
	int64_t ms[WLB_TIME_PARTS];
	int count = 0;
	wlb_time_round(time, ms);
	for (int i = 0; i < WLB_TIME_PARTS; i++) {
		if (ms[i] == 0)
			continue;
		struct wlb_bar *bar = &bars[count++];
		double seconds = (double)ms[i] / 1e3;
		snprintf(bar->label, sizeof(bar->label), "%s", parts[i].words);
		snprintf(bar->note, sizeof(bar->note), "%.3f s  %4.1f%%", seconds, 100.0 * seconds / time->step_s);
		bar->value = fmax(seconds, 0.0);
	}
	wlb_bars(stdout, bars, count, wlb_terminal_columns(), wlb_terminal_unicode());
}
