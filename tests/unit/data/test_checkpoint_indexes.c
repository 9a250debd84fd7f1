/* Checkpoints of several groups of shards: each has an index, of which a reader needs few, and what is wrong with one
 * of them is named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/element_checksum.h"
#include "tests/unit/data/fixture.h"
#include "tests/unit/data/sample_checkpoint.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard_group.h"
#include "worker/checkpoint/shard_lists.h"
#include "worker/data/input.h"

int __real_wlb_shard_group_size(void);
int __wrap_wlb_shard_group_size(void);

static int group_size; /* 0: as it is */

int __wrap_wlb_shard_group_size(void)
{
	return group_size > 0 ? group_size : __real_wlb_shard_group_size();
}

static int setup_small(void **state)
{
	group_size = 3;
	return fixture_setup(state);
}

static int setup(void **state)
{
	group_size = 0;
	return fixture_setup(state);
}

/* Saves step 60 of a vector, of which each shard has one element: its number. */
static void save_vector(void **state, int shards, double *values, char path[4096])
{
	const struct wlb_save_place *place = sample_place(*state);
	struct wlb_error error;
	int64_t bytes;
	assert_int_equal(wlb_checkpoint_begin(place, 60, &error), 0);
	for (int i = 0; i < shards; i++) {
		const struct wlb_tensor_part part = {"vector",   WLB_FLOAT64, {1, shards, 1, 0, shards, 0, 1},
		                                     {i, i + 1}, &values[i],  0};
		values[i] = i;
		assert_int_equal(whole_shard_save(place, 60, i, &part, 1, &error), 0);
	}
	assert_int_equal(whole_shard_save_indexes(place, 60, shards, &error), 0);
	assert_int_equal(wlb_checkpoint_write_packer(place, 60, "", 0, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(place, &sample_facts, shards, 1, path, &bytes, &error), 0);
}

/* Changes the last byte of a file of the checkpoint, or changes it back. */
static void flip(const char *path, const char *name)
{
	char file[4200];
	snprintf(file, sizeof(file), "%s/%s", path, name);
	FILE *stream = fopen(file, "r+b");
	assert_non_null(stream);
	assert_int_equal(fseek(stream, -1, SEEK_END), 0);
	int byte = fgetc(stream);
	assert_int_equal(fseek(stream, -1, SEEK_END), 0);
	assert_int_equal(fputc(byte ^ 0x10, stream), byte ^ 0x10);
	assert_int_equal(fclose(stream), 0);
}

/* Renames a file of the checkpoint to NAME.aside, or back. */
static void put_aside(const char *path, const char *name, int is_back)
{
	char file[4200], aside[4210];
	snprintf(file, sizeof(file), "%s/%s", path, name);
	snprintf(aside, sizeof(aside), "%s.aside", file);
	assert_int_equal(is_back ? rename(aside, file) : rename(file, aside), 0);
}

/* A run that begins to load it, and a command, refuse the checkpoint for this reason. */
static void expect_refused(const char *path, const char *dir, const char *reason)
{
	struct wlb_error error;
	char newest[4096];
	assert_int_equal(wlb_checkpoint_check(path, &error), -1);
	assert_says(error.message, reason);
	assert_int_equal(wlb_checkpoint_newest_before(dir, INT64_MAX, newest, &error), -1);
	assert_says(error.message, "none of its 1 checkpoints is complete");
}

/* The shares of which wlb_checkpoint_check_shards finds one that is damaged, in bits, and why. */
static int damaged_shares(const char *path, int shares, struct wlb_error *error)
{
	int damaged = 0;
	for (int i = 0; i < shares; i++) {
		int rc = wlb_checkpoint_check_shards(path, i, shares, error);
		assert_true(rc == 0 || rc == WLB_DAMAGED);
		damaged |= (rc == WLB_DAMAGED) << i;
	}
	return damaged;
}

/* With the groups of a release, and fewer files open than indexes and shards. */
static void test_two_thousand_shards(void **state)
{
	enum { SHARDS = 2049, FILES = 64 };
	static double written[SHARDS], read[SHARDS];
	const struct wlb_tensor_part all = {"vector", WLB_FLOAT64, {1, SHARDS, 1, 0, SHARDS, 0, 1}, {0, 0}, read, 0};
	struct wlb_error error;
	struct rlimit normal, limited;
	char path[4096], newest[4096];
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &normal), 0);
	limited = (struct rlimit){FILES, normal.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limited), 0);
	save_vector(state, SHARDS, written, path);
	assert_true(fixture_exists(fixture_path(state, "step_00000060/part_002/shard_02048.safetensors")));
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 1);
	assert_int_equal(wlb_checkpoint_read(path, &all, 1, &error), 0);
	assert_memory_equal(read, written, sizeof(written));
	assert_int_equal(wlb_checkpoint_verify(path, 0, 1, &error), 0);
	assert_int_equal(damaged_shares(path, 4, &error), 0);
	flip(path, "part_001/index.json");
	expect_refused(path, *state, "part_001/index.json: is damaged: it has the checksum");
	flip(path, "part_001/index.json");
	put_aside(path, "index.json", 0);
	expect_refused(path, *state, "step_00000060/index.json: cannot be opened: No such file");
	put_aside(path, "index.json", 1);
	put_aside(path, "part_002/shard_02048.safetensors", 0);
	assert_int_equal(wlb_checkpoint_check(path, &error), -1);
	assert_says(error.message, "part_002/shard_02048.safetensors: No such file");
	assert_int_equal(wlb_checkpoint_newest_before(*state, INT64_MAX, newest, &error), 1);
	assert_int_equal(damaged_shares(path, 4, &error), 1 << 3);
	assert_says(error.message, "part_002/shard_02048.safetensors: No such file");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &normal), 0);
	/* Of a later step, with --keep 1. */
	struct sample_values values;
	sample_fill(&values, 1);
	sample_save_bands(*state, 61, &values, 1, 1, path);
	assert_false(fixture_exists(fixture_path(state, "step_00000060")));
}

/* Reads all parts of a grid into `read`. */
static void read_grid(const char *path, struct sample_grid grid, struct sample_values *read)
{
	memset(read, 0xff, sizeof(*read));
	for (int i = 0; i < grid.rows * grid.cols; i++) {
		struct sample_values dense;
		struct wlb_tensor_part parts[2];
		struct wlb_error error;
		sample_blocks(&dense, grid, i, parts);
		if (wlb_checkpoint_read(path, parts, 2, &error) < 0)
			fail_msg("%s", error.message);
		sample_put(read, &parts[0]);
		sample_put(read, &parts[1]);
	}
}

static void test_any_layout_reads_any_other(void **state)
{
	static const struct sample_grid grids[] = {{2, 1}, {4, 1}, {1, 4},  {2, 2}, {3, 2},
	                                           {4, 4}, {1, 9}, {12, 1}, {3, 11}};
	enum { GRIDS = sizeof(grids) / sizeof(grids[0]) };
	for (int writers = 0; writers < GRIDS; writers++) {
		struct sample_values values, read;
		struct wlb_error error;
		char path[4096];
		sample_fill(&values, (float)writers);
		sample_save_grid(*state, writers, &values, grids[writers], path);
		assert_int_equal(wlb_checkpoint_check(path, &error), 0);
		assert_int_equal(wlb_checkpoint_element_bytes(path, &error), sizeof(float));
		for (int readers = 0; readers < GRIDS; readers++) {
			read_grid(path, grids[readers], &read);
			assert_memory_equal(&read, &values, sizeof(values));
		}
	}
}

/* As a version that was never released saved them: one list of more shards than a group has. */
static void test_one_list_of_several_groups(void **state)
{
	struct sample_values values, dense;
	struct wlb_weights weights = {0};
	struct wlb_error error;
	const struct sample_grid grid = {4, 2};
	char partial[4096], path[4096], name[48];
	int64_t bytes;
	sample_fill(&values, 1);
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, &error), 0);
	assert_int_equal(wlb_folder_partial(sample_place(*state), 60, partial, &error), 0);
	assert_int_equal(wlb_folder_path(*state, 60, WLB_FOLDER_FINAL, path, &error), 0);
	for (int i = 0; i < grid.rows * grid.cols; i++) {
		struct wlb_tensor_part parts[2];
		sample_blocks(&dense, grid, i, parts);
		sample_take(&values, &parts[0]);
		sample_take(&values, &parts[1]);
		assert_int_equal(whole_shard_save(sample_place(*state), 60, i, parts, 2, &error), 0);
		wlb_shard_name(i, name);
		assert_int_equal(wlb_weights_add_file(&weights, partial, name, -1, &error), i);
	}
	assert_int_equal(wlb_weights_scan(&weights, &error), 0);
	assert_int_equal(wlb_weights_finish(&weights, &error), 0);
	assert_int_equal(wlb_manifest_write(partial, &sample_facts, &weights, -1, &bytes, &error), 0);
	wlb_weights_free(&weights);
	assert_int_equal(rename(partial, path), 0);
	assert_int_equal(wlb_checkpoint_check(path, &error), 0);
	sample_expect(path, &values);
}

/* Of three groups. */
static void test_only_the_indexes_needed_are_read(void **state)
{
	double written[8], read[3];
	const struct wlb_tensor_part parts[] = {{"vector", WLB_FLOAT64, {1, 8, 1, 0, 8, 0, 1}, {3, 6}, read, 0},
	                                        {"vector", WLB_FLOAT64, {1, 8, 1, 5, 2, 0, 1}, {0, 0}, read, 0}};
	struct wlb_error error;
	char path[4096];
	save_vector(state, 8, written, path);
	put_aside(path, "index.json", 0);
	put_aside(path, "part_002/index.json", 0);
	assert_int_equal(wlb_checkpoint_read(path, &parts[0], 1, &error), 0);
	assert_memory_equal(read, &written[3], sizeof(read));
	assert_int_equal(wlb_checkpoint_read(path, &parts[1], 1, &error), -1);
	assert_says(error.message, "part_002/index.json: cannot be opened");
	assert_int_equal(wlb_checkpoint_check_shards(path, 1, 3, &error), -1); /* shards 2 to 4 */
	assert_says(error.message, "step_00000060/index.json: cannot be opened");
}

/* Each reader knows the shards whose index it has read. */
static void test_sums_find_a_damaged_shard(void **state)
{
	double written[8], read[8], sums[2][3 * 8];
	struct wlb_checkpoint_reader *readers[2];
	struct wlb_error error;
	char path[4096];
	save_vector(state, 8, written, path);
	flip(path, "part_001/shard_00004.safetensors");
	for (int i = 0; i < 2; i++) {
		const struct wlb_tensor_part part = {
			"vector", WLB_FLOAT64, {1, 8, 1, 0, 8, 0, 1}, {i == 0 ? 0 : 3, i == 0 ? 3 : 8}, read, 0};
		readers[i] = wlb_checkpoint_open(path, &error);
		assert_true(wlb_checkpoint_check_before_reading(readers[i]) == wlb_checkpoint_check_shards);
		assert_int_equal(wlb_checkpoint_sum_count(readers[i]), 3 * 8);
		assert_int_equal(wlb_checkpoint_read_parts(readers[i], &part, 1, &error), 0);
		wlb_checkpoint_sums(readers[i], sums[i]);
	}
	for (int i = 0; i < 3 * 8; i++)
		sums[0][i] += sums[1][i];
	assert_int_equal(wlb_checkpoint_find_damaged(readers[0], sums[0]), -1);
	assert_int_equal(wlb_checkpoint_find_damaged(readers[1], sums[0]), 4);
	assert_says(wlb_checkpoint_file_path(readers[1], 4), "step_00000060/part_001/shard_00004.safetensors");
	assert_int_equal(wlb_checkpoint_verify(path, 0, 1, &error), WLB_DAMAGED);
	assert_says(error.message, "part_001/shard_00004.safetensors: tensor vector: its data");
	for (int i = 0; i < 2; i++)
		wlb_checkpoint_close(readers[i]);
}

/* Where shards of two groups, or of one, have the same element, or none has it. */
static void test_elements_must_be_covered_once(void **state)
{
	static const struct wlb_element_range cases[][4] = {{{0, 2}, {2, 4}, {4, 6}, {5, 8}},
	                                                    {{0, 2}, {2, 4}, {4, 6}, {7, 8}},
	                                                    {{0, 2}, {1, 4}, {4, 6}, {6, 8}},
	                                                    {{0, 2}, {2, 4}, {5, 6}, {6, 8}}};
	const struct wlb_save_place *place = sample_place(*state);
	double data[8] = {0};
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct wlb_error error;
		char path[4096];
		int64_t bytes;
		assert_int_equal(wlb_checkpoint_begin(place, 60, &error), 0);
		for (int i = 0; i < 4; i++) {
			const struct wlb_tensor_part part = {"vector",    WLB_FLOAT64, {1, 8, 1, 0, 8, 0, 1},
			                                     cases[c][i], data,        0};
			assert_int_equal(whole_shard_save(place, 60, i, &part, 1, &error), 0);
		}
		assert_int_equal(wlb_checkpoint_commit(place, &sample_facts, 4, 0, path, &bytes, &error), -1);
		assert_says(error.message, ".partial/index.json: cannot be opened");
		assert_int_equal(whole_shard_save_indexes(place, 60, 4, &error), 0);
		assert_int_equal(wlb_checkpoint_commit(place, &sample_facts, 4, 0, path, &bytes, &error), -1);
		assert_says(error.message, "tensor vector: there is a gap or an overlap");
	}
}

/* As of an index that another number of ranks has left. */
static void test_a_commit_needs_all_shards(void **state)
{
	const struct wlb_save_place *place = sample_place(*state);
	struct wlb_error error;
	char path[4096];
	int64_t bytes;
	assert_int_equal(wlb_checkpoint_begin(place, 60, &error), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(whole_shard_save(place, 60, i, NULL, 0, &error), 0);
	assert_int_equal(whole_shard_save_indexes(place, 60, 5, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(place, &sample_facts, 6, 0, path, &bytes, &error), -1);
	assert_says(error.message, "part_001/index.json: it lists 2 shards: it must list 3");
}

/* Where an index cannot be read now, an older checkpoint would cost the steps between them. A link to itself is such a
 * file. */
static void test_unreadable_ones_are_no_older_ones(void **state)
{
	double written[8];
	struct wlb_error error;
	char path[4096], file[4200], newest[4096];
	save_vector(state, 8, written, path);
	snprintf(file, sizeof(file), "%s/part_001/shard_00004.safetensors", path);
	assert_true(unlink(file) == 0 && symlink("shard_00004.safetensors", file) == 0);
	assert_int_equal(wlb_checkpoint_check_shards(path, 1, 2, &error), WLB_UNREADABLE);
	assert_says(error.message, "shard_00004.safetensors: Too many levels of symbolic links");
	snprintf(file, sizeof(file), "%s/part_001/index.json", path);
	assert_true(unlink(file) == 0 && symlink("index.json", file) == 0);
	assert_int_equal(wlb_checkpoint_newest_before(*state, INT64_MAX, newest, &error), WLB_UNREADABLE);
	assert_says(error.message, "part_001/index.json: cannot be opened: Too many levels");
	assert_int_equal(wlb_checkpoint_check_shards(path, 1, 2, &error), WLB_UNREADABLE);
}

/* Has the manifest list the size and checksum that the first index has. */
static void list_first_index(const char *path)
{
	struct wlb_checkpoint_facts facts = {0};
	struct wlb_weights weights = {0};
	struct wlb_error error;
	char file[4200];
	int64_t packer_bytes, written;
	size_t bytes;
	snprintf(file, sizeof(file), "%s/index.json", path);
	char *text = fixture_read(file, &bytes);
	assert_int_equal(wlb_manifest_read(path, &facts, &weights, &packer_bytes, &error), 0);
	weights.indexes[0].bytes = (int64_t)bytes;
	weights.indexes[0].checksum = wlb_element_checksum(text, 1, 0, (int64_t)bytes);
	assert_int_equal(wlb_manifest_write(path, &facts, &weights, packer_bytes, &written, &error), 0);
	wlb_weights_free(&weights);
	free(text);
}

/* Replaces `from` of the file by `to`, which must be refused for this reason, and writes it as it was. */
static void expect_change_refused(const char *path, const char *name, const char *const change[3])
{
	struct wlb_error error;
	char file[4200];
	size_t bytes;
	snprintf(file, sizeof(file), "%s/%s", path, name);
	char *good = fixture_read(file, &bytes), *at = strstr(good, change[0]);
	if (at == NULL)
		fail_msg("%s has no %s", name, change[0]);
	FILE *stream = fopen(file, "w");
	fprintf(stream, "%.*s%s%s", (int)(at - good), good, change[1], at + strlen(change[0]));
	fclose(stream);
	if (strcmp(name, "index.json") == 0)
		list_first_index(path);
	if (wlb_checkpoint_check(path, &error) == 0)
		fail_msg("%s instead of %s was believed", change[1], change[0]);
	assert_says(error.message, change[2]);
	stream = fopen(file, "w");
	fwrite(good, 1, bytes, stream);
	fclose(stream);
	free(good);
}

/* Of eight shards the last group has two. */
static void test_damaged_manifests(void **state)
{
	static const char *const cases[][3] = {
		{"\"index.json\"", "\"../index.json\"", "indexes[0]: it is '../index.json' of"},
		{"part_001/", "", "indexes[1]: it is 'index.json' of"},
		{"\"shards\": 3", "\"shards\": 2",
	         "indexes[0]: shards is 2: it must be 3, in the last group at most that"},
		{"\"shards\": 2", "\"shards\": 4", "indexes[2]: shards is 4"},
		{"\"shards\": 2", "\"shards\": 0", "indexes[2]: shards is 0"},
		{"\"shards\": 2", "\"shards\": 3", "part_002/index.json: it lists 2 shards: the manifest says 3"},
		{"\"shards\": 3", "\"shards\": \"3\"", "indexes[0]: "},
		{"3,\n   \"bytes\": ", "3, \"bytes\": 9", "index.json: has "},
		{"3,\n   \"bytes\": ", "3, \"bytes\": -", "indexes[0]: it is 'index.json' of -"},
		{"\"checksum\": \"", "\"checksum\": \"x", "indexes[0]: checksum is 'x"},
		{"\"indexes\": [", "\"indexes\": [], \"old\": [", "indexes must be a list of at least one"},
		{"\"indexes\": [", "\"indices\": [", "shards"},
		{"\n     3,\n     6\n", "\n     3,\n     5\n", "tensor vector: there is a gap"},
		{"[\n     2,", "[\n     3,", "tensor vector: blocks[2]: shard is 3: it must be one of the 3"},
		{"[\n     2,", "[\n     1,", "index.json: tensor vector: its blocks are others than the manifest says"},
	};
	double written[8];
	struct wlb_error error;
	char path[4096];
	save_vector(state, 8, written, path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_change_refused(path, "manifest.json", cases[i]);
	assert_int_equal(wlb_checkpoint_check(path, &error), 0);
}

/* An index as another writer may have written it: the manifest has its size and checksum. */
static void test_wrong_indexes(void **state)
{
	static const char *const cases[][3] = {
		{"shard_00000", "../hard_0", "index.json: shards[0] is '../hard_0.safetensors'"},
		{"\"checksum\"", "\"checksom\"", "index.json: shards[0] has no checksum"},
		{"\"tensors\"", "\"tensers\"", "index.json: "},
		{"{\"shards\"", "[\"shards\"", "index.json: line 1: "},
		{"[2,0,8", "[3,0,8", "tensor vector: blocks[2]: shard is 3: it must be one of the 3"},
		{"[8]", "[9]", "index.json: tensor vector: its blocks are others than the manifest says"},
		{",[2,0,8,0,1,2,3]", "", "index.json: tensor vector: its blocks are others than the manifest says"},
		{",[2,0,8,0,1,2,3]", ",[2,0,8,0,1,4,5]", "index.json: tensor vector: its blocks are others"},
		{"\"vector\"", "\"hector\"", "index.json: tensor vector: its blocks are others"},
		{"\"vector\"", "\"w\":{\"shape\":[1],\"blocks\":[[0,0,1,0,1]]},\"vector\"",
	         "index.json: tensor w: it has blocks that the manifest does not say"},
	};
	double written[8];
	char path[4096];
	struct wlb_error error;
	save_vector(state, 8, written, path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_change_refused(path, "index.json", cases[i]);
	list_first_index(path);
	assert_int_equal(wlb_checkpoint_check(path, &error), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_two_thousand_shards, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_any_layout_reads_any_other, setup_small, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_one_list_of_several_groups, setup_small, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_only_the_indexes_needed_are_read, setup_small, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_sums_find_a_damaged_shard, setup_small, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_elements_must_be_covered_once, setup_small, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_commit_needs_all_shards, setup_small, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_unreadable_ones_are_no_older_ones, setup_small, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_manifests, setup_small, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_wrong_indexes, setup_small, fixture_teardown),
	};
	return cmocka_run_group_tests_name("checkpoint_indexes", tests, NULL, NULL);
}
