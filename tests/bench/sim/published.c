#include "tests/bench/sim/published.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/pack/corpus.h"

/* Or as many as are measured, where these are fewer: a quick test of the program needs no full queues. */
enum { WARM_UP_STEPS = 50 };

#define SHAPE(hidden, intermediate, layers, heads)                                                                     \
	{                                                                                                              \
		.hidden_size = (hidden), .intermediate_size = (intermediate), .num_hidden_layers = (layers),           \
		.num_attention_heads = (heads), .num_key_value_heads = (heads), .head_dim = 128, .vocab_size = 32000,  \
		.max_position_embeddings = 131072, .rope_theta = 10000.0, .rms_norm_eps = 1e-5                         \
	}

/* The paper says that 7B is Llama-2-7B and the others have its architecture, width and depth in proportion, not their
 * numbers: these keep head dimension, MLP ratio and attention of every head. */
#define M550 SHAPE(1536, 4128, 16, 12)
#define M7B SHAPE(4096, 11008, 32, 32)
#define M30B SHAPE(7168, 19264, 48, 56)
#define M70B SHAPE(8192, 22016, 80, 64)

const struct published published[PUBLISHED_COUNT] = {
	{"550M, 64K", M550, 65536, {2, 2, 4, 2}}, {"550M, 128K", M550, 131072, {2, 4, 4, 1}},
	{"7B, 64K", M7B, 65536, {4, 2, 4, 1}},    {"7B, 128K", M7B, 131072, {8, 2, 4, 1}},
	{"30B, 64K", M30B, 65536, {8, 2, 4, 1}},  {"30B, 128K", M30B, 131072, {8, 4, 4, 1}},
	{"70B, 64K", M70B, 65536, {16, 4, 4, 1}}, {"70B, 128K", M70B, 131072, {16, 4, 4, 1}},
};

const double published_mean = 1.23, published_mean_64k = 1.15, published_mean_128k = 1.30;

static void *must(void *made, const struct wlb_error *error)
{
	if (made != NULL)
		return made;
	fprintf(stderr, "sim: %s\n", error->message);
	exit(1);
}

static void add_time(struct wlb_sim_time *sum, const struct wlb_sim_time *time)
{
	double *to = (double *)sum;
	const double *from = (const double *)time;
	for (size_t i = 0; i < sizeof(*time) / sizeof(double); i++)
		to[i] += from[i];
}

static void divide_time(struct wlb_sim_time *time, double by)
{
	double *parts = (double *)time;
	for (size_t i = 0; i < sizeof(*time) / sizeof(double); i++)
		parts[i] /= by;
}

static struct wlb_sim *new_sim(const struct published *config, const struct wlb_machine *machine,
                               const struct settings *settings, const struct variant *variant)
{
	struct wlb_error error;
	/* A global batch is pp x dp windows, the pipeline interleaved (section 6 and 7.1). */
	struct wlb_plan plan = {.layout = config->layout,
	                        .interleave = settings->interleave,
	                        .micro_batches = config->layout.pp,
	                        .zero_stage = 1,
	                        .recompute = WLB_RECOMPUTE_SELECTIVE};
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	options.sharding = variant->sharding;
	options.attention = variant->attention;
	options.ring = settings->ring;
	options.cost.tp_overlap = (struct wlb_overlap){settings->tp_overlap, settings->tp_overlap};
	options.cost.cp_overlap = (struct wlb_overlap){settings->cp_overlap, settings->cp_overlap};
	options.timeline = 0;
	return must(wlb_sim_new(&config->model, machine, &options, &error), &error);
}

static struct wlb_packer *new_packer(const struct published *config, const struct settings *settings,
                                     const struct variant *variant, const struct wlb_sim *sim)
{
	struct wlb_error error;
	struct wlb_packer_options options;
	wlb_packer_options_init(&options, config->seq_length, config->layout.pp * config->layout.dp);
	options.strategy = variant->strategy;
	options.max_length_ratio = settings->ratio;
	if (!settings->flops) {
		options.work = wlb_sim_document_s;
		options.work_context = sim;
	}
	return must(wlb_packer_new(&config->model, &options, &error), &error);
}

struct outcome run_variant(const struct published *config, const struct wlb_machine *machine,
                           const struct settings *settings, const struct variant *variant)
{
	struct wlb_sim *sim = new_sim(config, machine, settings, variant);
	struct wlb_packer *packer = new_packer(config, settings, variant, sim);
	struct corpus corpus = {0};
	struct outcome outcome = {0};
	struct wlb_error error;
	double tokens = 0.0, work = 0.0, held_before = 0.0, held = 0.0;
	int64_t window = config->seq_length * config->layout.pp * config->layout.dp;
	wlb_lengths_init(&corpus.lengths, 1, settings->tail);
	int64_t warm_up_steps = settings->steps < WARM_UP_STEPS ? settings->steps : WARM_UP_STEPS;
	for (int64_t k = -warm_up_steps; k < settings->steps; k++) {
		size_t count = corpus_next(&corpus, config->seq_length, window);
		const struct wlb_step *step = wlb_packer_next(packer, corpus.batch, count, &error);
		if (step == NULL)
			must(NULL, &error);
		struct wlb_sim_result result;
		if (k >= 0 && wlb_sim_step(sim, step, &result, &error) < 0)
			must(NULL, &error);
		held = step->held_work;
		if (k < 0) {
			held_before = held;
			continue;
		}
		add_time(&outcome.time, &result.time);
		tokens += (double)corpus.batches.tokens;
		for (int32_t b = 0; b < step->micro_batches; b++)
			work += step->loads[b].work;
	}
	/* Of the documents that arrived, as in `wlb sim`: what is held back at the end is no gain. */
	divide_time(&outcome.time, tokens / (1.0 + (held - held_before) / work));
	outcome.token_s = outcome.time.step_s;
	corpus_free(&corpus);
	wlb_packer_free(packer);
	wlb_sim_free(sim);
	return outcome;
}
