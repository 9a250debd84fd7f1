#include "coordinator/wlb/calculators/sim/report.h"

#include "coordinator/wlb/calculators/plan/json.h"
#include "coordinator/wlb/calculators/plan/time.h"
#include "coordinator/wlb/output/table.h"

static double speed_up(const struct wlb_sim_report *report, int run)
{
	return report->runs[run].tokens_per_s / report->runs[report->base].tokens_per_s;
}

static json_t *run_to_json(const struct wlb_sim_report *report, int i)
{
	const struct wlb_sim_run *run = &report->runs[i];
	return json_pack("{s:s, s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:o}", "strategy", run->strategy->name, "packing",
	                 wlb_strategy_name(run->strategy->packing), "sharding",
	                 wlb_sharding_name(run->strategy->sharding), "dynamic", run->strategy->dynamic, "tokens_per_s",
	                 run->tokens_per_s, "utilization", run->utilization, "imbalance_mean", run->imbalance,
	                 "speedup", speed_up(report, i), "time", wlb_time_to_json(&run->time));
}

static json_t *failures_to_json(const struct wlb_sim_failures *failures)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "useful_share", failures->found.share, "checkpoint_interval_s",
	                 failures->found.interval_s, "failures_per_day", failures->found.failures_per_day,
	                 "lost_saving", failures->found.lost_checkpoint, "lost_restarting",
	                 failures->found.lost_failures);
}

json_t *wlb_sim_to_json(const struct wlb_plan_input *input, const struct wlb_sim_report *report)
{
	json_t *runs = json_array(), *object = wlb_plan_to_json(&report->plan);
	int rc = runs != NULL && object != NULL ? 0 : -1;
	for (int i = 0; rc == 0 && i < report->count; i++)
		rc = json_array_append_new(runs, run_to_json(report, i));
	if (rc == 0) {
		rc |= json_object_set_new(object, "gpu", json_string(input->machine.name));
		rc |= json_object_set_new(object, "steps", json_integer(report->steps));
		rc |= json_object_set_new(object, "compared_with",
		                          json_string(report->runs[report->base].strategy->name));
		rc |= json_object_set(object, "strategies", runs);
		if (report->failures.given.mtbf_s > 0.0)
			rc |= json_object_set_new(object, "failures", failures_to_json(&report->failures));
	}
	json_decref(runs);
	if (rc == 0)
		return object;
	json_decref(object);
	return NULL;
}

static int print_speed_ups(const struct wlb_sim_report *report)
{
	struct wlb_table table = {.columns = 7, .right = "lrrrrrl"};
	wlb_table_add(&table,
	              (const char *const[]){"STRATEGY", "STEP", "TOKENS/S", "MFU", "SPEED-UP", "IMBALANCE", ""});
	for (int i = 0; i < report->count; i++) {
		const struct wlb_sim_run *run = &report->runs[i];
		char step[32], rate[32], share[32], faster[32], imbalance[32];
		snprintf(step, sizeof(step), "%.3f s", run->time.step_s);
		snprintf(rate, sizeof(rate), "%.0f", run->tokens_per_s);
		snprintf(share, sizeof(share), "%.1f%%", 100.0 * run->utilization);
		snprintf(faster, sizeof(faster), "%.3f", speed_up(report, i));
		snprintf(imbalance, sizeof(imbalance), "%.4f", run->imbalance);
		wlb_table_add(&table, (const char *const[]){run->strategy->name, step, rate, share, faster, imbalance,
		                                            run->strategy->words});
	}
	return wlb_table_print(&table, "  ", stdout);
}

/* Prints the parts of a step: a row for each part, a column for each strategy. Parts without time are left out. */
static int print_parts(const struct wlb_sim_report *report)
{
	struct wlb_table table = {.columns = report->count + 1, .right = "lrrrrrrrr"};
	const char *cells[WLB_SIM_RUNS_MAX + 1] = {"SECONDS A STEP"};
	char texts[WLB_SIM_RUNS_MAX][32];
	for (int i = 0; i < report->count; i++)
		cells[i + 1] = report->runs[i].strategy->name;
	wlb_table_add(&table, cells);
	for (int part = 0; part < WLB_TIME_PARTS; part++) {
		double share = 0.0;
		cells[0] = wlb_time_words(part);
		for (int i = 0; i < report->count; i++) {
			double seconds = wlb_time_part(&report->runs[i].time, part);
			share += seconds / report->runs[i].time.step_s;
			snprintf(texts[i], sizeof(texts[i]), "%.3f", seconds);
			cells[i + 1] = texts[i];
		}
		if (share > 5e-4)
			wlb_table_add(&table, cells);
	}
	puts("\nWhere it comes from");
	return wlb_table_print(&table, "  ", stdout);
}

static void print_failures(const struct wlb_sim_failures *failures)
{
	const struct wlb_goodput *found = &failures->found;
	printf("\nFailures: %.2f a day on %d nodes; %.1f%% of the time is useful with a checkpoint every %.0f s\n",
	       found->failures_per_day, failures->given.nodes, 100.0 * found->share, found->interval_s);
	printf("  lost: %.1f%% to saving, %.1f%% to restarts and work done twice\n", 100.0 * found->lost_checkpoint,
	       100.0 * found->lost_failures);
}

int wlb_sim_print(const struct wlb_plan_input *input, const struct wlb_sim_report *report)
{
	char layout[64];
	wlb_layout_format(&report->plan.layout, layout, sizeof(layout));
	printf("%s on %d GPUs of %s, %d micro-batches for each replica, interleave %d, recomputation %s: %d steps\n\n",
	       layout, wlb_layout_ranks(&report->plan.layout), input->machine.name, report->plan.micro_batches,
	       report->plan.interleave, wlb_recompute_name(report->plan.recompute), report->steps);
	if (print_speed_ups(report) < 0 || print_parts(report) < 0)
		return -1;
	if (report->failures.given.mtbf_s > 0.0)
		print_failures(&report->failures);
	return 0;
}
