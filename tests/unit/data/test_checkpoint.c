/* Checkpoints: what is saved is read on any number of ranks, and nothing half-written passes for one. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "worker/checkpoint/checkpoint.h"

enum { ROWS = 10, COLS = 3 };

struct values {
	float matrix[ROWS * COLS];
	float vector[ROWS];
};

static void fill(struct values *v, float base)
{
	for (int i = 0; i < ROWS * COLS; i++)
		v->matrix[i] = base + (float)i;
	for (int i = 0; i < ROWS; i++)
		v->vector[i] = -base - (float)i;
}

/* Rows [first, first + rows) of both tensors. */
static void make_parts(struct values *v, int first, int rows, struct wlb_tensor_part parts[2])
{
	parts[0] =
		(struct wlb_tensor_part){"matrix", WLB_FLOAT32, 2, ROWS, COLS, first, rows, v->matrix + first * COLS};
	parts[1] = (struct wlb_tensor_part){"vector", WLB_FLOAT32, 1, ROWS, 1, first, rows, v->vector + first};
}

static const struct wlb_checkpoint_facts some_facts = {
	.step = 60,
	.schedule = {.seed = UINT64_MAX,
                     .documents = 1000,
                     .tokens = 123456789,
                     .epoch = 2,
                     .position = 17,
                     .pieces = 512,
                     .step = 60},
	.model = {.hidden_size = 64,
                  .intermediate_size = 128,
                  .num_hidden_layers = 2,
                  .num_attention_heads = 4,
                  .num_key_value_heads = 2,
                  .head_dim = 16,
                  .vocab_size = 257,
                  .max_position_embeddings = 2048,
                  .rope_theta = 10000.0,
                  .rms_norm_eps = 1e-6,
                  .tie_word_embeddings = 1},
	.seq_length = 256,
	.global_batch_size = 16,
	.seed = UINT64_MAX,
	.train_loss = 2.1000000000000001,
};

/* Saves `values` in `shards` pieces of rows. */
static int save(const char *dir, int64_t step, struct values *values, int shards, int keep, char path[4096],
                struct wlb_error *error)
{
	struct wlb_checkpoint_facts facts = some_facts;
	struct wlb_tensor_part parts[2];
	int64_t bytes;
	facts.step = step;
	if (wlb_checkpoint_begin(dir, step, error) < 0)
		return -1;
	for (int i = 0; i < shards; i++) {
		int first = ROWS * i / shards, end = ROWS * (i + 1) / shards;
		make_parts(values, first, end - first, parts);
		if (wlb_checkpoint_write_shard(dir, step, i, parts, 2, error) < 0)
			return -1;
	}
	return wlb_checkpoint_commit(dir, &facts, shards, keep, path, &bytes, error);
}

static void save_good(const char *dir, int64_t step, struct values *values, int shards, int keep, char path[4096])
{
	struct wlb_error error;
	if (save(dir, step, values, shards, keep, path, &error) < 0)
		fail_msg("%s", error.message);
}

static void expect_values(const char *path, const struct values *expected)
{
	struct values read;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	memset(&read, 0xff, sizeof(read));
	make_parts(&read, 0, ROWS, parts);
	if (wlb_checkpoint_read(path, parts, 2, &error) < 0)
		fail_msg("%s", error.message);
	assert_memory_equal(&read, expected, sizeof(read));
}

static void test_facts(void **state)
{
	struct values values;
	struct wlb_checkpoint_facts facts;
	struct wlb_error error;
	char path[4096], newest[4096];
	const char *dir = fixture_path(state, "a/b");
	fill(&values, 1);
	memset(&facts, 0, sizeof(facts));
	assert_int_equal(wlb_checkpoint_newest(dir, newest, &error), 0);
	save_good(dir, 60, &values, 1, 0, path);
	assert_int_equal(wlb_checkpoint_newest(dir, newest, &error), 1);
	assert_string_equal(newest, path);
	assert_non_null(strstr(path, "/a/b/step_00000060"));
	assert_int_equal(wlb_checkpoint_read_facts(path, &facts, &error), 0);
	assert_memory_equal(&facts.schedule, &some_facts.schedule, sizeof(facts.schedule));
	assert_memory_equal(&facts.model, &some_facts.model, sizeof(facts.model));
	assert_int_equal(facts.step, 60);
	assert_int_equal(facts.seq_length, 256);
	assert_int_equal(facts.global_batch_size, 16);
	assert_true(facts.seed == UINT64_MAX && facts.train_loss == some_facts.train_loss);
	assert_int_equal(fixture_entries(dir), 1);
}

static void test_any_layout_reads_any_other(void **state)
{
	for (int writers = 1; writers <= 12; writers++) { /* with more writers than rows some shards are empty */
		struct values values;
		char path[4096];
		fill(&values, (float)writers);
		save_good(*state, writers, &values, writers, 0, path);
		for (int readers = 1; readers <= 12; readers++) {
			struct values read;
			memset(&read, 0xff, sizeof(read));
			for (int r = 0; r < readers; r++) {
				struct wlb_tensor_part parts[2];
				struct wlb_error error;
				int first = ROWS * r / readers, end = ROWS * (r + 1) / readers;
				make_parts(&read, first, end - first, parts);
				assert_int_equal(wlb_checkpoint_read(path, parts, 2, &error), 0);
			}
			assert_memory_equal(&read, &values, sizeof(values));
		}
	}
}

static void test_float64_reads_float32(void **state)
{
	struct values values;
	char path[4096];
	double wide[ROWS];
	struct wlb_error error;
	const struct wlb_tensor_part part = {"vector", WLB_FLOAT64, 1, ROWS, 1, 0, ROWS, wide};
	fill(&values, 0.1f);
	save_good(*state, 1, &values, 3, 0, path);
	assert_int_equal(wlb_checkpoint_read(path, &part, 1, &error), 0);
	for (int i = 0; i < ROWS; i++)
		assert_true(wide[i] == (double)values.vector[i]);
}

static void test_wanted_parts_that_are_not_there(void **state)
{
	struct values values;
	char path[4096];
	float data[100];
	struct wlb_error error;
	const struct wlb_tensor_part missing = {"norm.weight", WLB_FLOAT32, 1, ROWS, 1, 0, ROWS, data};
	const struct wlb_tensor_part taller = {"vector", WLB_FLOAT32, 1, ROWS + 1, 1, 0, ROWS, data};
	const struct wlb_tensor_part flat = {"matrix", WLB_FLOAT32, 1, ROWS, 1, 0, ROWS, data};
	fill(&values, 1);
	save_good(*state, 1, &values, 2, 0, path);
	assert_int_equal(wlb_checkpoint_read(path, &missing, 1, &error), -1);
	assert_says(error.message, "step_00000001: tensor norm.weight is missing");
	assert_int_equal(wlb_checkpoint_read(path, &taller, 1, &error), -1);
	assert_says(error.message, "tensor vector has shape 10 x 1, the model needs 11 x 1");
	assert_int_equal(wlb_checkpoint_read(path, &flat, 1, &error), -1);
	assert_says(error.message, "tensor matrix has shape 10 x 3, the model needs 10 x 1");
	assert_int_equal(wlb_checkpoint_read(*state, &flat, 1, &error), -1);
	assert_says(error.message, "holds neither manifest.json nor model.safetensors");
}

static void test_rows_must_be_covered_once(void **state)
{
	static const struct {
		int first[2];
		int rows[2];
	} cases[] = {{{0, 6}, {5, 4}}, {{0, 4}, {5, 6}}, {{0, 5}, {5, 4}}, {{1, 5}, {4, 5}}};
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct values values;
		struct wlb_tensor_part parts[2];
		struct wlb_error error;
		int64_t bytes;
		char path[4096];
		fill(&values, 1);
		assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
		for (int i = 0; i < 2; i++) {
			make_parts(&values, cases[c].first[i], cases[c].rows[i], parts);
			assert_int_equal(wlb_checkpoint_write_shard(*state, 60, i, parts, 2, &error), 0);
		}
		assert_int_equal(wlb_checkpoint_commit(*state, &some_facts, 2, 0, path, &bytes, &error), -1);
		assert_says(error.message, "each row must be in one shard");
		assert_int_equal(fixture_entries(*state), 0);
	}
}

static void test_missing_shard_and_diverged_loss(void **state)
{
	struct wlb_checkpoint_facts facts = some_facts;
	struct values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	int64_t bytes;
	char path[4096];
	fill(&values, 1);
	make_parts(&values, 0, ROWS, parts);
	assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
	assert_int_equal(wlb_checkpoint_write_shard(*state, 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(*state, &facts, 2, 0, path, &bytes, &error), -1);
	assert_says(error.message, "shard_00001.safetensors: cannot be opened");
	assert_int_equal(fixture_entries(*state), 0);
	facts.train_loss = NAN;
	assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
	assert_int_equal(wlb_checkpoint_write_shard(*state, 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(*state, &facts, 1, 0, path, &bytes, &error), -1);
	assert_says(error.message, "train_loss of step 60 is nan");
	assert_int_equal(fixture_entries(*state), 0);
}

static void test_leftovers_are_removed_and_ignored(void **state)
{
	struct values values;
	struct wlb_error error;
	char path[4096];
	fill(&values, 1);
	assert_int_equal(mkdir(fixture_path(state, ".step_00000090.partial"), 0777), 0);
	fixture_write_text(state, ".step_00000090.partial/manifest.json", "{}");
	fixture_write_text(state, "notes.txt", "kept");
	assert_int_equal(wlb_checkpoint_newest(*state, path, &error), 0);
	save_good(*state, 10, &values, 1, 0, path);
	assert_int_equal(fixture_entries(*state), 2);
}

static void test_keep(void **state)
{
	struct values values;
	char path[4096];
	fill(&values, 1);
	for (int step = 1; step <= 5; step++)
		save_good(*state, step, &values, 1, 2, path);
	assert_int_equal(fixture_entries(*state), 2);
	assert_true(fixture_exists(fixture_path(state, "step_00000004")));
	assert_true(fixture_exists(fixture_path(state, "step_00000005")));
	/* A run set back to step 2 writes 3: later ones do not push it out. */
	save_good(*state, 3, &values, 1, 2, path);
	assert_true(fixture_exists(path));
	assert_int_equal(fixture_entries(*state), 3);
}

static void test_same_step_again(void **state)
{
	struct values first, second;
	char path[4096];
	fill(&first, 1);
	fill(&second, 2);
	save_good(*state, 7, &first, 3, 0, path);
	save_good(*state, 7, &second, 2, 0, path);
	expect_values(path, &second);
	assert_int_equal(fixture_entries(*state), 1);
	assert_int_equal(fixture_entries(path), 3);
}

static void test_damaged_ones_are_passed_over(void **state)
{
	struct values values;
	struct wlb_error error;
	char path[4096], newest[4096], shard[4200];
	fill(&values, 1);
	for (int step = 1; step <= 4; step++)
		save_good(*state, step, &values, 1, 0, path);
	snprintf(shard, sizeof(shard), "%s/shard_00000.safetensors", path);
	assert_int_equal(truncate(shard, 100), 0);
	assert_int_equal(unlink(fixture_path(state, "step_00000003/manifest.json")), 0);
	assert_int_equal(truncate(fixture_path(state, "step_00000002/manifest.json"), 300), 0);
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 1);
	assert_string_equal(newest, fixture_path(state, "step_00000001"));
}

/* Replaces the first `from` of the manifest by `to`, and expects to be told. */
static void expect_manifest_refused(void **state, const char *path, const char *from, const char *to,
                                    const char *reason)
{
	struct values read;
	struct wlb_tensor_part parts[2];
	struct wlb_checkpoint_facts facts;
	struct wlb_error error = {0};
	char name[4200];
	size_t bytes;
	snprintf(name, sizeof(name), "%s/manifest.json", path);
	char *good = fixture_read(name, &bytes), *at = strstr(good, from);
	assert_non_null(at);
	FILE *file = fopen(name, "w");
	fprintf(file, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
	fclose(file);
	make_parts(&read, 0, ROWS, parts);
	if (wlb_checkpoint_read_facts(path, &facts, &error) == 0 && wlb_checkpoint_read(path, parts, 2, &error) == 0)
		fail_msg("%s instead of %s was believed", to, from);
	assert_says(error.message, reason);
	file = fopen(name, "w");
	fwrite(good, 1, bytes, file);
	fclose(file);
	free(good);
	(void)state;
}

static void test_damaged_manifests(void **state)
{
	static const struct {
		const char *from;
		const char *to;
		const char *reason;
	} cases[] = {
		{"\"wlb-checkpoint\"", "\"other\"", "format is 'other'"},
		{"\"version\": 1", "\"version\": 2", "version 2"},
		{"\"step\": 60", "\"step\": -60", "step is -60"},
		{"\"step\": 60", "\"stop\": 60", "step"},
		{"\"step\": 60", "\"step\": \"60\"", "Expected integer"},
		{"\"train_loss\": 2.1", "\"train_loss\": NaN", "invalid token"},
		{"\"train_loss\": 2.1", "\"train_loss\": 1e999", "real number overflow"},
		{"\"seed\": \"18446744073709551615\"", "\"seed\": \"18446744073709551616\"", "seed is '1844"},
		{"\"seed\": \"18446744073709551615\"", "\"seed\": \"-1\"", "seed is '-1'"},
		{"\"epoch\"", "\"epoche\"", "schedule: "},
		{"\"hidden_size\": 64", "\"hidden_size\": 0", "model: hidden_size is 0"},
		{"shard_00000.safetensors", "../x", "shards[0] is '../x'"},
		{"\"bytes\": ", "\"bytes\": 1", "the manifest says 1"},
		{"\"bytes\": ", "\"bytes\": -", "shards[0]"},
		{"\"tensors\"", "\"tensor\"", "tensors"},
		{"[\n    10,\n    3\n   ]", "[\n    10,\n    4\n   ]", "tensor matrix"},
		{"[\n    10,\n    3\n   ]", "[\n    9223372036854775807,\n    3\n   ]", "tensor matrix: shape"},
		{"[\n    10,\n    3\n   ]", "[]", "tensor matrix: shape"},
		{"[\n     0,\n     0,\n     10\n    ]", "[0,0,9]", "each row must be in one shard"},
		{"[\n     0,\n     0,\n     10\n    ]", "[1,0,10]", "is shard 1"},
		{"[\n     0,\n     0,\n     10\n    ]", "[0,5,9223372036854775807]", "rows 5 + 9223372036854775807"},
		{"[\n     0,\n     0,\n     10\n    ]", "[0,0,5],[0,5,5]", "the shard differs"},
		{"\"matrix\"", "\"matrox\"", "matrix is missing"},
	};
	struct values values;
	char path[4096];
	fill(&values, 1);
	save_good(*state, 60, &values, 1, 0, path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_manifest_refused(state, path, cases[i].from, cases[i].to, cases[i].reason);
	expect_values(path, &values);
}

/* What the child saves over and over must be whole at whatever moment it is killed. */
static void test_killed_at_any_time(void **state)
{
	char path[4096], newest[4096];
	struct wlb_error error;
	struct values values;
	fill(&values, 5);
	save_good(*state, 3, &values, 2, 2, path); /* from here on there is always one */
	for (int round = 0; round < 30; round++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			for (int step = 1;; step = step % 3 + 1)
				if (save(*state, step, &values, 2, 2, path, &error) < 0)
					_exit(1);
		}
		usleep((unsigned)(1000 + 2000 * round));
		assert_int_equal(kill(child, SIGKILL), 0);
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status)); /* it had not failed */
		assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 1);
		expect_values(newest, &values);
	}
}

/* The size at which a write fails, from the first byte on. */
static void test_failing_writes(void **state)
{
	char path[4096];
	struct wlb_error error;
	struct values values;
	struct rlimit normal, limited;
	int failures = 0, successes = 0;
	fill(&values, 5);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &normal), 0);
	for (rlim_t bytes = 0; successes == 0; bytes += 64) {
		limited = (struct rlimit){bytes, normal.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
		int rc = save(*state, 60, &values, 2, 0, path, &error);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &normal), 0);
		if (rc == 0) {
			successes++;
			continue;
		}
		failures++;
		assert_says(error.message, "File too large");
		assert_true(strstr(error.message, ".safetensors") || strstr(error.message, "manifest.json"));
		assert_int_equal(fixture_entries(*state), 0);
	}
	assert_true(failures > 5);
	expect_values(path, &values);
}

/* In a child with a file system of its own: 0 when all was well, 77 when it may not mount one. */
static int full_disk(void **state)
{
	char path[4096];
	struct wlb_error error;
	static float large[64 * 1024];
	struct wlb_tensor_part part = {"large", WLB_FLOAT32, 1, 64 * 1024, 1, 0, 64 * 1024, large};
	struct wlb_checkpoint_facts facts = some_facts;
	int64_t bytes;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", *state, "tmpfs", 0, "size=400k") < 0)
		return 77;
	for (int step = 1; step <= 2; step++) { /* the first fits, the second does not */
		facts.step = step;
		int rc = wlb_checkpoint_begin(*state, step, &error);
		if (rc == 0)
			rc = wlb_checkpoint_write_shard(*state, step, 0, &part, 1, &error);
		if (rc == 0)
			rc = wlb_checkpoint_commit(*state, &facts, 1, 1, path, &bytes, &error);
		if (rc != (step == 1 ? 0 : -1) || fixture_entries(*state) != 1)
			return 1;
	}
	if (strstr(error.message, "No space left on device") == NULL || strstr(error.message, ".safetensors") == NULL)
		return 2;
	return wlb_checkpoint_newest(*state, path, &error) == 1 && strstr(path, "step_00000001") ? 0 : 3;
}

static void test_full_disk(void **state)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(full_disk(state));
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* not root, or not allowed to mount */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A folder with the files "a" and "b", each holding one of the two tensors. */
static void write_hugging_face(void **state, struct values *values, const char *a, const char *b)
{
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	struct values *v = values;
	make_parts(v, 0, ROWS, parts);
	char path[4096];
	assert_int_equal(wlb_checkpoint_begin(*state, 1, &error), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wlb_checkpoint_write_shard(*state, 1, i, &parts[i], 1, &error), 0);
		snprintf(path, sizeof(path), ".step_00000001.partial/shard_%05d.safetensors", i);
		assert_int_equal(rename(fixture_path(state, path), fixture_path(state, i == 0 ? a : b)), 0);
	}
}

static void test_hugging_face_folders(void **state)
{
	struct values values;
	struct wlb_tensor_part part;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	float read[ROWS * COLS];
	fill(&values, 3);
	write_hugging_face(state, &values, "model.safetensors", "model-2.safetensors");
	make_parts(&values, 0, ROWS, parts);
	part = parts[0];
	part.data_host = read;
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), 0);
	assert_memory_equal(read, values.matrix, sizeof(read));
	fixture_write_text(state, "model.safetensors.index.json",
	                   "{\"metadata\":{},\"weight_map\":{\"matrix\":\"model.safetensors\","
	                   "\"vector\":\"model-2.safetensors\"}}");
	expect_values(*state, &values);
	fixture_write_text(state, "model.safetensors.index.json", "{\"weight_map\":{\"matrix\":\"../x\"}}");
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), -1);
	assert_says(error.message, "weight_map.matrix is '../x'");
	fixture_write_text(state, "model.safetensors.index.json", "{\"weight_map\":{\"matrix\":\"absent\"}}");
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), -1);
	assert_says(error.message, "absent: cannot be opened");
	fixture_write_text(state, "model.safetensors.index.json", "{}");
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), -1);
	assert_says(error.message, "weight_map is missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_facts, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_any_layout_reads_any_other, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_float64_reads_float32, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_wanted_parts_that_are_not_there, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_rows_must_be_covered_once, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_missing_shard_and_diverged_loss, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_leftovers_are_removed_and_ignored, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_keep, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_same_step_again, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_ones_are_passed_over, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_manifests, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_killed_at_any_time, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_failing_writes, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_hugging_face_folders, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
