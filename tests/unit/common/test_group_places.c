/* The members of communicators: against the ranks that share the coordinates in which the communicator does not differ.
 */
#include "common/group_places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 256 };

static const struct wlb_layout all = {.tp = 4, .cp = 2, .pp = 4, .dp = 2};

/* Writes "0,1,2" for the communicator of that name which the rank at `place` is in; "" where there is none. */
static const char *members(const struct wlb_layout *layout, const char *name, int ranks, int place)
{
	static char text[1024];
	struct wlb_group_id id;
	int places[MOST];
	text[0] = '\0';
	if (wlb_group_find(layout, name, ranks, place, &id) != 0)
		return text;
	wlb_group_members(layout, name, ranks, &id, places);
	for (int i = 0; i < ranks; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i > 0 ? "," : "", places[i]);
	return text;
}

static void test_members_of_each_kind(void **state)
{
	static const struct {
		const char *name;
		int ranks, place;
		const char *expected;
	} cases[] = {
		{"tp", 4, 6, "4,5,6,7"},
		{"kv", 2, 6, "6,7"},
		{"cp", 2, 6, "2,6"},
		{"dp", 2, 6, "6,38"},
		{"dp", 4, 6, "2,6,34,38"},
		{"data", 4, 6, "2,6,34,38"},
		{"tied", 2, 6, "6,30"},
		{"tied", 2, 14, ""}, /* of the second stage, which has neither embedding nor head */
		{"tied", 4, 14, "6,14,22,30"},
		{"pp 0>1", 2, 6, "6,14"},
		{"pp_back 1>0", 2, 6, "14,6"},
		{"pp 0>1", 2, 22, ""},
		{"pp 3>0", 2, 6, "30,6"},
		{"head 1>3", 2, 14, "14,30"},
		{"pp 0>4", 2, 6, ""},
		{"pp 1>1", 2, 14, ""},
		{"pp 0>1x", 2, 6, ""},
		{"pp", 2, 6, ""},
		{"unknown", 4, 6, ""},
		{"tpx", 4, 6, ""},
		{"kv", 3, 6, ""},
		{"tp", 0, 6, ""},
		{"tp", -4, 6, ""},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(members(&all, cases[i].name, cases[i].ranks, cases[i].place), cases[i].expected);
}

static void test_all_ranks(void **state)
{
	struct wlb_group_id id;
	int places[MOST];
	(void)state;
	assert_int_equal(wlb_group_find(&all, "world", 64, 37, &id), 0);
	assert_int_equal(id.kind, WLB_GROUP_WORLD);
	wlb_group_members(&all, "world", 64, &id, places);
	for (int i = 0; i < 64; i++)
		assert_int_equal(places[i], i);
	assert_int_equal(wlb_group_find(&all, "any name", 64, 37, &id), 0);
	assert_int_equal(id.first, 0);
}

/* Every member finds the same communicator, in which it is. */
static void test_members_agree(void **state)
{
	static const struct {
		const char *name;
		int ranks;
	} groups[] = {{"tp", 4}, {"kv", 2}, {"cp", 2}, {"dp", 2}, {"data", 4}, {"tied", 2}, {"tied", 4}, {"pp 2>3", 2}};
	(void)state;
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		for (int place = 0; place < 64; place++) {
			struct wlb_group_id id, other;
			int places[MOST], own = 0;
			if (wlb_group_find(&all, groups[g].name, groups[g].ranks, place, &id) != 0)
				continue;
			wlb_group_members(&all, groups[g].name, groups[g].ranks, &id, places);
			for (int i = 0; i < groups[g].ranks; i++) {
				own += places[i] == place;
				assert_int_equal(
					wlb_group_find(&all, groups[g].name, groups[g].ranks, places[i], &other), 0);
				assert_int_equal(other.first, id.first);
			}
			assert_int_equal(own, 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members_of_each_kind),
		cmocka_unit_test(test_all_ranks),
		cmocka_unit_test(test_members_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
