/*
 * Predicts the step times of the published table: one line for each row, fields separated by tabs: the source, the row,
 * why the planner cannot express it ("-" where it can), and what was predicted. With --search instead: the step time of
 * the plan that was published, by the search, and that of the fastest that it finds; fails where the first is less. A
 * row that tells only whether it ran fails where the memory model says otherwise.
 * With
 * --near: how far predictions near it were off, of other sources than its own. Usage:
 * wlb-planner-bench [--search|--near] TABLE.json [BEGIN], the rows alone whose source and name, "Megatron Core r0.8,
 * 16B", begin so
 *
 * What a source does not tell of micro-batch, interleaving, recomputation and ep is what has the least predicted time
 * and fits in memory, as the search would choose it: by one rule for all rows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/published.h"
#include "tests/bench/planner/options.h"
#include "tests/bench/planner/search.h"

enum { MOST_WINDOWS = 4, MOST_INTERLEAVE = 32 };

static const double gib = 1024.0 * 1024.0 * 1024.0;

struct prediction {
	struct wlb_plan plan;
	int32_t micro_batch_windows;
	struct wlb_machine machine; /* with the rates of the trainer */
	struct wlb_cost_options cost;
	struct wlb_memory memory; /* of the stage that needs the most */
	int fits;
	double published_s;
	struct wlb_sim_result result;
};

/* Micro-batches of one replica, each of `windows` documents of one window. */
static struct wlb_step make_step(const struct published_row *row, int32_t micro_batches, int32_t windows)
{
	struct wlb_error error = {"out of memory for a step"};
	size_t count = (size_t)micro_batches * (size_t)windows;
	struct wlb_packed_span *spans = bench_must(calloc(count, sizeof(*spans)), &error);
	for (size_t i = 0; i < count; i++)
		spans[i] = (struct wlb_packed_span){.span = {.document = (int64_t)i, .tokens = row->window_tokens},
		                                    .micro_batch = (int32_t)(i / (size_t)windows)};
	return (struct wlb_step){.spans = spans, .count = count, .micro_batches = micro_batches};
}

static struct wlb_sim_result simulate(const struct published_row *row, const struct prediction *p)
{
	const struct wlb_plan *plan = &p->plan;
	struct wlb_sim_options options;
	struct wlb_sim_result result;
	struct wlb_error error;
	wlb_sim_options_init(&options, plan);
	options.timeline = 0;
	options.sharding = WLB_SHARDING_SEQUENCE;
	options.cost = p->cost;
	struct wlb_step step = make_step(row, plan->micro_batches, p->micro_batch_windows);
	struct wlb_sim *sim = bench_must(wlb_sim_new(&row->model, &p->machine, &options, &error), &error);
	if (wlb_sim_step(sim, &step, &result, &error) < 0)
		bench_must(NULL, &error);
	wlb_sim_free(sim);
	free((void *)step.spans);
	return result;
}

/* Makes of one of a step's like pipelines, one after another, the whole step, which has one update. */
static void repeat(struct wlb_sim_result *result, int32_t pipelines)
{
	double *seconds = (double *)&result->time, optimizer_s = result->time.optimizer_s; /* all members are doubles */
	for (size_t i = 0; i < sizeof(result->time) / sizeof(*seconds); i++)
		seconds[i] *= pipelines;
	result->time.step_s -= (pipelines - 1) * optimizer_s;
	result->time.optimizer_s = optimizer_s;
	result->flops *= pipelines;
}

static struct wlb_memory most_memory(const struct published_row *row, const struct prediction *p)
{
	struct wlb_memory most = {0};
	for (int32_t s = 0; s < p->plan.layout.pp; s++) {
		struct wlb_memory memory =
			wlb_memory_stage_of(&p->plan, &row->model, &p->machine, &p->cost, s,
		                            p->micro_batch_windows * row->window_tokens, row->window_tokens);
		if (memory.reserved > most.reserved)
			most = memory;
	}
	return most;
}

/* Stages that do not divide the layers: embedding and head then count as layers. */
static int uneven(const struct published_row *row)
{
	return row->model.num_hidden_layers % row->layout.pp != 0;
}

/* Chunks divide the layers of a stage where the stages divide the layers, as Megatron-LM requires. */
static int allowed(const struct published_row *row, int32_t interleave)
{
	return uneven(row) || row->model.num_hidden_layers / row->layout.pp % interleave == 0;
}

static void try(const struct published_row *row, struct prediction this, struct prediction *best,
                struct wlb_error *error)
{
	int32_t windows = row->layout.dp * row->pipelines * this.micro_batch_windows;
	this.plan.layout = row->layout;
	this.plan.micro_batches = row->batch_windows / windows;
	this.plan.zero_stage = row->layout.pp > 1 && row->zero_stage > 1 ? 1 : row->zero_stage; /* as in the search */
	this.plan.account_for_embedding = this.plan.account_for_loss = uneven(row);
	if (this.plan.recompute == WLB_RECOMPUTE_FULL)
		this.plan.recompute_layers = row->recompute_layers;
	if (row->batch_windows % windows != 0 || !allowed(row, this.plan.interleave) ||
	    wlb_plan_check(&this.plan, &row->model, error) < 0)
		return;
	this.memory = most_memory(row, &this);
	this.fits = this.memory.reserved <= this.machine.memory_bytes;
	if (this.fits < best->fits)
		return;
	this.result = simulate(row, &this);
	repeat(&this.result, row->pipelines);
	if (best->micro_batch_windows == 0 || this.fits > best->fits ||
	    this.result.time.step_s < best->result.time.step_s)
		*best = this;
}

/* FLOPs that the source has counted. */
static double counted_flops(const struct published_row *row, double flops)
{
	double tokens = (double)row->batch_windows * (double)row->window_tokens;
	double head = 6.0 * tokens * (double)row->model.hidden_size * (double)row->model.vocab_size;
	return row->rate.flops == PUBLISHED_RECOMPUTED ? flops + (flops - head) / 3.0 : flops;
}

static double published_s(const struct published_row *row, double flops)
{
	const struct published_rate *rate = &row->rate;
	double gpus = wlb_layout_ranks(&row->layout);
	double tokens = (double)row->batch_windows * (double)row->window_tokens;
	if (rate->step_s > 0.0)
		return rate->step_s;
	if (rate->tokens_per_s > 0.0)
		return tokens / rate->tokens_per_s;
	if (rate->tokens_per_s_per_gpu > 0.0)
		return tokens / (rate->tokens_per_s_per_gpu * gpus);
	if (rate->tflops_per_gpu > 0.0)
		return counted_flops(row, flops) / (rate->tflops_per_gpu * 1e12 * gpus);
	return 0.0; /* only whether it ran was published */
}

/* Tries all interleavings of a micro-batch that the source does not tell. */
static void try_interleavings(const struct published_row *row, struct prediction this, struct prediction *best,
                              struct wlb_error *error)
{
	int32_t most = row->interleave > 0 ? row->interleave : MOST_INTERLEAVE;
	for (int32_t v = row->interleave > 0 ? row->interleave : 1; v <= most; v++) {
		this.plan.interleave = v;
		try(row, this, best, error);
	}
}

/* The same with each division of the experts. */
static void try_windows(const struct published_row *row, struct prediction this, struct prediction *best,
                        struct wlb_error *error)
{
	int64_t most = row->ep > 0 ? row->ep : row->model.num_experts > 0 ? row->model.num_experts : 1;
	for (this.plan.ep = row->ep > 0 ? row->ep : 1; this.plan.ep <= most; this.plan.ep++)
		try_interleavings(row, this, best, error);
}

/* Tries all that the source does not tell. A source that tells it ran it, whether it fits or not. Returns a prediction
 * with 0 windows, and a message, where no plan is allowed. */
static struct prediction predict(const struct published_row *row, const struct wlb_machine *machine,
                                 struct wlb_error *error)
{
	struct prediction best = {0}, this = {.machine = *machine};
	int32_t first = row->micro_batch_windows > 0 ? row->micro_batch_windows : 1;
	int32_t last = row->micro_batch_windows > 0 ? row->micro_batch_windows : MOST_WINDOWS;
	int recompute = row->recompute >= 0 ? row->recompute : WLB_RECOMPUTE_NONE;
	int most = row->recompute >= 0 ? row->recompute : WLB_RECOMPUTE_FULL;
	*error = (struct wlb_error){"no micro-batch divides the batch"};
	bench_options(row, &this.machine, &this.cost);
	for (; recompute <= most; recompute++)
		for (int release = 0; release <= row->release; release++)
			for (int32_t windows = first; windows <= last; windows *= 2) {
				this.cost.release_activations = release;
				/* What is released is computed again, although the source says that nothing is. */
				this.plan.recompute = release && recompute == WLB_RECOMPUTE_NONE
				                              ? WLB_RECOMPUTE_SELECTIVE
				                              : recompute;
				this.micro_batch_windows = windows;
				try_windows(row, this, &best, error);
			}
	best.published_s = published_s(row, best.result.flops);
	return best;
}

static void print(const struct published_row *row, const struct prediction *p)
{
	const struct wlb_sim_time *t = &p->result.time;
	char layout[64], recompute[WLB_RECOMPUTE_TEXT_BYTES];
	wlb_recompute_set_format(p->plan.recompute, recompute, sizeof(recompute));
	wlb_layout_format(&row->layout, layout, sizeof(layout));
	printf("\t-\t%s\t%d\t%d\t%s\t%d\t%.3f\t%.3f\t%.3f\t%.6g\t%.6g", layout, p->micro_batch_windows,
	       p->plan.interleave, recompute, p->fits, p->memory.allocated / gib, p->memory.reserved / gib,
	       p->machine.memory_bytes / gib, p->published_s, t->step_s);
	const double parts[] = {
		t->compute_s, t->recompute_s, t->tp_s,        t->cp_s,     t->ep_s,
		t->pp_s,      t->dp_s,        t->optimizer_s, t->bubble_s, t->cp_imbalance_s + t->imbalance_s};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		printf("\t%.4f", parts[i] / t->step_s);
	putchar('\n');
}

/* Prints both times of the search. Returns 1 where it misses a published plan that is faster by its own prediction. */
static int print_search(const struct published_row *row, const struct wlb_machine *machine)
{
	static const double rounding = 1e-9;
	double told_s, found_s;
	bench_search(row, machine, &told_s, &found_s);
	if (told_s == 0.0)
		puts("\tnot admissible");
	else
		printf("\t%.6g\t%.6g\n", told_s, found_s);
	return told_s * (1.0 + rounding) < found_s;
}

/* Prints how far predictions near the row's were off, of other sources than its own: kind, steps, and between
 * which times the prediction 9 of 10 of them were. */
static void print_near(const struct published_row *row, const struct wlb_published *published, int32_t source)
{
	static const char *const kinds[] = {"unknown", "calibrated", "predicted"};
	const struct wlb_published_question question = {
		.machine = row->machine,
		.trainer = row->trainer,
		.window_tokens = (double)row->window_tokens,
		.gpus = wlb_layout_ranks(&row->layout),
		.list = wlb_published_list_of(&row->model, bench_fp8(row)),
		.without = source,
	};
	struct wlb_published_near near = wlb_published_near(published, &question);
	printf("\t%s\t%d\t%.4f\t%.4f\n", kinds[near.kind], near.steps, near.lower, near.upper);
}

/* What is printed of each row. */
struct printing {
	enum { PREDICTIONS, SEARCHES, NEAR } what;
	struct wlb_published published; /* for NEAR */
	int missed;                     /* plans that the search misses */
	int wrong;                      /* rows that ran and do not fit, or fit and did not run */
};

static void print_row(const struct published_source *source, const struct published_row *row, int32_t number,
                      struct printing *printing)
{
	char text[512];
	struct wlb_machine machine;
	struct wlb_error error;
	struct prediction prediction = {0};
	const char *why = bench_inexpressible(row, &machine, text, sizeof(text));
	printf("%s\t%s", source->title, row->name);
	if (why == NULL && printing->what == SEARCHES) {
		printing->missed += print_search(row, &machine);
		return;
	}
	if (why == NULL && printing->what == NEAR) {
		print_near(row, &printing->published, number);
		return;
	}
	if (why == NULL) {
		prediction = predict(row, &machine, &error);
		why = prediction.micro_batch_windows == 0 ? error.message : NULL;
	}
	if (why != NULL) {
		printf("\t%s\n", why);
		return;
	}
	print(row, &prediction);
	printing->wrong += row->ran >= 0 && row->ran != prediction.fits;
}

static int begins(const struct published_source *source, const struct published_row *row, const char *begin)
{
	char text[256];
	snprintf(text, sizeof(text), "%s, %s", source->title, row->name);
	return strncmp(text, begin, strlen(begin)) == 0;
}

int main(int argc, char **argv)
{
	int found = 0;
	struct printing printing = {PREDICTIONS};
	struct wlb_error error;
	if (argc > 1 && argv[1][0] == '-') {
		printing.what = strcmp(argv[1], "--near") == 0 ? NEAR : SEARCHES;
		argc--;
		argv++;
	}
	if (argc != 2 && argc != 3) {
		fputs("usage: wlb-planner-bench [--search|--near] TABLE.json [BEGIN]\n", stderr);
		return 2;
	}
	setenv("WLB_MACHINES", WLB_SOURCE_DIR "/libwlb/machines", 0);
	setenv("WLB_TRAINERS", WLB_SOURCE_DIR "/libwlb/trainers", 0);
	setenv("WLB_PUBLISHED", WLB_SOURCE_DIR "/libwlb/published", 0);
	if (printing.what == NEAR && wlb_published_read(&printing.published, &error) < 0)
		bench_must(NULL, &error);
	struct published_table table = published_table_read(argv[1]);
	for (size_t i = 0; i < table.count; i++) {
		const struct published_source *source = &table.sources[i];
		for (size_t r = 0; r < source->count; r++) {
			if (argc == 3 && !begins(source, &source->rows[r], argv[2]))
				continue;
			found = 1;
			print_row(source, &source->rows[r], (int32_t)i, &printing);
		}
	}
	published_table_free(&table);
	wlb_published_free(&printing.published);
	if (!found)
		fprintf(stderr, "planner: no row begins with %s\n", argv[2]);
	if (printing.missed > 0)
		fprintf(stderr, "planner: the search misses %d published plans that are faster\n", printing.missed);
	if (printing.wrong > 0)
		fprintf(stderr, "planner: %d rows ran and do not fit, or fit and did not run\n", printing.wrong);
	return !found || printing.missed > 0 || printing.wrong > 0;
}
