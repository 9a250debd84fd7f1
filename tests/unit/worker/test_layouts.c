/* Tensor and context parallelism against one rank that has the whole model and all tokens: the loss and every gradient,
 * whatever the documents, how they are shared out, and what is computed again. Runs on MOST_RANKS ranks under mpirun.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/tiny.h"
#include "worker/launch/launch.h"

enum { MOST_RANKS = 4 };

static const double scale = 0.1;

static const struct tiny_document one_token[1] = {{1, {7, 2}}};
static const struct tiny_document tokens_apart[3] = {{1, {7, 2}}, {1, {0, 10}}, {1, {4, 4}}};
static const struct tiny_document long_and_short[3] = {
	{2, {9, 9, 1}},
	{21, {5, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6}},
	{3, {10, 6, 0, 3}},
};

enum { MOST_TOKENS = 26 };

/* 13, 1, 3 and MOST_TOKENS tokens: with padding for most numbers of ranks, without tokens for some ranks. */
static const struct {
	const struct tiny_document *documents;
	int count;
} micro_batches[] = {{tiny_documents, 3}, {one_token, 1}, {tokens_apart, 3}, {long_and_short, 3}};

enum { MICRO_BATCHES = sizeof(micro_batches) / sizeof(micro_batches[0]) };

struct world {
	struct wlb_device *device;
	struct wlb_comm *all;
	int rank;
};

/* All ranks fail or none, so that none waits for another. */
static void assert_on_all(struct world *w, double off, double most, const char *what)
{
	struct wlb_error error = {0};
	assert_int_equal(wlb_comm_all_reduce_double(w->all, &off, 1, WLB_MAX, &error), 0);
	if (!(off <= most))
		fail_msg("%s: off by %g, %g is allowed", what, off, most);
}

/* What the optimizer does with gradients before it uses them. */
static void sum_gradients(struct tiny *tiny)
{
	const struct wlb_parameters *p = tiny->parameters;
	struct wlb_groups *g = tiny->groups;
	struct wlb_error error = {0};
	for (int i = 0; i < p->bucket_count; i++) {
		const struct wlb_bucket *b = &p->buckets[i];
		double *at = (double *)p->gradients + b->offset;
		assert_int_equal(wlb_comm_all_reduce(g->data, at, b->elements, WLB_FLOAT64, WLB_SUM, &error), 0);
		int of_kv = b->kind == WLB_BUCKET_KV || b->kind == WLB_BUCKET_KV_VECTORS;
		struct wlb_comm *beyond = b->kind == WLB_BUCKET_NORMS ? g->tp : of_kv ? g->kv : NULL;
		if (beyond != NULL)
			assert_int_equal(wlb_comm_all_reduce(beyond, at, b->elements, WLB_FLOAT64, WLB_SUM, &error), 0);
	}
}

/* The farthest that this rank's blocks are from those of the whole. */
static double gradients_off(const struct wlb_parameters *part, const struct wlb_parameters *whole)
{
	double most = 0.0;
	for (int i = 0; i < part->count; i++) {
		const struct wlb_tensor *t = &part->tensors[i];
		const double *gradient = wlb_gradient(part, i);
		const double *expected = wlb_gradient(whole, tiny_tensor(whole, t->name));
		for (int64_t r = 0; r < t->block.rows; r++)
			for (int64_t c = 0; c < t->block.cols; c++) {
				int64_t global =
					(t->block.row_start + r) * t->block.global_cols + t->block.col_start + c;
				most = fmax(most, tiny_difference(gradient[r * t->block.cols + c], expected[global]));
			}
	}
	return most;
}

/* A pass of every layout and way of recomputation over one micro-batch. */
struct trial {
	int micro_batch;
	enum wlb_sharding sharding;
	int halved_rows;
	double off;        /* the worst of loss and gradients, against one rank that has everything */
	double *gradients; /* this rank's own, before any sum */
	size_t bytes;
};

static void run_trial(struct trial *trial, struct tiny *part, struct tiny *whole, struct wlb_comm *world)
{
	const struct tiny_document *documents = micro_batches[trial->micro_batch].documents;
	int count = micro_batches[trial->micro_batch].count;
	const struct wlb_groups *g = part->groups;
	struct wlb_error error = {0};
	struct tiny_batch b = tiny_batch_new(part->device, documents, count, trial->sharding, g->layout.tp,
	                                     g->layout.cp, g->coords.cp);
	tiny_batch_halve(&b, g->layout.tp, trial->halved_rows);
	trial->bytes = part->parameters->elements * sizeof(double);
	tiny_poison(part);
	memset(part->parameters->gradients, 0, trial->bytes);
	memset(whole->parameters->gradients, 0, whole->parameters->elements * sizeof(double));
	double loss = tiny_pass(part, &b.batch, scale), expected = tiny_pass_documents(whole, documents, count, scale);
	trial->gradients = malloc(trial->bytes);
	assert_non_null(trial->gradients);
	memcpy(trial->gradients, part->parameters->gradients, trial->bytes);
	assert_int_equal(wlb_comm_all_reduce_double(world, &loss, 1, WLB_SUM, &error), 0);
	sum_gradients(part);
	trial->off = fmax(tiny_difference(loss, expected), gradients_off(part->parameters, whole->parameters));
	tiny_batch_free(&b);
}

enum { MOST_TRIALS = 2 * MICRO_BATCHES };

/* Every micro-batch, shared out in both ways where it is shared; how many trials that makes. */
static int run_trials(struct trial *trials, const struct tiny_setup *setup)
{
	struct tiny part = tiny_open(setup);
	struct tiny whole = tiny_open(
		&(struct tiny_setup){.tied = setup->tied, .family = setup->family, .max_tokens = MOST_TOKENS});
	int last = setup->cp > 1 ? WLB_SHARDING_DOCUMENT : WLB_SHARDING_SEQUENCE, count = 0;
	for (int sharding = WLB_SHARDING_SEQUENCE; sharding <= last; sharding++)
		for (int m = 0; m < MICRO_BATCHES; m++) {
			trials[count] = (struct trial){
				.micro_batch = m, .sharding = sharding, .halved_rows = setup->halved_rows};
			run_trial(&trials[count++], &part, &whole, setup->world);
		}
	tiny_close(&part);
	tiny_close(&whole);
	return count;
}

/* Recomputation gives the same bits. Infinity where it does not, 0 otherwise. */
static double bits_off(const struct tiny_setup *setup, const struct trial *kept, enum wlb_recompute recompute,
                       int layers)
{
	struct tiny_setup again = *setup;
	struct trial trials[MOST_TRIALS];
	double off = 0.0;
	again.recompute = recompute;
	again.recompute_layers = layers;
	int count = run_trials(trials, &again);
	for (int i = 0; i < count; i++) {
		if (memcmp(trials[i].gradients, kept[i].gradients, kept[i].bytes) != 0)
			off = INFINITY;
		free(trials[i].gradients);
	}
	return off;
}

/* Compares one layout on its ranks; the other ranks do nothing. */
static void try_layout(const struct tiny_setup *setup, double *off, double *off_again)
{
	struct trial trials[MOST_TRIALS];
	int count = run_trials(trials, setup);
	for (int i = 0; i < count; i++)
		*off = fmax(*off, trials[i].off);
	*off_again = fmax(bits_off(setup, trials, WLB_RECOMPUTE_SELECTIVE, 0),
	                  bits_off(setup, trials, WLB_RECOMPUTE_FULL, 0));
	*off_again = fmax(*off_again, bits_off(setup, trials, WLB_RECOMPUTE_FULL, 1));
	for (int i = 0; i < count; i++)
		free(trials[i].gradients);
}

/* Those whose layers differ. */
static const struct {
	int tied;
	enum wlb_family family;
} models[] = {
	{0, WLB_FAMILY_LLAMA}, {1, WLB_FAMILY_LLAMA},  {0, WLB_FAMILY_QWEN2},  {1, WLB_FAMILY_QWEN3},
	{0, WLB_FAMILY_OLMO2}, {1, WLB_FAMILY_GEMMA2}, {1, WLB_FAMILY_GEMMA3},
};

static void check_layout(struct world *w, int tp, int cp, int halved_rows)
{
	struct wlb_error error = {0};
	double off = 0.0, off_again = 0.0;
	int takes_part = w->rank < tp * cp;
	struct wlb_comm *world = wlb_comm_split(w->all, takes_part, w->rank, "some", &error);
	assert_non_null(world);
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]) && takes_part; i++)
		try_layout(&(struct tiny_setup){.world = world,
		                                .tied = models[i].tied,
		                                .family = models[i].family,
		                                .tp = tp,
		                                .cp = cp,
		                                .halved_rows = halved_rows,
		                                .max_tokens = MOST_TOKENS},
		           &off, &off_again);
	wlb_comm_close(world);
	assert_on_all(w, off, 1e-12, "against one rank");
	assert_on_all(w, off_again, 0.0, "computed again");
}

static void tensor_parallel(void **state)
{
	check_layout(*state, 2, 1, 0);
}

/* Two ranks hold the same key head. */
static void tensor_parallel_beyond_the_key_heads(void **state)
{
	check_layout(*state, 4, 1, 0);
}

static void context_parallel(void **state)
{
	for (int cp = 2; cp <= 4; cp++)
		check_layout(*state, 1, cp, 0);
}

static void tensor_and_context_parallel(void **state)
{
	check_layout(*state, 2, 2, 0);
}

/* Halves that differ, and that some micro-batches are too short for. */
static void rows_in_halves(void **state)
{
	check_layout(*state, 2, 1, 4);
	check_layout(*state, 4, 1, 1);
	check_layout(*state, 2, 2, 1);
}

int main(void)
{
	struct wlb_error error = {0};
	int code = 0;
	struct wlb_launch *launch = wlb_launch_open(&code, &error);
	struct world w = {.rank = launch != NULL ? launch->rank : -1};
	if (launch != NULL && launch->size != MOST_RANKS)
		wlb_fail(&error, "%d ranks: this needs %d", launch->size, MOST_RANKS);
	else if (launch != NULL)
		w.device = wlb_device_open_cpu(WLB_FLOAT64, 1, &error);
	w.all = w.device != NULL ? wlb_comm_open_world(w.device, w.rank, MOST_RANKS, &error) : NULL;
	if (w.all == NULL) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(tensor_parallel, &w),
		cmocka_unit_test_prestate(tensor_parallel_beyond_the_key_heads, &w),
		cmocka_unit_test_prestate(context_parallel, &w),
		cmocka_unit_test_prestate(tensor_and_context_parallel, &w),
		cmocka_unit_test_prestate(rows_in_halves, &w),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wlb_launch_close(launch); /* before MPI, see launch.h */
	wlb_comm_close(w.all);
	wlb_device_close(w.device);
	return failed;
}
