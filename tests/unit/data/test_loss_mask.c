/* PREFIX.loss_mask: read where it fits the dataset, refused where not, and replaced and removed with its dataset. */
#include <string.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"
#include "worker/data/dataset.h"
#include "worker/data/index_writer.h"

static const int32_t lengths[] = {3, 0, 1, 7, 2};
enum { DOCUMENTS = 5, TOKENS = 13 };
static const char mask[] = {0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1};

static void write_index(void **state)
{
	struct index_file f;
	index_file_init(&f, 8, 2, lengths, DOCUMENTS);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 100, state);
}

static struct wlb_dataset *open_dataset(void **state)
{
	struct wlb_error error;
	struct wlb_dataset *d;
	if (wlb_dataset_open(fixture_path(state, "x"), &d, &error) < 0)
		fail_msg("%s", error.message);
	return d;
}

static int64_t count_targets(const struct wlb_dataset *d)
{
	struct wlb_error error;
	return wlb_dataset_count_targets(d, &error);
}

static void tokens_that_do_not_count_are_no_targets(void **state)
{
	struct wlb_error error;
	int32_t targets[] = {10, 11, 12, 13, 14};
	write_index(state);
	fixture_write(state, "x.loss_mask", mask, TOKENS);
	struct wlb_dataset *d = open_dataset(state);
	assert_true(wlb_dataset_has_loss_mask(d));
	assert_int_equal(wlb_dataset_mask(d, 3, 1, 5, targets, &error), 3);
	static const int32_t expected[] = {10, -1, -1, 13, 14}; /* tokens 5 to 9 of the file */
	assert_memory_equal(targets, expected, sizeof(expected));
	assert_int_equal(wlb_dataset_mask(d, 0, 1, 2, NULL, &error), 2);
	assert_int_equal(count_targets(d), 2 + 4 + 1); /* of documents 0, 3 and 4, all but their first tokens */
	wlb_dataset_close(d);
}

static void all_tokens_count_without_a_mask(void **state)
{
	struct wlb_error error;
	int32_t targets[] = {10, 11};
	write_index(state);
	struct wlb_dataset *d = open_dataset(state);
	assert_false(wlb_dataset_has_loss_mask(d));
	assert_int_equal(wlb_dataset_mask(d, 3, 1, 2, targets, &error), 2);
	assert_int_equal(targets[0] + targets[1], 21);
	assert_int_equal(count_targets(d), 2 + 6 + 1);
	wlb_dataset_close(d);
}

/* Sequences that share a .bin, in another order than there. */
static void the_mask_is_in_the_order_of_bin(void **state)
{
	struct wlb_error error;
	struct index_file f;
	int32_t targets[6] = {0};
	index_file_init(&f, 8, 2, lengths, DOCUMENTS);
	f.entries = 2; /* one document of two sequences: the fourth and the first */
	f.document_count = 2;
	f.sequences = 2;
	f.sequence_count = 2;
	f.documents[1] = 2;
	f.lengths[0] = 7;
	f.lengths[1] = 3;
	f.pointers[0] = 8;
	f.pointers[1] = 0;
	index_file_write(&f, state);
	char tokens[2 * TOKENS] = {0};
	fixture_write(state, "x.bin", tokens, sizeof(tokens));
	fixture_write(state, "x.loss_mask", mask, TOKENS);
	struct wlb_dataset *d = open_dataset(state);
	assert_int_equal(wlb_dataset_mask(d, 0, 4, 6, targets, &error), 5);
	static const int32_t expected[] = {0, 0, 0, -1, 0, 0};
	assert_memory_equal(targets, expected, sizeof(expected));
	wlb_dataset_close(d);
}

static void a_mask_of_another_size_is_refused(void **state)
{
	struct wlb_error error;
	struct wlb_dataset *d;
	write_index(state);
	for (size_t bytes = TOKENS - 1; bytes <= TOKENS + 1; bytes += 2) {
		char wrong[TOKENS + 1] = {0};
		fixture_write(state, "x.loss_mask", wrong, bytes);
		assert_int_equal(wlb_dataset_open(fixture_path(state, "x"), &d, &error), -1);
		assert_says(error.message, "x.loss_mask: has ");
		assert_says(error.message, "and the dataset 13 tokens: it must have a byte for each");
	}
}

static void a_byte_that_is_neither_0_nor_1_is_refused(void **state)
{
	struct wlb_error error;
	char wrong[TOKENS];
	memcpy(wrong, mask, TOKENS);
	wrong[9] = 2;
	write_index(state);
	fixture_write(state, "x.loss_mask", wrong, TOKENS);
	struct wlb_dataset *d = open_dataset(state);
	assert_int_equal(wlb_dataset_mask(d, 3, 0, 7, NULL, &error), -1);
	assert_says(error.message, "x.loss_mask: byte 9 is 2: each must be 0 or 1");
	assert_int_equal(count_targets(d), -1);
	assert_int_equal(truncate(fixture_path(state, "x.loss_mask"), 5), 0);
	assert_int_equal(wlb_dataset_mask(d, 3, 0, 7, NULL, &error), -1);
	assert_says(error.message, "x.loss_mask");
	wlb_dataset_close(d);
}

/* A run that continues must have the same mask. */
static void the_mask_is_in_the_digest(void **state)
{
	struct wlb_error error;
	uint64_t digests[3];
	char other[TOKENS];
	memcpy(other, mask, TOKENS);
	other[12] = 0;
	write_index(state);
	for (int i = 0; i < 3; i++) {
		if (i > 0)
			fixture_write(state, "x.loss_mask", i == 1 ? mask : other, TOKENS);
		struct wlb_dataset *d = open_dataset(state);
		assert_int_equal(wlb_dataset_digest_tokens(d, &error), 0);
		digests[i] = wlb_dataset_token_digest(d);
		wlb_dataset_close(d);
	}
	assert_true(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
}

/* Writes a dataset of two documents, with a mask that is `value` everywhere; -1: without one. Returns of the commit. */
static int write_dataset(void **state, int value, struct wlb_error *error)
{
	static const int32_t tokens[] = {1, 2, 3}, length = 3;
	static const struct wlb_index_written nothing;
	const uint8_t own_mask[] = {(uint8_t)value, (uint8_t)value, (uint8_t)value};
	struct wlb_index_writer *w =
		wlb_index_writer_resume(fixture_path(state, "x"), WLB_INDEX_UINT16, value >= 0, &nothing, error);
	assert_non_null(w);
	for (int i = 0; i < 2; i++) {
		if (value >= 0)
			assert_int_equal(wlb_index_writer_add_mask(w, own_mask, 3, error), 0);
		assert_int_equal(wlb_index_writer_add(w, tokens, &length, 1, error), 0);
	}
	int rc = wlb_index_writer_commit(w, "{}", error);
	wlb_index_writer_free(w);
	return rc;
}

static void a_dataset_is_replaced_with_its_mask(void **state)
{
	static const struct {
		int value;
		int64_t counted;
	} builds[] = {{1, 4}, {0, 0}, {-1, 4}, {0, 0}, {1, 4}};
	struct wlb_error error;
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		assert_int_equal(write_dataset(state, builds[i].value, &error), 0);
		struct wlb_dataset *d = open_dataset(state);
		assert_int_equal(wlb_dataset_has_loss_mask(d), builds[i].value >= 0);
		assert_int_equal(count_targets(d), builds[i].counted);
		wlb_dataset_close(d);
		assert_int_equal(fixture_entries(*state), builds[i].value >= 0 ? 4 : 3);
	}
}

/* The index of the masked dataset is gone: the new one, which has no mask, must not find that of the old one. */
static void a_mask_without_an_index_is_removed(void **state)
{
	struct wlb_error error;
	assert_int_equal(write_dataset(state, 0, &error), 0);
	assert_int_equal(unlink(fixture_path(state, "x.idx")), 0);
	assert_int_equal(write_dataset(state, -1, &error), 0);
	assert_false(fixture_exists(fixture_path(state, "x.loss_mask")));
}

static int renames, failing; /* calls of rename so far; the number of the one that fails, from 1 on */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
	return ++renames == failing ? -1 : __real_rename(from, to);
}

static void the_old_mask_is_put_back(void **state)
{
	enum { OLD_FILES = 4 };
	struct wlb_error error;
	assert_int_equal(write_dataset(state, 1, &error), 0);
	for (int value = -1; value <= 0; value++)
		for (failing = 1; failing <= OLD_FILES + 3 + (value >= 0); failing++) {
			renames = 0;
			assert_int_equal(write_dataset(state, value, &error), -1);
			assert_null(strstr(error.message, "could not be put back"));
			struct wlb_dataset *d = open_dataset(state);
			assert_true(wlb_dataset_has_loss_mask(d));
			assert_int_equal(count_targets(d), 4);
			wlb_dataset_close(d);
			assert_int_equal(fixture_entries(*state), OLD_FILES);
		}
	failing = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tokens_that_do_not_count_are_no_targets, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(all_tokens_count_without_a_mask, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(the_mask_is_in_the_order_of_bin, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_mask_of_another_size_is_refused, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_byte_that_is_neither_0_nor_1_is_refused, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(the_mask_is_in_the_digest, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_dataset_is_replaced_with_its_mask, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_mask_without_an_index_is_removed, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(the_old_mask_is_put_back, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("loss_mask", tests, NULL, NULL);
}
