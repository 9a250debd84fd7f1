/* The ranks of any layout can read the weights and moments that the ranks of any other have written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/train/checkpoint_tensors.h"

struct layout_case {
	int tp;
	int pp;
	int dp;
	int interleave;
};

/* The vocabulary and the intermediate size divide by none; there are fewer KV heads than ranks; a bucket's padding
 * depends on dp. */
static const struct layout_case layouts[] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {4, 1, 3, 1}, {1, 3, 1, 1},
                                             {2, 2, 1, 2}, {8, 2, 2, 1}, {1, 2, 5, 3}};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static const struct wlb_checkpoint_facts facts = {
	.step = 1,
	.model = {.hidden_size = 10,
                  .intermediate_size = 13,
                  .num_hidden_layers = 6,
                  .num_attention_heads = 8,
                  .num_key_value_heads = 2,
                  .head_dim = 2,
                  .vocab_size = 23,
                  .max_position_embeddings = 8,
                  .rope_theta = 1e4,
                  .rms_norm_eps = 1e-5},
	.seq_length = 8,
	.global_batch_size = 1,
	.train_loss = 1.0,
};

static struct wlb_device *device;

static void check(int rc, const struct wlb_error *error)
{
	if (rc < 0)
		fail_msg("%s", error->message);
}

/* The parameters of a layout's rank, nothing in them. */
static struct wlb_parameters *open_rank(const struct layout_case *c, int tied, int tp, int pp)
{
	struct wlb_error error = {0};
	struct wlb_model model = facts.model;
	struct wlb_plan plan = {.layout = {.tp = c->tp, .cp = 1, .pp = c->pp, .dp = c->dp},
	                        .interleave = c->interleave,
	                        .micro_batches = 6};
	struct wlb_coordinates coords = {.tp = tp, .pp = pp};
	model.tie_word_embeddings = tied;
	struct wlb_parameters *p = wlb_parameters_new(&model, &plan, &coords, device, &error);
	check(p != NULL ? 0 : -1, &error);
	return p;
}

/* What each state is to be: the initial weights of another seed. */
static void fill(struct wlb_parameters *p, enum wlb_state state)
{
	struct wlb_error error = {0};
	check(wlb_parameters_init(p, 1 + state, 0.5, NULL, NULL, &error), &error);
}

static void copy_state(const struct wlb_parts *parts, enum wlb_state state)
{
	fill((struct wlb_parameters *)parts->parameters, state);
	for (int i = 0; i < parts->count; i++) {
		const struct wlb_tensor_part *part = &parts->list[i];
		if (parts->sources[i].state == state)
			memcpy(part->data_host,
			       (const double *)parts->parameters->weights + parts->sources[i].tensor->offset +
			               part->range.begin,
			       (size_t)(part->range.end - part->range.begin) * sizeof(double));
	}
}

static void write_member(const char *dir, struct wlb_parameters *p, int member, int shard)
{
	struct wlb_error error = {0};
	struct wlb_parts parts;
	struct wlb_safetensors_output *output;
	const struct wlb_save_place place = {dir, "test", 1, 0};
	check(wlb_parts_open(&parts, p, member, WLB_STATE_MASTERS, WLB_STATES, 1, &error), &error);
	for (enum wlb_state state = 0; state < WLB_STATES; state++)
		copy_state(&parts, state);
	check(wlb_checkpoint_create_shard(&place, 1, shard, parts.list, parts.count, &output, &error), &error);
	check(wlb_safetensors_append(output, parts.list, parts.count, &error), &error);
	check(wlb_safetensors_finish(output, &error), &error);
	wlb_parts_close(&parts);
}

static void write_rank(const char *dir, const struct layout_case *c, int tied, int tp, int pp)
{
	struct wlb_parameters *p = open_rank(c, tied, tp, pp);
	for (int member = 0; member < c->dp; member++)
		write_member(dir, p, member, (pp * c->tp + tp) * c->dp + member);
	wlb_parameters_free(p);
}

static void write_layout(const char *dir, const struct layout_case *c, int tied, char path[4096])
{
	struct wlb_error error = {0};
	int64_t bytes;
	const struct wlb_save_place place = {dir, "test", 1, 0};
	check(wlb_checkpoint_begin(&place, 1, &error), &error);
	for (int pp = 0; pp < c->pp; pp++)
		for (int tp = 0; tp < c->tp; tp++)
			write_rank(dir, c, tied, tp, pp);
	check(whole_shard_save_indexes(&place, 1, c->tp * c->pp * c->dp, &error), &error);
	check(wlb_checkpoint_commit(&place, &facts, c->tp * c->pp * c->dp, 0, path, &bytes, &error), &error);
}

/* Sets the weights to what a member of the data group reads of a state. */
static void read_member(struct wlb_checkpoint_reader *reader, struct wlb_parameters *p, int member,
                        enum wlb_state state)
{
	struct wlb_error error = {0};
	struct wlb_parts parts;
	check(wlb_parts_open(&parts, p, member, state, state + 1, 0, &error), &error);
	check(wlb_checkpoint_read_parts(reader, parts.list, parts.count, &error), &error);
	for (int i = 0; i < parts.count; i++)
		check(wlb_weight_set_range(p, (int)(parts.sources[i].tensor - p->tensors), parts.list[i].range,
		                           parts.list[i].data_host, &error),
		      &error);
	wlb_parts_close(&parts);
}

static void expect_part(const struct wlb_parameters *p, const struct wlb_parameters *expected, int member)
{
	for (int b = 0; b < p->bucket_count; b++) {
		size_t elements = p->buckets[b].elements / (size_t)p->shards;
		size_t first = p->buckets[b].offset + (size_t)member * elements;
		assert_memory_equal((double *)p->weights + first, (double *)expected->weights + first,
		                    elements * sizeof(double));
	}
}

/* Each member has its part of every bucket bit by bit, the padding too. */
static void read_rank(struct wlb_checkpoint_reader *reader, const struct layout_case *c, int tied, int tp, int pp)
{
	struct wlb_parameters *expected = open_rank(c, tied, tp, pp);
	for (enum wlb_state state = 0; state < WLB_STATES; state++) {
		fill(expected, state);
		for (int member = 0; member < c->dp; member++) {
			struct wlb_parameters *p = open_rank(c, tied, tp, pp);
			read_member(reader, p, member, state);
			expect_part(p, expected, member);
			wlb_parameters_free(p);
		}
	}
	wlb_parameters_free(expected);
}

/* All ranks have read each element of each file once, without copies, and the sums say that none is damaged. */
static void check_sums(const struct wlb_checkpoint_reader *reader)
{
	static double sums[3 * 64];
	size_t count = wlb_checkpoint_sum_count(reader);
	assert_in_range(count, 3, 3 * 64);
	double *first = &sums[count - 3];
	wlb_checkpoint_sums(reader, sums);
	assert_int_equal(wlb_checkpoint_find_damaged(reader, sums), -1);
	first[0] = first[0] > 0 ? first[0] - 1 : 1;
	assert_int_equal(wlb_checkpoint_find_damaged(reader, sums), count / 3 - 1);
}

static void any_layout_reads_any_other(void **state)
{
	struct wlb_error error = {0};
	for (int i = 0; i < 2 * LAYOUTS * LAYOUTS; i++) {
		const struct layout_case *writer = &layouts[i / LAYOUTS % LAYOUTS], *reader = &layouts[i % LAYOUTS];
		int tied = i / (LAYOUTS * LAYOUTS);
		static char path[4096];
		if (i % LAYOUTS == 0)
			write_layout(*state, writer, tied, path);
		struct wlb_checkpoint_reader *opened = wlb_checkpoint_open(path, &error);
		check(opened != NULL ? 0 : -1, &error);
		for (int rank = 0; rank < reader->tp * reader->pp; rank++)
			read_rank(opened, reader, tied, rank % reader->tp, rank / reader->tp);
		check_sums(opened);
		wlb_checkpoint_close(opened);
	}
}

int main(void)
{
	struct wlb_error error = {0};
	device = wlb_device_open_cpu(WLB_FLOAT64, 1, &error);
	if (device == NULL)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(any_layout_reads_any_other, fixture_setup, fixture_teardown),
	};
	int failed = cmocka_run_group_tests_name("parts", tests, NULL, NULL);
	wlb_device_close(device);
	return failed;
}
