/*
 * Predicts the step times of published tables: one line for each row, fields separated by tabs. Usage:
 * wlb-planner-bench TABLE.json ...
 *
 * Micro-batch sizes and interleaving that a source does not tell are the ones with the least predicted time that fit in
 * memory, as the search would choose them: by one rule for all rows.
 */
#include <stdio.h>
#include <stdlib.h>

#include "planner/machine.h"
#include "tests/bench/planner/table.h"

enum { MOST_WINDOWS = 4, MOST_INTERLEAVE = 32 };

static const double memory_margin = 0.1;

static void *must(void *made, const struct wlb_error *error)
{
	if (made != NULL)
		return made;
	fprintf(stderr, "planner: %s\n", error->message);
	exit(1);
}

struct prediction {
	struct wlb_plan plan;
	int32_t micro_batch;
	int release; /* of activations that are cheap to compute again */
	int fits;
	double published_s;
	struct wlb_sim_result result;
};

/* Micro-batches of one replica, each of `windows` documents of one window. */
static struct wlb_step make_step(const struct published_row *row, int32_t micro_batches, int32_t windows)
{
	struct wlb_error error = {"out of memory for a step"};
	size_t count = (size_t)micro_batches * (size_t)windows;
	struct wlb_packed_span *spans = must(calloc(count, sizeof(*spans)), &error);
	for (size_t i = 0; i < count; i++)
		spans[i] = (struct wlb_packed_span){.span = {.document = (int64_t)i, .tokens = row->seq_length},
		                                    .micro_batch = (int32_t)(i / (size_t)windows)};
	return (struct wlb_step){.spans = spans, .count = count, .micro_batches = micro_batches};
}

static void set_options(const struct published_row *row, int release, struct wlb_cost_options *options)
{
	wlb_cost_options_init(options);
	options->gradient_bytes = row->gradient_bytes;
	options->full_attention = row->full_attention;
	options->release_activations = release;
}

static struct wlb_sim_result simulate(const struct published_row *row, const struct wlb_machine *machine,
                                      const struct wlb_plan *plan, const struct prediction *p)
{
	struct wlb_sim_options options;
	struct wlb_sim_result result;
	struct wlb_error error;
	wlb_sim_options_init(&options, plan);
	options.timeline = 0;
	options.sharding = WLB_SHARDING_SEQUENCE;
	set_options(row, p->release, &options.cost);
	struct wlb_step step = make_step(row, plan->micro_batches, p->micro_batch);
	struct wlb_sim *sim = must(wlb_sim_new(&row->model, machine, &options, &error), &error);
	if (wlb_sim_step(sim, &step, &result, &error) < 0)
		must(NULL, &error);
	wlb_sim_free(sim);
	free((void *)step.spans);
	return result;
}

static int fits(const struct published_row *row, const struct wlb_machine *machine, const struct wlb_plan *plan,
                const struct prediction *p)
{
	struct wlb_cost_options options;
	set_options(row, p->release, &options);
	for (int32_t s = 0; s < plan->layout.pp; s++)
		if (wlb_memory_stage_of(plan, &row->model, machine, &options, s, p->micro_batch * row->seq_length,
		                        row->seq_length, memory_margin)
		            .total > machine->memory_bytes)
			return 0;
	return 1;
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

static void try(const struct published_row *row, const struct wlb_machine *machine, struct prediction this,
                int32_t interleave, struct prediction *best)
{
	int32_t windows = row->layout.dp * this.micro_batch;
	this.plan = (struct wlb_plan){.layout = row->layout,
	                              .interleave = interleave,
	                              .micro_batches = row->batch / windows,
	                              .zero_stage = row->zero_stage,
	                              .recompute = row->recompute,
	                              .recompute_layers = row->recompute_layers,
	                              .account_for_embedding = uneven(row),
	                              .account_for_loss = uneven(row)};
	if (row->batch % windows != 0 || !allowed(row, interleave) || wlb_plan_check(&this.plan, &row->model, NULL) < 0)
		return;
	this.fits = fits(row, machine, &this.plan, &this);
	if (this.fits < best->fits)
		return;
	this.result = simulate(row, machine, &this.plan, &this);
	if (best->micro_batch == 0 || this.fits > best->fits || this.result.time.step_s < best->result.time.step_s)
		*best = this;
}

/* Tries all that the source does not tell. A source that tells it ran it, whether it fits or not. */
static struct prediction predict(const struct published_row *row, const struct wlb_machine *machine)
{
	struct prediction best = {0};
	int32_t first = row->micro_batch > 0 ? row->micro_batch : 1;
	int32_t last = row->micro_batch > 0 ? row->micro_batch : MOST_WINDOWS;
	int32_t most = row->interleave > 0 ? row->interleave : MOST_INTERLEAVE;
	for (int release = 0; release <= row->release; release++)
		for (int32_t windows = first; windows <= last; windows *= 2)
			for (int32_t v = row->interleave > 0 ? row->interleave : 1; v <= most; v++)
				try(row, machine, (struct prediction){.micro_batch = windows, .release = release}, v,
				    &best);
	double gpus = wlb_layout_ranks(&row->layout), tokens = (double)row->batch * (double)row->seq_length;
	best.published_s = row->tflops_per_gpu > 0.0 ? best.result.flops / (row->tflops_per_gpu * 1e12 * gpus)
	                                             : tokens / (row->tokens_per_s_per_gpu * gpus);
	return best;
}

static void print(const struct published_row *row, const struct prediction *p)
{
	const struct wlb_sim_time *t = &p->result.time;
	char layout[64];
	wlb_layout_format(&row->layout, layout, sizeof(layout));
	printf("%s\t%s\t%lld\t%d\t%d\t%d\t%.6g\t%.6g\t%.4f", row->name, layout, (long long)row->seq_length,
	       p->micro_batch, p->plan.interleave, p->fits, p->published_s, t->step_s, p->result.utilization);
	const double parts[] = {t->compute_s,   t->recompute_s, t->tp_s,
	                        t->cp_s,        t->pp_s,        t->dp_s,
	                        t->optimizer_s, t->bubble_s,    t->cp_imbalance_s + t->imbalance_s};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		printf("\t%.4f", parts[i] / t->step_s);
	putchar('\n');
}

int main(int argc, char **argv)
{
	setenv("WLB_MACHINES", WLB_SOURCE_DIR "/libwlb/machines", 0);
	for (int i = 1; i < argc; i++) {
		struct published_table table = published_table_read(argv[i]);
		struct wlb_machine machine;
		struct wlb_error error;
		if (wlb_machine_file_read(table.machine, &machine, &error) < 0)
			must(NULL, &error);
		published_table_adapt(&table, &machine);
		printf("# %s\n", argv[i]);
		for (size_t r = 0; r < table.count; r++) {
			struct prediction prediction = predict(&table.rows[r], &machine);
			if (prediction.micro_batch == 0)
				fprintf(stderr, "planner: %s, %s: no plan fits\n", table.title, table.rows[r].name);
			else
				print(&table.rows[r], &prediction);
		}
		published_table_free(&table);
	}
	return 0;
}
