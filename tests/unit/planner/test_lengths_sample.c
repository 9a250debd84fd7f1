#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/lengths_index.h"
#include "planner/lengths_sample.h"
#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"

/* FOLDER/x, the prefix of index_file_write's dataset. */
static const char *prefix(void **state)
{
	return fixture_path(state, "x");
}

static void reads_a_small_index_whole(void **state)
{
	struct index_file file;
	struct wlb_length_list list = {0}, all = {0};
	struct wlb_error error;
	int32_t lengths[3000];
	int64_t documents;
	size_t bytes;
	for (int i = 0; i < 3000; i++)
		lengths[i] = i % 700;
	index_file_init(&file, 8, 2, lengths, 3000);
	file.documents[1500] = 1501; /* one document of two sequences, then one of none */
	index_file_write(&file, state);
	char *data = fixture_read(fixture_path(state, "x.idx"), &bytes);
	assert_int_equal(wlb_length_list_parse_index(data, bytes, "x", &all, &error), 0);
	assert_int_equal(wlb_length_list_sample(prefix(state), &list, &documents, &error), 0);
	assert_int_equal(documents, 3000);
	assert_int_equal(list.count, all.count);
	assert_memory_equal(list.tokens, all.tokens, all.count * sizeof(*all.tokens));
	free(data);
	wlb_length_list_free(&list);
	wlb_length_list_free(&all);
}

static void put(int fd, const void *data, size_t bytes, int64_t at)
{
	assert_int_equal(pwrite(fd, data, bytes, at), bytes);
}

/* A file with holes: 20 GB that take no space, of which the first and the last documents have tokens. */
static void samples_a_dataset_of_a_billion_documents(void **state)
{
	const int64_t documents = 1000000000, lists = 34 + 12 * documents;
	struct wlb_length_list list = {0};
	struct wlb_error error;
	int64_t found;
	uint64_t counts[2] = {(uint64_t)documents, (uint64_t)documents + 1}, version = 1;
	int fd = open(fixture_path(state, "x.idx"), O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, lists + 8 * (documents + 1)), 0);
	put(fd, "MMIDIDX\0", 9, 0);
	put(fd, &version, sizeof(version), 9);
	put(fd, counts, sizeof(counts), 18);
	for (int64_t d = 0; d <= 1024; d++)
		put(fd, &d, sizeof(d), lists + 8 * d);
	for (int64_t d = documents - 1024; d <= documents; d++)
		put(fd, &d, sizeof(d), lists + 8 * d);
	int32_t length = 7, last = 11;
	for (int64_t d = 0; d < 1024; d++) {
		put(fd, &length, sizeof(length), 34 + 4 * d);
		put(fd, &last, sizeof(last), 34 + 4 * (documents - 1 - d));
	}
	close(fd);
	assert_int_equal(wlb_length_list_sample(prefix(state), &list, &found, &error), 0);
	assert_int_equal(found, documents);
	assert_true(list.count > WLB_SAMPLE_DOCUMENTS - 1024 && list.count <= WLB_SAMPLE_DOCUMENTS);
	assert_int_equal(list.tokens[0], 7);
	assert_int_equal(list.tokens[list.count - 1], 11);
	wlb_length_list_free(&list);
}

static void refuses_what_is_damaged(void **state)
{
	struct index_file file;
	struct wlb_length_list list = {0};
	struct wlb_error error;
	int32_t lengths[4] = {5, 6, 7, 8};
	int64_t documents;
	assert_int_equal(wlb_length_list_sample(prefix(state), &list, &documents, &error), -1);
	assert_says(error.message, "x.idx: cannot be opened");
	index_file_init(&file, 8, 2, lengths, 4);
	file.documents[2] = 3;
	file.documents[3] = 1;
	index_file_write(&file, state);
	assert_int_equal(wlb_length_list_sample(prefix(state), &list, &documents, &error), -1);
	assert_says(error.message, "must rise");
	index_file_init(&file, 8, 2, lengths, 4);
	file.sequence_count = 1 << 20;
	index_file_write(&file, state);
	assert_int_equal(wlb_length_list_sample(prefix(state), &list, &documents, &error), -1);
	assert_says(error.message, "it was cut");
	index_file_init(&file, 8, 2, lengths, 4);
	file.lengths[2] = -1;
	index_file_write(&file, state);
	assert_int_equal(wlb_length_list_sample(prefix(state), &list, &documents, &error), -1);
	assert_says(error.message, "sequence 2 has -1 tokens");
	fixture_write_text(state, "x.idx", "no index");
	assert_int_equal(wlb_length_list_sample(prefix(state), &list, &documents, &error), -1);
	assert_says(error.message, "is not the index");
	wlb_length_list_free(&list);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_a_small_index_whole),
		TEST(samples_a_dataset_of_a_billion_documents),
		TEST(refuses_what_is_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
