/* Several datasets with weights, and splits: which documents are trained, in which proportion, exactly resumed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"
#include "worker/data/dataset.h"
#include "worker/data/schedule.h"
#include "worker/data/split.h"

enum { SEQ_LENGTH = 16, PARTS = 3 };

static const char *const names[PARTS] = {"a", "b", "c"};
static char prefixes[PARTS][4096];

/* Writes FOLDER/NAME of `count` documents, of `length` tokens each. */
static void write_part(void **state, int part, int32_t length, int count)
{
	static struct index_file f;
	static int32_t lengths[INDEX_FILE_MAX];
	char to[4096];
	for (int i = 0; i < count; i++)
		lengths[i] = length;
	index_file_init(&f, 1, 1, lengths, count);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 100 + part, state);
	snprintf(prefixes[part], sizeof(prefixes[part]), "%s", fixture_path(state, names[part]));
	snprintf(to, sizeof(to), "%s.idx", prefixes[part]);
	assert_int_equal(rename(fixture_path(state, "x.idx"), to), 0);
	snprintf(to, sizeof(to), "%s.bin", prefixes[part]);
	assert_int_equal(rename(fixture_path(state, "x.bin"), to), 0);
}

/* Opens the parts; weights of NULL: without. */
static struct wlb_dataset *open_parts(const double *weights, int count, double from, double to)
{
	struct wlb_dataset_source sources[PARTS] = {{0}};
	struct wlb_error error;
	struct wlb_dataset *d;
	for (int i = 0; i < count; i++)
		sources[i] = (struct wlb_dataset_source){prefixes[i], weights != NULL ? weights[i] : 0.0};
	const struct wlb_dataset_choice choice = {sources, count, weights != NULL, from, to};
	if (wlb_dataset_open_parts(&choice, &d, &error) < 0)
		fail_msg("%s", error.message);
	return d;
}

static struct wlb_schedule *make_schedule(const struct wlb_dataset *d)
{
	struct wlb_error error;
	struct wlb_schedule *s = wlb_schedule_new(d, SEQ_LENGTH, 1, 5, &error);
	if (s == NULL)
		fail_msg("%s", error.message);
	return s;
}

static int part_of(const struct wlb_dataset *d, int64_t document)
{
	const char *path = wlb_dataset_path_of(d, document);
	return path[strlen(path) - strlen("a.bin")] - 'a';
}

/* The spans of steps of one full window each come from these parts: what build_blending_indices of megatron-core 0.16.1
 * returns for the weights. */
static void test_order_of_parts_is_megatrons(void **state)
{
	static const struct {
		double weights[PARTS];
		int count;
		const char *parts;
	} cases[] = {
		{{0.5, 0.3, 0.2}, 3, "0120102010012010201001201020100120102010"},
		{{7, 3}, 2, "0100100100010010010001001001000100100100"},
		{{1, 1, 8}, 3, "2022122222022212222202221222220222122222"},
		{{4, 4, 4}, 3, "0120120120120120120120120120120120120120"},
	};
	for (int i = 0; i < PARTS; i++)
		write_part(state, i, SEQ_LENGTH + 1, 5 + 3 * i);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct wlb_dataset *d = open_parts(cases[c].weights, cases[c].count, 0.0, 1.0);
		struct wlb_schedule *s = make_schedule(d);
		for (const char *part = cases[c].parts; *part != '\0'; part++) {
			struct wlb_error error;
			const struct wlb_span *spans;
			assert_int_equal(wlb_schedule_next(s, &spans, &error), 1);
			assert_int_equal(part_of(d, spans[0].document), *part - '0');
		}
		wlb_schedule_free(s);
		wlb_dataset_close(d);
	}
}

/* Documents of 1, 3 and 30 spans' worth of tokens: the tokens, not the documents or spans, have the weights' shares. */
static void test_shares_are_of_tokens(void **state)
{
	static const double weights[PARTS] = {0.2, 0.5, 0.3};
	int64_t tokens[PARTS] = {0}, all = 0;
	write_part(state, 0, 4, 300);
	write_part(state, 1, 3 * SEQ_LENGTH + 1, 200);
	write_part(state, 2, 12, 100);
	struct wlb_dataset *d = open_parts(weights, PARTS, 0.0, 1.0);
	struct wlb_schedule *s = make_schedule(d);
	for (int step = 0; step < 2000; step++) {
		struct wlb_error error;
		const struct wlb_span *spans;
		int count = wlb_schedule_next(s, &spans, &error);
		assert_true(count > 0);
		for (int i = 0; i < count; i++) {
			tokens[part_of(d, spans[i].document)] += spans[i].tokens;
			all += spans[i].tokens;
		}
	}
	for (int i = 0; i < PARTS; i++)
		assert_true(fabs((double)tokens[i] / (double)all - weights[i]) < 0.002);
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

/* Each span of a part is taken once before any is taken again, and in another order then; parts of weight 0 never.
 * Parts of one size have different orders. */
static void test_epochs_of_parts(void **state)
{
	enum { COUNT = 70 };
	static const double weights[PARTS] = {3.0, 0.0, 1.0};
	int order[2][COUNT], of_other[COUNT], taken = 0, others = 0, same = 0, alike = 0, was_taken[2][COUNT] = {{0}};
	for (int i = 0; i < PARTS; i++)
		write_part(state, i, SEQ_LENGTH + 1, COUNT);
	struct wlb_dataset *d = open_parts(weights, PARTS, 0.0, 1.0);
	assert_int_equal(wlb_dataset_documents(d), 2 * COUNT);
	struct wlb_schedule *s = make_schedule(d);
	while (taken < 2 * COUNT) {
		struct wlb_error error;
		const struct wlb_span *spans;
		assert_int_equal(wlb_schedule_next(s, &spans, &error), 1);
		int document = (int)spans[0].document;
		assert_int_not_equal(part_of(d, document), 1);
		if (document >= COUNT) {
			of_other[others++] = document - COUNT;
			continue;
		}
		assert_int_equal(was_taken[taken / COUNT][document]++, 0);
		order[taken / COUNT][taken % COUNT] = document;
		taken++;
	}
	for (int i = 0; i < COUNT; i++)
		same += order[0][i] == order[1][i];
	assert_true(same < COUNT / 4);
	assert_in_range(others, COUNT / 2, COUNT);
	for (int i = 0; i < others; i++)
		alike += order[0][i] == of_other[i];
	assert_true(alike < COUNT / 4);
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

/* Without weights the documents of all parts are one dataset, and each is trained once an epoch. */
static void test_without_weights(void **state)
{
	int was_taken[200] = {0};
	write_part(state, 0, SEQ_LENGTH + 1, 130);
	write_part(state, 1, SEQ_LENGTH + 1, 70);
	struct wlb_dataset *d = open_parts(NULL, 2, 0.0, 1.0);
	struct wlb_schedule *s = make_schedule(d);
	for (int i = 0; i < 200; i++) {
		struct wlb_error error;
		const struct wlb_span *spans;
		assert_int_equal(wlb_schedule_next(s, &spans, &error), 1);
		assert_int_equal(was_taken[spans[0].document]++, 0);
	}
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

static void test_restore_at_every_step(void **state)
{
	static const double weights[PARTS] = {0.6, 0.1, 0.3};
	struct wlb_error error;
	write_part(state, 0, 40, 30);
	write_part(state, 1, 7, 20);
	write_part(state, 2, 17, 10);
	struct wlb_dataset *d = open_parts(weights, PARTS, 0.0, 1.0);
	struct wlb_schedule *s = make_schedule(d);
	for (int step = 0; step < 300; step++) {
		struct wlb_schedule_state saved;
		const struct wlb_span *x, *y;
		wlb_schedule_save(s, &saved);
		struct wlb_schedule *resumed = make_schedule(d);
		assert_int_equal(wlb_schedule_restore(resumed, &saved, &error), 0);
		int count = wlb_schedule_next(s, &x, &error);
		assert_int_equal(wlb_schedule_next(resumed, &y, &error), count);
		assert_memory_equal(x, y, (size_t)count * sizeof(*x));
		wlb_schedule_free(resumed);
	}
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

static void expect_refused(struct wlb_schedule *s, const struct wlb_schedule_state *bad, const char *reason)
{
	struct wlb_error error;
	assert_int_equal(wlb_schedule_restore(s, bad, &error), -1);
	assert_says(error.message, reason);
}

static void test_other_blends_are_refused(void **state)
{
	static const double weights[PARTS] = {0.6, 0.1, 0.3}, others[PARTS] = {0.5, 0.2, 0.3};
	struct wlb_schedule_state good, bad;
	for (int i = 0; i < PARTS; i++)
		write_part(state, i, SEQ_LENGTH + 1, 20);
	struct wlb_dataset *d = open_parts(weights, PARTS, 0.0, 1.0), *other = open_parts(others, PARTS, 0.0, 1.0);
	struct wlb_schedule *s = make_schedule(d), *of_other = make_schedule(other);
	wlb_schedule_save(s, &good);
	expect_refused(of_other, &good, "whose index has the digest");
	bad = good;
	bad.taken[1] = 1;
	expect_refused(s, &bad, "the saved schedule has 3 datasets with weights");
	bad.taken[2] = -1;
	expect_refused(s, &bad, "the saved schedule has 3 datasets with weights");
	bad = good;
	bad.groups = 2;
	expect_refused(s, &bad, "the saved schedule has 2 datasets with weights");
	wlb_schedule_free(of_other);
	wlb_dataset_close(other);
	other = open_parts(NULL, PARTS, 0.0, 1.0);
	of_other = make_schedule(other);
	expect_refused(of_other, &good, "whose index has the digest");
	wlb_schedule_free(of_other);
	wlb_schedule_free(s);
	wlb_dataset_close(other);
	wlb_dataset_close(d);
}

/* The documents of the parts of a split are all documents, each once; half a document is rounded as by Python. */
static void test_splits(void **state)
{
	static const struct {
		const char *text;
		int ends[WLB_SPLIT_PARTS]; /* of 25 documents */
	} cases[] = {{"969,30,1", {24, 25, 25}},
	             {"90,10", {22, 25, 25}},
	             {"1", {25, 25, 25}},
	             {"0.5,0.25,0.25", {12, 19, 25}},
	             {"2,2,1", {10, 20, 25}}};
	write_part(state, 0, 30, 25);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct wlb_split split;
		struct wlb_error error;
		int begin = 0;
		assert_int_equal(wlb_split_parse(cases[c].text, &split, &error), 0);
		for (int part = 0; part < WLB_SPLIT_PARTS; part++) {
			struct wlb_dataset *d = open_parts(NULL, 1, split.from[part], split.to[part]);
			int documents = cases[c].ends[part] - begin;
			int32_t token = -1;
			assert_int_equal(wlb_dataset_documents(d), documents);
			assert_int_equal(wlb_dataset_tokens(d), 30 * documents);
			if (documents > 0) {
				assert_int_equal(wlb_dataset_read(d, 0, 0, 1, &token, &error), 0);
				assert_int_equal(token, 30 * begin % 100);
			}
			wlb_dataset_close(d);
			begin = cases[c].ends[part];
		}
	}
}

enum { SEQUENCES = 45, DOCUMENTS = 9 };

/* Document i has the i + 1 sequences after those of the documents before. Token i of the .bin is i modulo 250. */
static void write_sequences(int32_t lengths[SEQUENCES], void **state)
{
	static struct index_file f;
	for (int i = 0; i < SEQUENCES; i++)
		lengths[i] = 1 + i % 4;
	index_file_init(&f, 1, 1, lengths, SEQUENCES);
	f.entries = DOCUMENTS + 1;
	f.document_count = DOCUMENTS + 1;
	for (int i = 0; i <= DOCUMENTS; i++)
		f.documents[i] = i * (i + 1) / 2;
	index_file_write(&f, state);
	index_file_write_tokens(&f, 250, state);
	snprintf(prefixes[0], sizeof(prefixes[0]), "%s", fixture_path(state, "x"));
}

/* A split counts sequences, as that of Megatron-LM, whose documents they are: one that it cuts has in each part the
 * sequences of the part. The ends are those of megatron-core 0.16.1 for 45 sequences
 * (BlendedMegatronDatasetBuilder._build_megatron_dataset_splits). */
static void test_splits_count_sequences(void **state)
{
	static const struct {
		const char *text;
		int ends[WLB_SPLIT_PARTS];
	} cases[] = {{"969,30,1", {44, 45, 45}},      {"90,10", {40, 45, 45}}, {"1", {45, 45, 45}},
	             {"0.5,0.25,0.25", {22, 34, 45}}, {"2,2,1", {18, 36, 45}}, {"1,1", {22, 45, 45}}};
	int32_t lengths[SEQUENCES], tokens[64];
	struct wlb_error error;
	write_sequences(lengths, state);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct wlb_split split;
		int64_t place = 0; /* in .bin */
		int sequence = 0;
		assert_int_equal(wlb_split_parse(cases[c].text, &split, &error), 0);
		for (int part = 0; part < WLB_SPLIT_PARTS; part++) {
			struct wlb_dataset *d = open_parts(NULL, 1, split.from[part], split.to[part]);
			int64_t sum = 0, of_part = 0;
			for (int64_t i = 0; i < wlb_dataset_documents(d); i++) {
				int64_t length = wlb_dataset_length(d, i);
				assert_in_range(length, 1, 64);
				assert_int_equal(wlb_dataset_read(d, i, 0, length, tokens, &error), 0);
				for (int64_t t = 0; t < length; t++)
					assert_int_equal(tokens[t], (place + sum + t) % 250);
				sum += length;
			}
			for (; sequence < cases[c].ends[part]; sequence++)
				of_part += lengths[sequence];
			assert_int_equal(sum, of_part);
			assert_int_equal(wlb_dataset_tokens(d), of_part);
			assert_int_equal(wlb_dataset_max_token(d, 0, 1, &error), of_part > 0 ? place + sum - 1 : 0);
			place += sum;
			wlb_dataset_close(d);
		}
		assert_int_equal(sequence, SEQUENCES);
	}
}

/* Two ways to cut a document are two datasets, also where the documents are the same. */
static void test_cuts_of_a_document_have_digests(void **state)
{
	static struct index_file f;
	int32_t lengths[10];
	for (int i = 0; i < 10; i++)
		lengths[i] = 3;
	index_file_init(&f, 1, 1, lengths, 10);
	f.entries = f.document_count = 2;
	f.documents[1] = 10;
	index_file_write(&f, state);
	index_file_write_tokens(&f, 250, state);
	snprintf(prefixes[0], sizeof(prefixes[0]), "%s", fixture_path(state, "x"));
	struct wlb_dataset *a = open_parts(NULL, 1, 0.0, 0.5), *b = open_parts(NULL, 1, 0.0, 0.6);
	assert_int_equal(wlb_dataset_documents(a), wlb_dataset_documents(b));
	assert_int_not_equal(wlb_dataset_index_digest(a), wlb_dataset_index_digest(b));
	wlb_dataset_close(b);
	b = open_parts(NULL, 1, 0.5, 1.0);
	assert_int_not_equal(wlb_dataset_index_digest(a), wlb_dataset_index_digest(b));
	wlb_dataset_close(a);
	wlb_dataset_close(b);
}

static void test_splits_are_checked(void **state)
{
	static const char *const bad[] = {"", "x", "0", "0,1", "-1,2", "1,2,3,4", "1,", "1 2", "nan", "1,inf", "1,2x"};
	struct wlb_split split;
	struct wlb_error error;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wlb_split_parse(bad[i], &split, &error), -1);
		assert_says(error.message, "one to three numbers of 0 or more with commas between them");
	}
	(void)state;
}

static void test_parts_are_checked(void **state)
{
	static const struct wlb_dataset_source zeros[] = {{"a", 0.0}, {"b", 0.0}};
	struct wlb_error error;
	struct wlb_dataset *d;
	struct wlb_dataset_choice choice = {zeros, 2, true, 0.0, 1.0};
	assert_int_equal(wlb_dataset_open_parts(&choice, &d, &error), -1);
	assert_says(error.message, "the weights of the 2 datasets are all 0");
	choice.count = WLB_DATASET_PARTS_MAX + 1;
	assert_int_equal(wlb_dataset_open_parts(&choice, &d, &error), -1);
	assert_says(error.message, "257 datasets: a blend has 1 to 256");
	write_part(state, 0, 1, 20);
	write_part(state, 1, 30, 20);
	d = open_parts((const double[]){1.0, 1.0}, 2, 0.0, 1.0);
	assert_int_equal(wlb_schedule_check(d, &error), -1);
	assert_says(error.message, "no document of at least 2 tokens among its 20");
	assert_says(error.message, "a.bin");
	wlb_dataset_close(d);
}

/* The largest token is found by the share of the documents that has it. */
static void test_shares_of_tokens_are_read(void **state)
{
	struct wlb_error error;
	int64_t largest = 0;
	write_part(state, 0, 7, 23);
	write_part(state, 1, 9, 5);
	struct wlb_dataset *d = open_parts(NULL, 2, 0.0, 1.0);
	for (int share = 0; share < 30; share++) {
		int64_t found = wlb_dataset_max_token(d, share, 30, &error);
		assert_true(found >= 0);
		largest = found > largest ? found : largest;
	}
	assert_int_equal(largest, wlb_dataset_max_token(d, 0, 1, &error));
	assert_int_equal(largest, 99);
	wlb_dataset_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order_of_parts_is_megatrons, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_shares_are_of_tokens, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_epochs_of_parts, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_without_weights, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_restore_at_every_step, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_other_blends_are_refused, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_splits, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_splits_count_sequences, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_cuts_of_a_document_have_digests, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_parts_are_checked, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_shares_of_tokens_are_read, fixture_setup, fixture_teardown),
		cmocka_unit_test(test_splits_are_checked),
	};
	return cmocka_run_group_tests_name("data_blend", tests, NULL, NULL);
}
