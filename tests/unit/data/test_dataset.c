/* .idx and .bin: what Megatron-LM writes is read, and nothing else is believed. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"
#include "worker/data/dataset.h"
#include "worker/data/input.h"

static const int32_t lengths[] = {3, 0, 1, 7, 2};
static const int documents = 5, all_tokens = 13;

static struct wlb_dataset *open_dataset(void **state, struct wlb_error *error)
{
	struct wlb_dataset *d;
	error->message[0] = '\0';
	int rc = wlb_dataset_open(fixture_path(state, "x"), &d, error);
	assert_int_equal(rc, d != NULL ? 0 : -1);
	return d;
}

static void expect_refused(void **state, const char *reason)
{
	struct wlb_error error;
	struct wlb_dataset *d = open_dataset(state, &error);
	assert_null(d);
	assert_says(error.message, reason);
	assert_says(error.message, fixture_path(state, "x."));
}

static struct wlb_dataset *open_good(void **state)
{
	struct wlb_error error;
	struct wlb_dataset *d = open_dataset(state, &error);
	if (d == NULL)
		fail_msg("%s", error.message);
	return d;
}

static void test_every_dtype(void **state)
{
	static const struct {
		uint8_t code;
		int bytes;
	} types[] = {{1, 1}, {2, 1}, {3, 2}, {4, 4}, {5, 8}, {8, 2}};
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		struct index_file f;
		struct wlb_error error;
		int32_t tokens[7];
		index_file_init(&f, types[t].code, types[t].bytes, lengths, documents);
		index_file_write(&f, state);
		index_file_write_tokens(&f, 100, state);
		struct wlb_dataset *d = open_good(state);
		assert_int_equal(wlb_dataset_documents(d), documents);
		assert_int_equal(wlb_dataset_tokens(d), all_tokens);
		for (int i = 0; i < documents; i++)
			assert_int_equal(wlb_dataset_length(d, i), lengths[i]);
		assert_int_equal(wlb_dataset_read(d, 3, 2, 5, tokens, &error), 0);
		for (int i = 0; i < 5; i++)
			assert_int_equal(tokens[i], 4 + 2 + i);
		assert_int_equal(wlb_dataset_max_token(d, 0, 1, &error), all_tokens - 1);
		wlb_dataset_close(d);
	}
}

static void test_uint16_is_not_signed(void **state)
{
	const int32_t one[] = {1};
	const uint16_t token = 65535;
	int32_t read;
	struct wlb_error error;
	struct index_file f;
	index_file_init(&f, 8, 2, one, 1);
	index_file_write(&f, state);
	fixture_write(state, "x.bin", &token, sizeof(token));
	struct wlb_dataset *d = open_good(state);
	assert_int_equal(wlb_dataset_read(d, 0, 0, 1, &read, &error), 0);
	assert_int_equal(read, 65535);
	wlb_dataset_close(d);
}

static void test_documents_of_several_sequences_are_joined(void **state)
{
	struct index_file f;
	struct wlb_error error;
	int32_t tokens[13];
	index_file_init(&f, 8, 2, lengths, documents);
	f.entries = 3; /* documents {0, 1, 2, 3} and {4} */
	f.document_count = 3;
	f.documents[1] = 4;
	f.documents[2] = 5;
	index_file_write(&f, state);
	index_file_write_tokens(&f, 1000, state);
	struct wlb_dataset *d = open_good(state);
	assert_int_equal(wlb_dataset_documents(d), 2);
	assert_int_equal(wlb_dataset_length(d, 0), 11);
	for (int start = 0; start < 11; start++) {
		memset(tokens, -1, sizeof(tokens));
		assert_int_equal(wlb_dataset_read(d, 0, start, 11 - start, tokens, &error), 0);
		for (int i = 0; i < 11 - start; i++)
			assert_int_equal(tokens[i], start + i);
		assert_int_equal(tokens[11 - start], -1);
	}
	wlb_dataset_close(d);
}

static void test_long_documents_are_read_in_chunks(void **state)
{
	const int32_t one[] = {20000};
	static int32_t tokens[20000];
	struct wlb_error error;
	struct index_file f;
	index_file_init(&f, 4, 4, one, 1);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 1 << 30, state);
	struct wlb_dataset *d = open_good(state);
	assert_int_equal(wlb_dataset_read(d, 0, 1, 19999, tokens, &error), 0);
	for (int i = 0; i < 19999; i++)
		assert_int_equal(tokens[i], i + 1);
	assert_int_equal(wlb_dataset_max_token(d, 0, 1, &error), 19999);
	wlb_dataset_close(d);
}

static void test_empty_dataset_and_modes(void **state)
{
	struct index_file f;
	index_file_init(&f, 8, 2, lengths, 0);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 1, state);
	struct wlb_dataset *d = open_good(state);
	assert_int_equal(wlb_dataset_documents(d), 0);
	wlb_dataset_close(d);
	index_file_init(&f, 8, 2, lengths, documents);
	f.modes = documents; /* a multimodal dataset: text with one more array */
	index_file_write(&f, state);
	index_file_write_tokens(&f, 1, state);
	wlb_dataset_close(open_good(state));
}

static void test_truncated_at_every_byte(void **state)
{
	struct index_file f;
	index_file_init(&f, 8, 2, lengths, documents);
	index_file_write_tokens(&f, 100, state);
	long bytes = index_file_write(&f, state);
	for (long cut = bytes - 1; cut >= 0; cut--) {
		assert_int_equal(truncate(fixture_path(state, "x.idx"), cut), 0);
		expect_refused(state, "x.idx");
	}
}

static void test_truncated_bin(void **state)
{
	struct index_file f;
	index_file_init(&f, 8, 2, lengths, documents);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 100, state);
	assert_int_equal(truncate(fixture_path(state, "x.bin"), 2 * all_tokens - 1), 0);
	expect_refused(state, "sequence 4 lies at byte 22 with 2 tokens");
}

static void test_bin_of_a_longer_build(void **state)
{
	struct index_file f;
	index_file_init(&f, 8, 2, lengths, documents);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 100, state);
	assert_int_equal(truncate(fixture_path(state, "x.bin"), 2 * all_tokens + 2), 0);
	expect_refused(state, "x.idx: the last sequence ends at byte 26, but ");
	expect_refused(state, "x.bin has 28 bytes: it is of another build");
	f.documents[2] = -1; /* an error that comes after */
	index_file_write(&f, state);
	expect_refused(state, "x.idx: the last sequence ends at byte 26, but ");
	f.lengths[1] = -1; /* and one that comes before */
	index_file_write(&f, state);
	expect_refused(state, "x.idx: length of sequence 1 is -1");
}

/* A split or a filter may make an index of some sequences, and leave the .bin as it is. */
static void test_index_of_a_part(void **state)
{
	static const int32_t some[] = {3, 7};
	struct index_file f;
	index_file_init(&f, 8, 2, lengths, documents);
	index_file_write_tokens(&f, 100, state);
	index_file_init(&f, 8, 2, some, 2);
	f.pointers[1] = 4 * 2;
	index_file_write(&f, state);
	struct wlb_dataset *d = open_good(state);
	assert_int_equal(wlb_dataset_tokens(d), 10);
	wlb_dataset_close(d);
}

static void test_missing_files(void **state)
{
	struct index_file f;
	expect_refused(state, "x.idx: cannot be opened: No such file");
	index_file_init(&f, 8, 2, lengths, documents);
	index_file_write(&f, state);
	expect_refused(state, "x.bin: cannot be opened: No such file");
}

/* One damaged field at a time. */
static void damage_magic(struct index_file *f)
{
	f->magic[8] = 1;
}
static void damage_version(struct index_file *f)
{
	f->version = 2;
}
static void damage_dtype(struct index_file *f)
{
	f->dtype = 7;
}
static void damage_sequence_count(struct index_file *f)
{
	f->sequence_count = UINT64_MAX / 12 + 2; /* 12 times it wraps to a small number */
}
static void damage_document_count(struct index_file *f)
{
	f->document_count = UINT64_C(1) << 61;
}
static void damage_no_documents(struct index_file *f)
{
	f->document_count = 0;
}
static void damage_extra_bytes(struct index_file *f)
{
	f->modes = 3;
}
static void damage_length(struct index_file *f)
{
	f->lengths[2] = -1;
}
static void damage_pointer(struct index_file *f)
{
	f->pointers[3] = INT64_MAX - 1;
}
static void damage_negative_pointer(struct index_file *f)
{
	f->pointers[3] = -2;
}
static void damage_first_document(struct index_file *f)
{
	f->documents[0] = 1;
}
static void damage_document_order(struct index_file *f)
{
	f->documents[2] = -1;
}
static void damage_last_document(struct index_file *f)
{
	f->documents[5] = 6;
}

static const struct {
	void (*damage)(struct index_file *);
	const char *reason;
} damages[] = {
	{damage_magic, "magic is not MMIDIDX"},
	{damage_version, "version is 2: it must be 1"},
	{damage_dtype, "dtype code is 7"},
	{damage_sequence_count, "sequence count is 1537228672809129303"},
	{damage_document_count, "document count is 2305843009213693952"},
	{damage_no_documents, "document count is 0"},
	{damage_extra_bytes, "need 142"},
	{damage_length, "length of sequence 2 is -1"},
	{damage_pointer, "sequence 3 lies at byte 9223372036854775806"},
	{damage_negative_pointer, "sequence 3 lies at byte -2"},
	{damage_first_document, "the first document starts at sequence 1"},
	{damage_document_order, "document 1 ends at sequence -1"},
	{damage_last_document, "the last document ends at sequence 6"},
};

static void test_damaged_fields(void **state)
{
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct index_file f;
		index_file_init(&f, 8, 2, lengths, documents);
		index_file_write_tokens(&f, 100, state);
		damages[i].damage(&f);
		index_file_write(&f, state);
		expect_refused(state, damages[i].reason);
	}
}

/* Checks the index of FOLDER/x in shares, as the ranks of a node do, and returns the first error in `message`. */
static void check_in_shares(void **state, int shares, char message[sizeof(struct wlb_error)])
{
	struct wlb_error error;
	struct wlb_dataset *d;
	struct wlb_dataset_check found, first = {.place = INFINITY};
	char prefix[4096];
	snprintf(prefix, sizeof(prefix), "%s", fixture_path(state, "x"));
	const struct wlb_dataset_source source = {.prefix = prefix};
	const struct wlb_dataset_choice choice = {.sources = &source, .count = 1, .to = 1.0};
	assert_int_equal(wlb_dataset_open_unchecked(&choice, &d, &error), 0);
	for (int share = shares - 1; share >= 0; share--) { /* the last one is found first */
		wlb_dataset_check(d, share, shares, &found);
		double has_gaps = fmax(first.has_gaps[0], found.has_gaps[0]);
		if (found.place < first.place)
			first = found;
		first.has_gaps[0] = has_gaps;
	}
	wlb_dataset_check_ends(d, &first);
	snprintf(message, sizeof(struct wlb_error), "%s", first.place < INFINITY ? first.error.message : "");
	if (first.place == INFINITY)
		assert_int_equal(wlb_dataset_choose(d, &choice, &error), 0);
	wlb_dataset_close(d);
}

/* Any number of processes finds of any index what one finds. */
static void expect_the_same_in_shares(void **state)
{
	char message[sizeof(struct wlb_error)];
	struct wlb_error error;
	struct wlb_dataset *d = open_dataset(state, &error);
	for (int shares = 1; shares <= 8; shares++) {
		check_in_shares(state, shares, message);
		assert_string_equal(message, d == NULL ? error.message : "");
	}
	wlb_dataset_close(d);
}

static void test_shares_find_what_one_process_finds(void **state)
{
	enum { COUNT = 12, TRIALS = 400 };
	static struct index_file f;
	int32_t some[COUNT];
	uint32_t random = 7;
	int refused = 0;
	for (int i = 0; i < COUNT; i++)
		some[i] = i % 5;
	for (int trial = 0; trial < TRIALS; trial++) {
		index_file_init(&f, 8, 2, some, COUNT);
		index_file_write_tokens(&f, 100, state);
		for (int damages_left = trial % 3; damages_left > 0; damages_left--) {
			random = random * 1664525 + 1013904223;
			int entry = (int)(random >> 8) % COUNT, kind = (int)(random >> 28) % 4;
			f.lengths[entry] = kind == 0 ? -1 : f.lengths[entry];
			f.pointers[entry] += kind == 1 ? -2 : kind == 2 ? 1000 : 0;
			f.documents[entry + 1] -= kind == 3 ? 3 : 0;
		}
		index_file_write(&f, state);
		if (trial % 7 == 0)
			assert_int_equal(truncate(fixture_path(state, "x.bin"), 100), 0);
		expect_the_same_in_shares(state);
		struct wlb_error error;
		struct wlb_dataset *d = open_dataset(state, &error);
		refused += d == NULL;
		wlb_dataset_close(d);
	}
	assert_in_range(refused, TRIALS / 4, TRIALS * 3 / 4);
}

/* The process that has checked share 0 has the digest, and the others say that they do not know it. */
static void test_the_first_share_has_the_digest(void **state)
{
	struct index_file f;
	struct wlb_error error;
	struct wlb_dataset *d, *whole;
	struct wlb_dataset_check check;
	index_file_init(&f, 8, 2, lengths, documents);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 100, state);
	whole = open_good(state);
	char prefix[4096];
	snprintf(prefix, sizeof(prefix), "%s", fixture_path(state, "x"));
	const struct wlb_dataset_source source = {.prefix = prefix};
	const struct wlb_dataset_choice choice = {.sources = &source, .count = 1, .to = 1.0};
	for (int share = 0; share < 2; share++) {
		assert_int_equal(wlb_dataset_open_unchecked(&choice, &d, &error), 0);
		wlb_dataset_check(d, share, 2, &check);
		assert_int_equal(wlb_dataset_choose(d, &choice, &error), 0);
		assert_int_equal(wlb_dataset_documents(d), documents);
		assert_int_equal(wlb_dataset_tokens(d), all_tokens);
		assert_true(wlb_dataset_index_digest(d) == (share == 0 ? wlb_dataset_index_digest(whole) : 0));
		wlb_dataset_close(d);
	}
	wlb_dataset_close(whole);
}

static void test_bin_cut_while_open(void **state)
{
	struct index_file f;
	struct wlb_error error;
	int32_t tokens[7];
	index_file_init(&f, 8, 2, lengths, documents);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 100, state);
	struct wlb_dataset *d = open_good(state);
	assert_int_equal(truncate(fixture_path(state, "x.bin"), 10), 0);
	assert_int_equal(wlb_dataset_read(d, 3, 0, 7, tokens, &error), -1);
	assert_says(error.message, "x.bin: ends at byte 10");
	assert_int_equal(wlb_dataset_max_token(d, 0, 1, &error), -1);
	wlb_dataset_close(d);
}

/* A link to itself cannot be opened now, which says nothing about the file. A file that is missing, or that this user
 * may not read, is bad input. */
static void test_files_that_cannot_be_read_now(void **state)
{
	static const char *const names[] = {"x.bin", "x.idx"};
	struct wlb_error error;
	struct wlb_dataset *d;
	struct index_file f;
	index_file_init(&f, 4, 4, lengths, documents);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 100, state);
	for (int i = 0; i < 2; i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s", fixture_path(state, names[i]));
		assert_int_equal(unlink(path), 0);
		assert_int_equal(wlb_dataset_open(fixture_path(state, "x"), &d, &error), -1);
		assert_int_equal(symlink(names[i], path), 0);
		assert_int_equal(wlb_dataset_open(fixture_path(state, "x"), &d, &error), WLB_UNREADABLE);
		assert_null(d);
		assert_says(error.message, names[i]);
		assert_says(error.message, "Too many levels of symbolic links");
	}
}

static void test_bad_tokens(void **state)
{
	const int32_t two[] = {2};
	const int64_t large[] = {7, INT64_C(1) << 31}, negative[] = {-1, 7};
	int32_t tokens[2];
	struct wlb_error error;
	struct index_file f;
	index_file_init(&f, 5, 8, two, 1);
	index_file_write(&f, state);
	fixture_write(state, "x.bin", large, sizeof(large));
	struct wlb_dataset *d = open_good(state);
	assert_int_equal(wlb_dataset_read(d, 0, 0, 2, tokens, &error), -1);
	assert_says(error.message, "token 1 of sequence 0 is 2147483648");
	assert_int_equal(wlb_dataset_read(d, 0, 0, 1, tokens, &error), 0);
	fixture_write(state, "x.bin", negative, sizeof(negative));
	assert_int_equal(wlb_dataset_max_token(d, 0, 1, &error), -1);
	assert_says(error.message, "token 0 of sequence 0 is -1");
	wlb_dataset_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_dtype, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_uint16_is_not_signed, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_documents_of_several_sequences_are_joined, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_long_documents_are_read_in_chunks, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_empty_dataset_and_modes, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_truncated_at_every_byte, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_truncated_bin, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_bin_of_a_longer_build, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_index_of_a_part, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_missing_files, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_fields, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_shares_find_what_one_process_finds, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_the_first_share_has_the_digest, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_bin_cut_while_open, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_files_that_cannot_be_read_now, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_bad_tokens, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("dataset", tests, NULL, NULL);
}
