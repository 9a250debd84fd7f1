#include "planner/cli/sim/report.h"

#include <inttypes.h>

#include "common/output/table.h"
#include "planner/cli/plan/json.h"
#include "planner/cli/plan/time.h"

static double speed_up(const struct wlb_sim_report *report, int run)
{
	return report->runs[run].tokens_per_s / report->runs[report->base].tokens_per_s;
}

static json_t *run_to_json(const struct wlb_sim_report *report, int i)
{
	const struct wlb_sim_run *run = &report->runs[i];
	return json_pack("{s:s, s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:f, s:I, s:o, s:i, s:f, s:o}", "strategy",
	                 run->strategy->name, "packing", wlb_strategy_name(run->strategy->packing), "sharding",
	                 wlb_sharding_name(run->strategy->sharding), "dynamic",
	                 run->strategy->attention == WLB_SIM_DYNAMIC, "tokens_per_s", run->tokens_per_s,
	                 "held_back_share", run->held_back_share, "utilization", run->utilization, "imbalance_mean",
	                 run->imbalance, "speedup", speed_up(report, i), "micro_batch_tokens",
	                 (json_int_t)run->micro_batch_tokens, "memory_bytes", wlb_memory_to_json(&run->memory),
	                 "fullest_stage", (int)run->stage, "missing_bytes", run->missing_bytes, "time",
	                 wlb_time_to_json(&run->time));
}

static json_t *failures_to_json(const struct wlb_sim_failures *failures)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "useful_share", failures->found.share, "checkpoint_interval_s",
	                 failures->found.interval_s, "failures_per_day", failures->found.failures_per_day,
	                 "lost_saving", failures->found.lost_checkpoint, "lost_restarting",
	                 failures->found.lost_failures);
}

json_t *wlb_sim_to_json(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                        const struct wlb_sim_report *report)
{
	json_t *runs = json_array(), *object = wlb_plan_to_json(&report->plan);
	int rc = runs != NULL && object != NULL ? 0 : -1;
	for (int i = 0; rc == 0 && i < report->count; i++)
		rc = json_array_append_new(runs, run_to_json(report, i));
	if (rc == 0) {
		rc |= json_object_set_new(object, "gpu", json_string(input->machine.name));
		rc |= json_object_set_new(object, "mfu_counts",
		                          json_string(request->trainer.full_attention ? "full" : "causal"));
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

/* The decimals of all strategies' times, those that the shortest step needs. */
static int time_decimals(const struct wlb_sim_report *report)
{
	int decimals = 0;
	for (int i = 0; i < report->count; i++) {
		int needed = wlb_time_decimals(report->runs[i].time.step_s);
		decimals = needed > decimals ? needed : decimals;
	}
	return decimals;
}

static int print_speed_ups(const struct wlb_sim_report *report)
{
	struct wlb_table table = {.columns = 7, .right = "lrrrrrl"};
	wlb_table_add(&table,
	              (const char *const[]){"STRATEGY", "STEP", "TOKENS/S", "MFU", "SPEED-UP", "IMBALANCE", ""});
	for (int i = 0; i < report->count; i++) {
		const struct wlb_sim_run *run = &report->runs[i];
		char step[32], rate[32], share[32], faster[32], imbalance[32];
		snprintf(step, sizeof(step), "%.*f s", time_decimals(report), run->time.step_s);
		snprintf(rate, sizeof(rate), "%.0f", run->tokens_per_s);
		snprintf(share, sizeof(share), "%.1f%%", 100.0 * run->utilization);
		snprintf(faster, sizeof(faster), "%.3f", speed_up(report, i));
		snprintf(imbalance, sizeof(imbalance), "%.4f", run->imbalance);
		wlb_table_add(&table, (const char *const[]){run->strategy->name, step, rate, share, faster, imbalance,
		                                            run->strategy->words});
	}
	return wlb_table_print(&table, "  ", stdout);
}

/* Prints the parts of a step: a row for each part, a column for each strategy, in seconds that sum to the step's.
 * Parts without time are left out. */
static int print_parts(const struct wlb_sim_report *report)
{
	struct wlb_table table = {.columns = report->count + 1, .right = "lrrrrrrrr"};
	const char *cells[WLB_SIM_RUNS_MAX + 1] = {"SECONDS A STEP"};
	char texts[WLB_SIM_RUNS_MAX][32];
	double seconds[WLB_SIM_RUNS_MAX][WLB_TIME_PARTS];
	const int decimals = time_decimals(report);
	for (int i = 0; i < report->count; i++) {
		cells[i + 1] = report->runs[i].strategy->name;
		wlb_time_round(&report->runs[i].time, decimals, seconds[i]);
	}
	wlb_table_add(&table, cells);
	for (int part = 0; part < WLB_TIME_PARTS; part++) {
		bool any = false;
		cells[0] = wlb_time_words(part);
		for (int i = 0; i < report->count; i++) {
			any |= seconds[i][part] != 0.0;
			snprintf(texts[i], sizeof(texts[i]), "%.*f", decimals, seconds[i][part]);
			cells[i + 1] = texts[i];
		}
		if (any)
			wlb_table_add(&table, cells);
	}
	puts("\nWhere it comes from");
	return wlb_table_print(&table, "  ", stdout);
}

/* Says for each strategy whose micro-batches need more memory than a GPU has how much is missing. */
static void print_misfits(const struct wlb_plan_input *input, const struct wlb_sim_report *report)
{
	const double gib = 1024.0 * 1024.0 * 1024.0;
	for (int i = 0; i < report->count; i++) {
		const struct wlb_sim_run *run = &report->runs[i];
		if (run->missing_bytes > 0.0)
			printf("\nDoes not fit with %s: a GPU of stage %d needs %.1f GiB and has %.1f (activations "
			       "%.1f GiB, "
			       "for a micro-batch of %" PRId64 " tokens)\n",
			       run->strategy->name, run->stage, run->memory.reserved / gib,
			       input->machine.memory_bytes / gib, run->memory.activations / gib,
			       run->micro_batch_tokens);
	}
}

static void print_failures(const struct wlb_sim_failures *failures)
{
	const struct wlb_goodput *found = &failures->found;
	printf("\nFailures: %.2f a day on %d nodes; %.1f%% of the time is useful with a checkpoint every %.0f s\n",
	       found->failures_per_day, failures->given.nodes, 100.0 * found->share, found->interval_s);
	printf("  lost: %.1f%% to saving, %.1f%% to restarts and work done twice\n", 100.0 * found->lost_checkpoint,
	       100.0 * found->lost_failures);
}

int wlb_sim_print(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                  const struct wlb_sim_report *report)
{
	char layout[64], model[256], recompute[WLB_RECOMPUTE_TEXT_BYTES];
	wlb_layout_format(&report->plan.layout, layout, sizeof(layout));
	wlb_recompute_format(&report->plan, recompute, sizeof(recompute));
	wlb_plan_input_model_words(request, input, model, sizeof(model));
	printf("%s on %d GPUs of %s, %d micro-batches for each replica, interleave %d, recomputation %s: %d steps\n",
	       layout, wlb_layout_ranks(&report->plan.layout), input->machine.name, report->plan.micro_batches,
	       report->plan.interleave, recompute, report->steps);
	printf("%s; MFU counts %s attention\n\n", model, request->trainer.full_attention ? "full" : "causal");
	if (print_speed_ups(report) < 0 || print_parts(report) < 0)
		return -1;
	print_misfits(input, report);
	if (report->failures.given.mtbf_s > 0.0)
		print_failures(&report->failures);
	return 0;
}

void wlb_sim_print_csv(const struct wlb_sim_report *report)
{
	printf("strategy,step_s,tokens_per_s,mfu,speedup,imbalance_mean,micro_batch_tokens,memory_bytes,missing_bytes");
	for (int part = 0; part < WLB_TIME_PARTS; part++)
		printf(",%s_s", wlb_time_name(part));
	putchar('\n');
	for (int i = 0; i < report->count; i++) {
		const struct wlb_sim_run *run = &report->runs[i];
		printf("%s,%.9g,%.9g,%.9g,%.9g,%.9g,%" PRId64 ",%.0f,%.0f", run->strategy->name, run->time.step_s,
		       run->tokens_per_s, run->utilization, speed_up(report, i), run->imbalance,
		       run->micro_batch_tokens, run->memory.reserved, run->missing_bytes);
		for (int part = 0; part < WLB_TIME_PARTS; part++)
			printf(",%.9g", wlb_time_part(&run->time, part));
		putchar('\n');
	}
}
