/* The words of Megatron-LM's --data-path, and the lengths of the documents of several datasets. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/blend.h"
#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"

static struct wlb_blend parse(char *const *words)
{
	struct wlb_blend blend = {0};
	struct wlb_error error;
	assert_int_equal(wlb_blend_parse(words, &blend, &error), 0);
	return blend;
}

static void words_are_read_as_megatron_reads_them(void **state)
{
	(void)state;
	struct wlb_blend one = parse((char *[]){"a", "--seed", "1", NULL});
	assert_true(one.count == 1 && !one.weighted);
	assert_string_equal(one.parts[0].prefix, "a");
	struct wlb_blend two = parse((char *[]){"0.3", "a", "7e-1", "b", "--seed", "1", NULL});
	assert_true(two.count == 2 && two.weighted);
	assert_string_equal(two.parts[1].prefix, "b");
	assert_true(two.parts[0].weight == 0.3 && two.parts[1].weight == 0.7);
	struct wlb_blend plain = parse((char *[]){"a", "b", NULL});
	assert_true(plain.count == 2 && !plain.weighted);
	struct wlb_blend odd = parse((char *[]){"1", "a", "b", NULL});
	assert_true(odd.count == 3 && !odd.weighted);
	struct wlb_blend none = parse((char *[]){"--seed", NULL});
	assert_int_equal(none.count, 0);
	struct wlb_blend *all[] = {&one, &two, &plain, &odd, &none};
	for (int i = 0; i < 5; i++)
		wlb_blend_free(all[i]);
}

/* Writes the index of `count` documents of so many tokens. Returns its prefix. */
static const char *documents(void **state, const char *name, int32_t tokens, int count)
{
	static struct index_file index;
	static int32_t lengths[INDEX_FILE_MAX - 1];
	char from[512], to[512];
	for (int i = 0; i < count; i++)
		lengths[i] = tokens;
	index_file_init(&index, 3, 4, lengths, count);
	index_file_write(&index, state);
	snprintf(from, sizeof(from), "%s.idx", fixture_path(state, "x"));
	snprintf(to, sizeof(to), "%s.idx", fixture_path(state, name));
	assert_int_equal(rename(from, to), 0);
	return fixture_path(state, name);
}

/* The share of the tokens that are in documents of so many. */
static double share_of(const struct wlb_blend *blend, int64_t tokens)
{
	struct wlb_length_list list = {0};
	struct wlb_error error;
	double sum = 0.0;
	assert_int_equal(wlb_blend_sample(blend, &list, &error), 0);
	for (size_t i = 0; i < list.count; i++)
		sum += list.tokens[i] == tokens ? (double)tokens : 0.0;
	double share = sum / (double)list.total_tokens;
	wlb_length_list_free(&list);
	return share;
}

static void each_dataset_has_its_share_of_the_tokens(void **state)
{
	const char *brief = documents(state, "brief", 100, 500), *lengthy = documents(state, "lengthy", 3000, 1000);
	struct wlb_blend weighted = parse((char *[]){"3", (char *)brief, "1", (char *)lengthy, NULL});
	assert_true(fabs(share_of(&weighted, 100) - 0.75) < 0.01);
	struct wlb_blend sized = parse((char *[]){(char *)brief, (char *)lengthy, NULL});
	assert_true(fabs(share_of(&sized, 100) - 50.0 / 3050.0) < 0.002);
	struct wlb_blend left_out = parse((char *[]){"0", (char *)brief, "1", (char *)lengthy, NULL});
	assert_true(share_of(&left_out, 100) == 0.0);
	wlb_blend_free(&weighted);
	wlb_blend_free(&sized);
	wlb_blend_free(&left_out);
}

static void what_cannot_be_read_is_named(void **state)
{
	const char *brief = documents(state, "brief", 100, 500);
	struct wlb_blend some = parse((char *[]){(char *)brief, "s3://bucket/web", NULL});
	struct wlb_blend all = parse((char *[]){(char *)brief, NULL});
	struct wlb_blend weightless = parse((char *[]){"0", (char *)brief, NULL});
	struct wlb_length_list list = {0};
	struct wlb_error error;
	assert_string_equal(wlb_blend_unreadable(&some), "s3://bucket/web");
	assert_null(wlb_blend_unreadable(&all));
	assert_int_equal(wlb_blend_sample(&some, &list, &error), -1);
	assert_says(error.message, "s3://bucket/web.idx: cannot be opened");
	assert_int_equal(wlb_blend_sample(&weightless, &list, &error), -1);
	assert_says(error.message, "no dataset has a weight above 0");
	wlb_blend_free(&some);
	wlb_blend_free(&all);
	wlb_blend_free(&weightless);
	wlb_length_list_free(&list);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_read_as_megatron_reads_them),
		TEST(each_dataset_has_its_share_of_the_tokens),
		TEST(what_cannot_be_read_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
