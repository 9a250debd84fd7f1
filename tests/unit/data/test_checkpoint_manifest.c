/* The facts that a checkpoint stores, and the refusal of a damaged one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/sample_checkpoint.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/data/input.h"

static void test_facts(void **state)
{
	struct sample_values values;
	struct wlb_checkpoint_facts facts;
	struct wlb_error error;
	char path[4096], newest[4096];
	const char *dir = fixture_path(state, "a/b");
	sample_fill(&values, 1);
	memset(&facts, 0, sizeof(facts));
	assert_int_equal(wlb_checkpoint_newest(dir, newest, &error), 0);
	sample_save_bands(dir, 60, &values, 1, 0, path);
	assert_int_equal(wlb_checkpoint_newest(dir, newest, &error), 1);
	assert_string_equal(newest, path);
	assert_non_null(strstr(path, "/a/b/step_00000060"));
	assert_int_equal(wlb_checkpoint_read_facts(path, &facts, &error), 0);
	assert_memory_equal(&facts.schedule, &sample_facts.schedule, sizeof(facts.schedule));
	assert_memory_equal(&facts.model, &sample_facts.model, sizeof(facts.model));
	assert_int_equal(facts.step, 60);
	assert_int_equal(facts.seq_length, 256);
	assert_int_equal(facts.global_batch_size, 16);
	assert_true(facts.seed == UINT64_MAX && facts.train_loss == sample_facts.train_loss);
	assert_int_equal(facts.packing, WLB_STRATEGY_FIXED);
	assert_true(facts.has_hyper);
	assert_memory_equal(&facts.hyper, &sample_facts.hyper, sizeof(facts.hyper));
	assert_int_equal(fixture_entries(dir), 1);
}

static void expect_changes(const struct wlb_hyperparameters *is, int count, const char *expected)
{
	char text[640];
	assert_int_equal(wlb_hyperparameters_compare(&sample_facts.hyper, is, text, sizeof(text)), count);
	assert_string_equal(text, expected);
}

/* Every value that changes what a step computes is named, with what it was and is. */
static void test_changed_hyperparameters(void **state)
{
	struct wlb_hyperparameters is = sample_facts.hyper, was;
	char text[640];
	(void)state;
	expect_changes(&is, 0, "");
	is.lr = 0.1 + 0.2;
	expect_changes(&is, 1, "--lr was 0.0003, is 0.30000000000000004");
	is = sample_facts.hyper;
	is.lr_decay_style = WLB_LR_CONSTANT;
	is.lr_decay_iters = 2000;
	expect_changes(&is, 2,
	               "--lr-decay-iters (by default --train-iters) was 1000, is 2000; --lr-decay-style was linear, is "
	               "constant");
	is = (struct wlb_hyperparameters){1, 0.5, 2, 3, WLB_LR_COSINE, 4, 0.5, 0.25, 1e-3, 0};
	expect_changes(&is, 10,
	               "--lr was 0.0003, is 1; --min-lr was 3e-05, is 0.5; --lr-warmup-iters was 100, is 2; "
	               "--lr-decay-iters (by default --train-iters) was 1000, is 3; --lr-decay-style was linear, is "
	               "cosine; --weight-decay was 0.1, is 4; --adam-beta1 was 0.9, is 0.5; --adam-beta2 was 0.95, is "
	               "0.25; --adam-eps was 1e-08, is 0.001; --clip-grad was 1, is 0");
	assert_int_equal(wlb_hyperparameters_compare(&sample_facts.hyper, &is, text, 10), 10);
	assert_string_equal(text, "--lr was ");
	/* A constant learning rate does not fall: a run of it may go on for longer. */
	was = is;
	was.lr_decay_style = is.lr_decay_style = WLB_LR_CONSTANT;
	is.lr_decay_iters = 6;
	is.min_lr = 0;
	assert_int_equal(wlb_hyperparameters_compare(&was, &is, text, sizeof(text)), 0);
}

/* As earlier versions saved. */
static void test_no_hyperparameters(void **state)
{
	struct wlb_checkpoint_facts facts = sample_facts;
	struct sample_values values;
	struct wlb_error error;
	char path[4096];
	facts.has_hyper = 0;
	sample_fill(&values, 1);
	assert_int_equal(sample_write(*state, &facts, &values, (struct sample_grid){1, 1}, 0, path, &error), 0);
	facts.has_hyper = 1;
	assert_int_equal(wlb_checkpoint_read_facts(path, &facts, &error), 0);
	assert_false(facts.has_hyper);
}

static void test_packer(void **state)
{
	struct sample_values values;
	struct wlb_error error;
	char path[4096], newest[4096], file[4200];
	void *read;
	size_t bytes;
	sample_fill(&values, 1);
	sample_save_bands(*state, 60, &values, 2, 0, path);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), 0);
	assert_int_equal(bytes, sizeof(sample_packer_state));
	assert_memory_equal(read, sample_packer_state, bytes);
	free(read);
	snprintf(file, sizeof(file), "%s/packer.bin", path);
	assert_int_equal(truncate(file, 5), 0);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), -1);
	assert_says(error.message, "packer.bin: has 5 bytes: the manifest says 24");
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), -1);
	assert_says(error.message, "none of its 1 checkpoints is complete");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), -1);
	assert_says(error.message, "packer.bin: No such file or directory");
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), -1);
}

/* Saves step 60 as one shard, with a packer's state of 0 bytes or without any; `path` receives its folder. */
static void save_step(void **state, int with_packer, char path[4096])
{
	struct sample_values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	int64_t total;
	sample_fill(&values, 1);
	sample_parts(&values, parts);
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, &error), 0);
	assert_int_equal(whole_shard_save(sample_place(*state), 60, 0, parts, 2, &error), 0);
	if (with_packer)
		assert_int_equal(wlb_checkpoint_write_packer(sample_place(*state), 60, "", 0, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(sample_place(*state), &sample_facts, 1, 0, path, &total, &error), 0);
}

static void test_no_packer(void **state)
{
	struct wlb_error error;
	char path[4096];
	void *read;
	size_t bytes;
	save_step(state, 0, path);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), -1);
	assert_says(error.message, "step_00000060: its manifest lists no packer.bin");
}

/* A state of 0 bytes is stored and read. */
static void test_empty_packer(void **state)
{
	struct wlb_error error;
	char path[4096];
	void *read;
	size_t bytes;
	save_step(state, 1, path);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), 0);
	assert_int_equal(bytes, 0);
	free(read);
}

/* As a file system may leave a file after a loss of power: its size is right, its content is zero. */
static void clear_header(const char *shard)
{
	static const char zeros[64];
	FILE *file = fopen(shard, "r+b");
	assert_non_null(file);
	assert_int_equal(fwrite(zeros, 1, sizeof(zeros), file), sizeof(zeros));
	assert_int_equal(fclose(file), 0);
}

/* Where the newest cannot be read now, an older one would cost the steps between them. A link to itself is such a file.
 */
static void test_unreadable_ones_are_no_older_ones(void **state)
{
	struct sample_values values;
	struct wlb_error error;
	char path[4096], newest[4096], file[4200];
	sample_fill(&values, 1);
	sample_save_bands(*state, 1, &values, 1, 0, path);
	sample_save_bands(*state, 2, &values, 1, 0, path);
	const char *const names[] = {"packer.bin", "shard_00000.safetensors", "manifest.json"}; /* read in reverse */
	for (int i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		assert_int_equal(unlink(file), 0);
		assert_int_equal(symlink(names[i], file), 0);
		assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), WLB_UNREADABLE);
		assert_says(error.message, names[i]);
		assert_says(error.message, "Too many levels of symbolic links");
	}
	snprintf(file, sizeof(file), "%s/loop", (const char *)*state);
	assert_int_equal(symlink("loop", file), 0);
	assert_int_equal(wlb_checkpoint_newest(file, newest, &error), WLB_UNREADABLE);
}

static void test_damaged_ones_are_passed_over(void **state)
{
	struct sample_values values;
	struct wlb_error error;
	char path[4096], newest[4096], shard[4200];
	sample_fill(&values, 1);
	for (int step = 1; step <= 6; step++)
		sample_save_bands(*state, step, &values, 1, 0, path);
	clear_header(fixture_path(state, "step_00000005/shard_00000.safetensors"));
	assert_int_equal(unlink(fixture_path(state, "step_00000004/packer.bin")), 0);
	snprintf(shard, sizeof(shard), "%s/shard_00000.safetensors", path);
	assert_int_equal(truncate(shard, 100), 0);
	assert_int_equal(unlink(fixture_path(state, "step_00000003/manifest.json")), 0);
	assert_int_equal(truncate(fixture_path(state, "step_00000002/manifest.json"), 300), 0);
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 1);
	assert_string_equal(newest, fixture_path(state, "step_00000001"));
}

enum { SHARES = 3 };

/* Returns how many of the shares find damage, and the message of the last of them. */
static int count_damaged(const char *path, struct wlb_error *error)
{
	int damaged = 0;
	for (int share = 0; share < SHARES; share++) {
		int rc = wlb_checkpoint_verify(path, share, SHARES, error);
		assert_true(rc == 0 || rc == WLB_DAMAGED);
		damaged += rc == WLB_DAMAGED;
	}
	return damaged;
}

/* Changes the byte that is `back` bytes before the end of the file. */
static void flip(const char *file, int64_t back)
{
	FILE *shard = fopen(file, "r+b");
	assert_non_null(shard);
	assert_int_equal(fseek(shard, -back, SEEK_END), 0);
	int byte = fgetc(shard);
	assert_int_equal(fseek(shard, -back, SEEK_END), 0);
	assert_int_equal(fputc(byte ^ 0x10, shard), byte ^ 0x10);
	assert_int_equal(fclose(shard), 0);
}

/* Each byte of the data of each tensor. Of five shards the first has the rows 0 and 1: 14 elements of the matrix and 2
 * of the vector. */
static void test_damaged_data(void **state)
{
	struct sample_values values;
	struct wlb_error error;
	char path[4096], newest[4096], file[4200];
	sample_fill(&values, 1);
	sample_save_bands(*state, 60, &values, 5, 0, path);
	assert_int_equal(count_damaged(path, &error), 0);
	for (int shard = 0; shard < 5; shard++) {
		snprintf(file, sizeof(file), "%s/shard_%05d.safetensors", path, shard);
		for (int64_t back = 1; back <= (int64_t)sizeof(float) * (14 + 2); back++) {
			flip(file, back);
			assert_int_equal(count_damaged(path, &error), 1);
			assert_says(error.message, file + strlen(path) + 1);
			assert_says(error.message, back <= 8 ? "tensor vector: its data" : "tensor matrix: its data");
			flip(file, back);
		}
	}
	assert_int_equal(count_damaged(path, &error), 0);
	/* A node that does not see a file, or not all of it, says nothing of the checkpoint. */
	assert_int_equal(truncate(file, 200), 0);
	assert_int_equal(wlb_checkpoint_verify(path, SHARES - 1, SHARES, &error), -1);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(wlb_checkpoint_verify(path, SHARES - 1, SHARES, &error), -1);
	sample_save_bands(*state, 60, &values, 5, 0, path);
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 1);
	assert_int_equal(wlb_checkpoint_newest_before(*state, 61, newest, &error), 1);
	assert_int_equal(wlb_checkpoint_newest_before(*state, 60, newest, &error), -1);
	assert_says(error.message, "none of its 1 checkpoints is complete");
}

/* Replaces the first `from` of the manifest by `to`, and expects that it is refused for this reason. */
static void expect_manifest_refused(void **state, const char *path, const char *from, const char *to,
                                    const char *reason)
{
	struct sample_values read;
	struct wlb_tensor_part parts[2];
	struct wlb_checkpoint_facts facts;
	struct wlb_error error = {0};
	char name[4200];
	void *packer;
	size_t bytes, good_bytes;
	snprintf(name, sizeof(name), "%s/manifest.json", path);
	char *good = fixture_read(name, &good_bytes), *at = strstr(good, from);
	assert_non_null(at);
	FILE *file = fopen(name, "w");
	fprintf(file, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
	fclose(file);
	sample_parts(&read, parts);
	if (wlb_checkpoint_read_facts(path, &facts, &error) == 0 && wlb_checkpoint_read(path, parts, 2, &error) == 0 &&
	    wlb_checkpoint_read_packer(path, &packer, &bytes, &error) == 0)
		fail_msg("%s instead of %s was believed", to, from);
	assert_says(error.message, reason);
	file = fopen(name, "w");
	fwrite(good, 1, good_bytes, file);
	fclose(file);
	free(good);
	(void)state;
}

/* As the manifest spells them. */
#define SHAPE(rows, cols) "[\n    " #rows ",\n    " #cols "\n   ]"
#define BLOCK(shard, row, rows, col, cols)                                                                             \
	"[\n     " #shard ",\n     " #row ",\n     " #rows ",\n     " #col ",\n     " #cols "\n    ]"
#define MOST "9223372036854775807"

static void test_damaged_manifests(void **state)
{
	static const struct {
		const char *from;
		const char *to;
		const char *reason;
	} cases[] = {
		{"\"wlb-checkpoint\"", "\"other\"", "format is 'other'"},
		{"\"version\": 3", "\"version\": 1", "version 1"},
		{"\"version\": 3", "\"version\": 4", "version 4"},
		{"\"step\": 60", "\"step\": -60", "step is -60"},
		{"\"step\": 60", "\"stop\": 60", "step"},
		{"\"step\": 60", "\"step\": \"60\"", "Expected integer"},
		{"\"train_loss\": 2.1", "\"train_loss\": NaN", "invalid token"},
		{"\"train_loss\": 2.1", "\"train_loss\": 1e999", "real number overflow"},
		{"\"seed\": \"18446744073709551615\"", "\"seed\": \"18446744073709551616\"", "seed is '1844"},
		{"\"seed\": \"18446744073709551615\"", "\"seed\": \"-1\"", "seed is '-1'"},
		{"\"packing\": \"fixed\"", "\"packing\": \"tight\"", "packing: "},
		{"\"packing\": \"fixed\"", "\"packing\": 2", "Expected string"},
		{"\"epoch\"", "\"epoche\"", "schedule: "},
		{"\"taken\": [", "\"taken\": [-1, ", "schedule: taken: value 0 must be a whole number of 0 or more"},
		{"\"taken\": [", "\"taken\": [1, 2.5, ", "schedule: taken: value 1 must be a whole number"},
		{"\"taken\": [", "\"taken\": 7, \"x\": [", "schedule: taken: must be an array of at most 256 numbers"},
		{"\"hidden_size\": 64", "\"hidden_size\": 0", "model: hidden_size is 0"},
		{"\"smollm3\"", "\"mixtral\"", "model: num_experts is 0"},
		{"\"lr\": ", "\"lr\": 0.0, \"x\": ", "hyperparameters: lr is missing, or no value"},
		{"\"lr\": ", "\"lr\": \"0.0003\", \"x\": ", "hyperparameters: lr is missing, or no value"},
		{"\"lr_warmup_iters\": 100", "\"lr_warmup_iters\": -1", "hyperparameters: lr_warmup_iters is missing"},
		{"\"lr_decay_iters\": 1000", "\"lr_decay_iters\": 1e3", "hyperparameters: lr_decay_iters is missing"},
		{"\"linear\"", "\"square\"", "hyperparameters: lr_decay_style is missing"},
		{"\"adam_beta1\": ", "\"adam_beta1\": 1.0, \"x\": ", "hyperparameters: adam_beta1 is missing"},
		{"\"clip_grad\"", "\"clip\"", "hyperparameters: clip_grad is missing"},
		{"\"hyperparameters\": {", "\"recent_norms\": {}, \"hyperparameters\": {",
	         "recent_norms: it must be a list of at most 66 steps"},
		{"\"hyperparameters\": {", "\"recent_norms\": [[3, 1.5], [3, 1]], \"hyperparameters\": {",
	         "recent_norms: entry 1: it must be the number of a step, above the one before"},
		{"\"hyperparameters\": {", "\"recent_norms\": [[3, -1]], \"hyperparameters\": {",
	         "recent_norms: entry 0: it must be"},
		{"\"hyperparameters\": {", "\"hyperparameters\": 3, \"x\": {", "hyperparameters: lr is missing"},
		{"\"packer\"", "\"packers\"", "packer"},
		{"\"packer.bin\"", "\"../packer.bin\"", "packer is '../packer.bin'"},
		{"\"bytes\": 24", "\"bytes\": -24", "packer is 'packer.bin' of -24 bytes"},
		{"\"bytes\": 24", "\"bytes\": " MOST, "has 24 bytes: the manifest says " MOST},
		{"shard_00000.safetensors", "../x", "shards[0] is '../x'"},
		{"safetensors\",\n   \"bytes\": ", "safetensors\", \"bytes\": 1", "the manifest says 1"},
		{"safetensors\",\n   \"bytes\": ", "safetensors\", \"bytes\": -", "shards[0]"},
		{"\"tensors\"", "\"tensor\"", "tensors"},
		{SHAPE(10, 7), SHAPE(10, 8), "tensor matrix: there is a gap"},
		{SHAPE(10, 7), SHAPE(11, 7), "tensor matrix: there is a gap"},
		{SHAPE(10, 7), SHAPE(9, 7), "tensor matrix: blocks[2]: rows"},
		{SHAPE(10, 7), SHAPE(10, 6), "tensor matrix: blocks[1]: rows"},
		{SHAPE(10, 7), "[" MOST ", 7]", "tensor matrix: shape"},
		{SHAPE(10, 7), "[10, -7]", "tensor matrix: shape"},
		{SHAPE(10, 7), "[10, 7, 1]", "tensor matrix: shape"},
		{SHAPE(10, 7), "[]", "tensor matrix: shape"},
		{SHAPE(10, 7), "[18446744073709551616, 7]", "too big integer"},
		{BLOCK(0, 0, 5, 0, 3), BLOCK(0, 0, 4, 0, 3), "tensor matrix: there is a gap"},
		{BLOCK(0, 0, 5, 0, 3), BLOCK(0, 0, 5, 0, 4), "tensor matrix: there is a gap"},
		{BLOCK(0, 0, 5, 0, 3), BLOCK(0, 1, 4, 0, 3), "tensor matrix: there is a gap"},
		{BLOCK(0, 0, 5, 0, 3), BLOCK(0, 0, 5, 1, 2), "tensor matrix: there is a gap"},
		{BLOCK(2, 5, 5, 0, 3), BLOCK(2, 4, 5, 0, 3), "tensor matrix: there is a gap"},
		{BLOCK(2, 5, 5, 0, 3), BLOCK(2, 0, 5, 0, 3), "tensor matrix: there is a gap"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 5, 3, 3), "tensor matrix: there is a gap"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 6, 3, 4), "tensor matrix: blocks[3]: rows 5 + 6"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 5, 4, 4), "tensor matrix: blocks[3]: rows 5 + 5, columns 4 + 4"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 0, 3, 4), "tensor matrix: blocks[3]"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 5, -3, 4), "tensor matrix: blocks[3]"},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, " MOST ", 3, 4]", "tensor matrix: blocks[3]: rows 5 + " MOST},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, 3, " MOST "]",
	         "tensor matrix: blocks[3]: rows 5 + 5, columns 3 + " MOST},
		{BLOCK(3, 5, 5, 3, 4), "[3, " MOST ", 5, 3, 4]", "tensor matrix: blocks[3]: rows " MOST " + 5"},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, " MOST ", 4]",
	         "tensor matrix: blocks[3]: rows 5 + 5, columns " MOST " + 4"},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5]", "tensor matrix: blocks[3]: "},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, 3, 4, 5]", "tensor matrix: blocks[3]: "},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, 3, 4.0]", "tensor matrix: blocks[3]: "},
		{BLOCK(3, 5, 5, 3, 4), "3", "tensor matrix: blocks[3]: "},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(4, 5, 5, 3, 4), "blocks[3]: shard is 4"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(-1, 5, 5, 3, 4), "blocks[3]: shard is -1"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(1, 5, 5, 3, 4), "the shard differs"},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, 3, 2], [3, 5, 5, 5, 2]", "the shard differs"},
		{"\"matrix\": {", "\"matrix\": {\"blocks\": [], \"shape\": [1]}, \"other\": {",
	         "matrix: blocks must be"},
		{"\"matrix\"", "\"matrox\"", "matrix is missing"},
		{"\"matrix\": {", "\"matrix\": {\"digests\": [\"12\"],", "tensor matrix: blocks[0]: digest is '12'"},
		{"\"matrix\": {", "\"matrix\": {\"digests\": [],", "tensor matrix: blocks[0]: digest is 'missing'"},
		{"\"checksum\": \"", "\"checksum\": \"x", "shards[0]: checksum is 'x"},
	};
	struct sample_values values;
	char path[4096];
	sample_fill(&values, 1);
	sample_save_grid(*state, 60, &values, (struct sample_grid){2, 2}, path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_manifest_refused(state, path, cases[i].from, cases[i].to, cases[i].reason);
	sample_expect(path, &values);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_facts, fixture_setup, fixture_teardown),
		cmocka_unit_test(test_changed_hyperparameters),
		cmocka_unit_test_setup_teardown(test_no_hyperparameters, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_packer, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_no_packer, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_empty_packer, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_unreadable_ones_are_no_older_ones, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_ones_are_passed_over, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_data, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_manifests, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("checkpoint_manifest", tests, NULL, NULL);
}
