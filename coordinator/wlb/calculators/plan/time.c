#include "coordinator/wlb/calculators/plan/time.h"

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
	{"tp", "tensor parallel", offsetof(struct wlb_sim_time, tp_s)},
	{"cp", "context parallel", offsetof(struct wlb_sim_time, cp_s)},
	{"pp", "between stages", offsetof(struct wlb_sim_time, pp_s)},
	{"dp", "gradients", offsetof(struct wlb_sim_time, dp_s)},
	{"optimizer", "optimizer", offsetof(struct wlb_sim_time, optimizer_s)},
	{"bubble", "pipeline bubble", offsetof(struct wlb_sim_time, bubble_s)},
	{"cp_imbalance", "unequal shards", offsetof(struct wlb_sim_time, cp_imbalance_s)},
	{"imbalance", "unequal micro-batches", offsetof(struct wlb_sim_time, imbalance_s)},
	{"straggler", "slow ranks", offsetof(struct wlb_sim_time, straggler_s)},
};

const char *wlb_time_words(int part)
{
	return parts[part].words;
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

void wlb_time_print(const struct wlb_sim_time *time)
{
	struct wlb_bar bars[WLB_TIME_PARTS];
	int count = 0;
	for (int i = 0; i < WLB_TIME_PARTS; i++) {
		double seconds = wlb_time_part(time, i);
		if (seconds < 5e-4 * time->step_s)
			continue;
		struct wlb_bar *bar = &bars[count++];
		snprintf(bar->label, sizeof(bar->label), "%s", parts[i].words);
		snprintf(bar->note, sizeof(bar->note), "%.3f s  %4.1f%%", seconds, 100.0 * seconds / time->step_s);
		bar->value = seconds;
	}
	wlb_bars(stdout, bars, count, wlb_terminal_columns(), wlb_terminal_unicode());
}
