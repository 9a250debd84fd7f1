#include "planner/cli/pack/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/output/plot.h"
#include "common/output/table.h"
#include "common/output/terminal.h"
#include "planner/cli/chart.h"

enum { CURVE_ROWS = 8, CURVE_MARGIN = 12, BARS_MAX = 32 };

json_t *wlb_pack_json(const struct wlb_pack_summary *s)
{
	return json_pack("{s:s, s:I, s:i, s:f, s:I, s:f, s:f, s:f, s:f, s:i, s:I, s:I, s:I, s:I, s:I, s:f}", "strategy",
	                 wlb_strategy_name(s->options.strategy), "seq_length", (json_int_t)s->options.seq_length,
	                 "micro_batches", (int)s->options.micro_batches, "max_length_ratio",
	                 s->options.max_length_ratio, "steps", (json_int_t)s->steps, "imbalance_mean",
	                 s->imbalance_mean, "imbalance_p99", s->imbalance_p99, "imbalance_max", s->imbalance_max,
	                 "delay_mean_steps", s->delay_mean_steps, "delay_max_steps", (int)s->delay_max_steps,
	                 "documents", (json_int_t)s->documents, "tokens_in", (json_int_t)s->tokens_in, "tokens_packed",
	                 (json_int_t)s->tokens_packed, "tokens_held", (json_int_t)s->tokens_held, "cuts",
	                 (json_int_t)s->cuts, "pack_us_per_step", s->pack_us_per_step);
}

static void add_measure(struct wlb_table *table, const char *name, const char *mean, const char *p99, const char *most,
                        const char *unit)
{
	wlb_table_add(table, (const char *const[]){name, mean, p99, most, unit});
}

static int print_measures(const struct wlb_pack_summary *s)
{
	struct wlb_table table = {.columns = 5, .right = "lrrrl"};
	char mean[32], p99[32], most[32];
	add_measure(&table, "", "MEAN", "P99", "MAX", "");
	snprintf(mean, sizeof(mean), "%.4f", s->imbalance_mean);
	snprintf(p99, sizeof(p99), "%.4f", s->imbalance_p99);
	snprintf(most, sizeof(most), "%.4f", s->imbalance_max);
	add_measure(&table, "imbalance", mean, p99, most, "heaviest micro-batch / mean micro-batch, by work");
	snprintf(mean, sizeof(mean), "%.3f", s->delay_mean_steps);
	snprintf(most, sizeof(most), "%d", s->delay_max_steps);
	add_measure(&table, "delay", mean, "", most, "steps that a token waits");
	snprintf(mean, sizeof(mean), "%.0f", s->pack_us_per_step);
	add_measure(&table, "packing", mean, "", "", "microseconds a step");
	return wlb_table_print(&table, "  ", stdout);
}

static void print_curve(const struct wlb_pack_tally *tally)
{
	struct wlb_point *points = calloc((size_t)tally->steps, sizeof(*points));
	if (points == NULL)
		return;
	for (int64_t i = 0; i < tally->steps; i++)
		points[i] = (struct wlb_point){.step = i, .value = tally->imbalances[i]};
	puts("\nImbalance");
	wlb_plot(stdout, points, (int)tally->steps, NULL, 0, wlb_terminal_columns() - CURVE_MARGIN, CURVE_ROWS,
	         wlb_terminal_unicode());
	free(points);
}

int wlb_pack_print(const struct wlb_pack_summary *s, const struct wlb_pack_tally *tally)
{
	printf("%s: %" PRId64 " steps of %d micro-batches of %" PRId64 " tokens",
	       wlb_strategy_name(s->options.strategy), s->steps, s->options.micro_batches, s->options.seq_length);
	if (s->options.strategy == WLB_STRATEGY_BALANCED || s->options.strategy == WLB_STRATEGY_GREEDY)
		printf(", up to %g times that", s->options.max_length_ratio);
	puts("\n");
	if (print_measures(s) < 0)
		return -1;
	printf("\n  %" PRId64 " documents, %" PRId64 " tokens: %" PRId64 " packed, %" PRId64 " held", s->documents,
	       s->tokens_in, s->tokens_packed, s->tokens_held);
	if (s->cuts > 0)
		printf("; %" PRId64 " documents were cut", s->cuts);
	puts("");
	if (tally->steps > 1)
		print_curve(tally);
	return 0;
}

void wlb_pack_print_step(const struct wlb_step *step)
{
	struct wlb_bar bars[BARS_MAX];
	int shown = step->micro_batches < BARS_MAX ? step->micro_batches : BARS_MAX;
	double sum = 0.0;
	for (int32_t b = 0; b < step->micro_batches; b++)
		sum += step->loads[b].work;
	for (int b = 0; b < shown; b++) {
		const struct wlb_load *load = &step->loads[b];
		snprintf(bars[b].label, sizeof(bars[b].label), "%3d", b);
		snprintf(bars[b].note, sizeof(bars[b].note), "%.3f  %9" PRId64,
		         sum > 0.0 ? load->work * step->micro_batches / sum : 0.0, load->tokens);
		bars[b].value = load->work;
	}
	printf("\nMicro-batches of step %" PRId64 ": work (share of the mean), tokens\n", step->index);
	wlb_bars(stdout, bars, shown, wlb_terminal_columns(), wlb_terminal_unicode());
	if (shown < step->micro_batches)
		printf("  ... and %d more\n", step->micro_batches - shown);
}

void wlb_pack_dump_header(FILE *out)
{
	fputs("step micro_batch document_index start length\n", out);
}

void wlb_pack_dump_step(FILE *out, const struct wlb_step *step)
{
	for (size_t i = 0; i < step->count; i++) {
		const struct wlb_packed_span *span = &step->spans[i];
		fprintf(out, "%" PRId64 " %d %" PRId64 " %" PRId64 " %" PRId64 "\n", step->index, span->micro_batch,
		        span->span.document, span->span.start, span->span.tokens);
	}
}
