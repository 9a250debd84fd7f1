/* Every bound of the activities in a report. */
#include "coordinator/wlbd/api/reports/activity_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/http/fields.h"
#include "tests/unit/wlbd/api/reports/report_entries.h"

#define GROUPS "[[\"tp\",2,1234,1233],[\"dp.0-1_X\",4,96,96]]"
#define CALL "{\"kind\":\"all_gather\",\"group\":1,\"seq\":96,\"bytes\":65536,\"for_s\":0.25}"
#define ENTRY                                                                                                          \
	"{\"rank\":3,\"step\":41,\"work\":0.125,\"activity\":\"computing\",\"for_s\":0.5,\"process\":\"stopped\","     \
	"\"call\":" CALL ",\"groups\":" GROUPS "}"

static void test_an_entry(void **state)
{
	struct wlbd_activity activity;
	struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX];
	struct wlb_error error;
	json_t *entry = entry_parse(ENTRY);
	(void)state;
	assert_int_equal(wlbd_activity_read(entry, &activity, groups, &error), 0);
	assert_int_equal(activity.rank, 3);
	assert_int_equal(activity.step, 41);
	assert_true(activity.work == 0.125);
	assert_string_equal(wlbd_activity_names[activity.kind], "computing");
	assert_true(activity.for_s == 0.5);
	assert_int_equal(activity.process, WLBD_PROCESS_STOPPED);
	assert_true(activity.is_in_call);
	assert_string_equal(wlbd_call_kind_names[activity.call.kind], "all_gather");
	assert_int_equal(activity.call.group, 1);
	assert_int_equal(activity.call.seq, 96);
	assert_int_equal(activity.call.bytes, 65536);
	assert_true(activity.call.for_s == 0.25);
	assert_int_equal(activity.group_count, 2);
	assert_string_equal(groups[0].name, "tp");
	assert_int_equal(groups[0].ranks, 2);
	assert_int_equal(groups[0].entered, 1234);
	assert_int_equal(groups[0].left, 1233);
	assert_string_equal(groups[1].name, "dp.0-1_X");
	json_decref(entry);
}

static int read_one(const json_t *entry, struct wlb_error *error)
{
	struct wlbd_activity activity;
	struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX];
	return wlbd_activity_read(entry, &activity, groups, error);
}

/* Reads the entry with another value of a member of it, or with "call." of its call. `word` NULL: it is accepted. */
static void expect(const char *member, const char *value, const char *word)
{
	json_t *entry = entry_parse(ENTRY);
	const char *in_call = strncmp(member, "call.", 5) == 0 ? member + 5 : NULL;
	if (in_call != NULL)
		json_object_set_new(json_object_get(entry, "call"), in_call, entry_parse(value));
	else
		json_object_set_new(entry, member, entry_parse(value));
	entry_expect(read_one, entry, member, value, word);
}

struct bound {
	const char *member, *value, *word; /* word NULL: accepted; else in the message */
};

static void expect_all(const struct bound *bounds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect(bounds[i].member, bounds[i].value, bounds[i].word);
}

static void test_bounds_of_members(void **state)
{
	static const struct bound bounds[] = {
		{"rank", "0", NULL},
		{"rank", "1048576", NULL},
		{"rank", "1048577", "'rank': 1048577"},
		{"rank", "-1", "'rank': -1"},
		{"rank", "1.5", "'rank': 1.5"},
		{"rank", "\"0\"", "'rank'"},
		{"rank", "null", "'rank': is missing"},
		{"step", "0", NULL},
		{"step", "1000000000000", NULL},
		{"step", "1000000000001", "'step': 1000000000001"},
		{"step", "-1", "'step': -1"},
		{"step", "null", "'step': is missing"},
		{"activity", "\"starting\"", NULL},
		{"activity", "\"loading\"", NULL},
		{"activity", "\"saving\"", NULL},
		{"activity", "\"evaluating\"", NULL},
		{"activity", "\"ending\"", NULL},
		{"activity", "\"sleeping\"", "'activity': \"sleeping\" must be one of starting, loading"},
		{"activity", "2", "'activity'"},
		{"activity", "null", "'activity': is missing"},
		{"for_s", "0", NULL},
		{"for_s", "1e7", NULL},
		{"for_s", "1.00001e7", "'for_s': 10000100.0 must be"},
		{"for_s", "-0.001", "'for_s': -0.001"},
		{"for_s", "\"1\"", "'for_s'"},
		{"for_s", "null", "'for_s': is missing"},
		{"work", "null", NULL},
		{"work", "0", NULL},
		{"work", "1e30", NULL},
		{"work", "1.1e30", "'work': 1.1e30"},
		{"work", "-1", "'work': -1"},
		{"work", "\"1\"", "'work'"},
		{"process", "\"running\"", NULL},
		{"process", "\"gone\"", NULL},
		{"process", "\"zombie\"", "'process': \"zombie\""},
		{"process", "null", "'process': is missing"},
		{"call", "null", NULL},
		{"call", "[]", "'call': [] must be an object"},
		{"groups", "null", "call: field 'group': the rank has no groups"},
		{"groups", "{}", "'groups'"},
	};
	(void)state;
	expect_all(bounds, sizeof(bounds) / sizeof(bounds[0]));
}

static void test_bounds_of_a_call(void **state)
{
	static const struct bound bounds[] = {
		{"call.kind", "\"all_reduce\"", NULL},
		{"call.kind", "\"all_reduce_double\"", NULL},
		{"call.kind", "\"reduce_scatter\"", NULL},
		{"call.kind", "\"send\"", NULL},
		{"call.kind", "\"recv\"", NULL},
		{"call.kind", "\"barrier\"", "call: field 'kind': \"barrier\""},
		{"call.kind", "null", "call: field 'kind': is missing"},
		{"call.group", "0", NULL},
		{"call.group", "2", "call: field 'group': 2 must be a whole number from 0 to 1"},
		{"call.group", "-1", "call: field 'group': -1"},
		{"call.group", "null", "call: field 'group': is missing"},
		{"call.seq", "0", NULL},
		{"call.seq", "1000000000000000", NULL},
		{"call.seq", "1000000000000001", "call: field 'seq': 1000000000000001"},
		{"call.seq", "-1", "call: field 'seq': -1"},
		{"call.seq", "null", "call: field 'seq': is missing"},
		{"call.bytes", "0", NULL},
		{"call.bytes", "1000000000000000000", NULL},
		{"call.bytes", "1000000000000000001", "call: field 'bytes': 1000000000000000001"},
		{"call.bytes", "-1", "call: field 'bytes': -1"},
		{"call.bytes", "null", "call: field 'bytes': is missing"},
		{"call.for_s", "1e7", NULL},
		{"call.for_s", "1.1e7", "call: field 'for_s': 11000000.0"},
		{"call.for_s", "-1", "call: field 'for_s': -1"},
		{"call.for_s", "null", "call: field 'for_s': is missing"},
	};
	(void)state;
	expect_all(bounds, sizeof(bounds) / sizeof(bounds[0]));
}

static void test_corruption(void **state)
{
	struct wlbd_activity activity;
	struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX];
	static const struct bound bounds[] = {
		{"corruption", "null", NULL},
		{"corruption", "{\"step\":1000000000000,\"suspects\":1048576,\"first\":1048576,\"other\":0}", NULL},
		{"corruption", "[]", "'corruption': [] must be an object"},
		{"corruption", "{}", "corruption: field 'step': is missing"},
		{"corruption", "{\"step\":-1,\"suspects\":1,\"first\":0,\"other\":0}", "corruption: field 'step': -1"},
		{"corruption", "{\"step\":1,\"suspects\":0,\"first\":0,\"other\":0}",
	         "corruption: field 'suspects': 0"},
		{"corruption", "{\"step\":1,\"suspects\":1,\"first\":-1,\"other\":0}", "corruption: field 'first': -1"},
		{"corruption", "{\"step\":1,\"suspects\":1,\"first\":0,\"other\":1048577}",
	         "corruption: field 'other': 1048577"},
		{"corruption", "{\"step\":1,\"suspects\":1,\"first\":0}", "corruption: field 'other': is missing"},
	};
	(void)state;
	expect_all(bounds, sizeof(bounds) / sizeof(bounds[0]));
	json_t *entry = entry_parse(ENTRY);
	assert_int_equal(wlbd_activity_read(entry, &activity, groups, NULL), 0);
	assert_int_equal(activity.corruption.suspects, 0);
	json_object_set_new(entry, "corruption", entry_parse("{\"step\":40,\"suspects\":2,\"first\":0,\"other\":1}"));
	assert_int_equal(wlbd_activity_read(entry, &activity, groups, NULL), 0);
	assert_int_equal(activity.corruption.step, 40);
	assert_int_equal(activity.corruption.suspects, 2);
	assert_int_equal(activity.corruption.first, 0);
	assert_int_equal(activity.corruption.other, 1);
	json_decref(entry);
}

static void test_bounds_of_groups(void **state)
{
	static const struct bound bounds[] = {
		{"groups", "[[\"fifteen_letters\",1,0,0],[\"a\",1048576,1000000000000000,1000000000000000]]", NULL},
		{"groups", "[[\"sixteen_letters_\",1,0,0],[\"a\",1,1,1]]", "groups[0]: name: \"sixteen_letters_\""},
		{"groups", "[[\"a\",1,0,0],[\"\",1,1,1]]",
	         "groups[1]: name: \"\" must be 1 to 15 printable characters"},
		{"groups", "[[\"a\\\"b\",1,0,0]]", "groups[0]: name: \"a\\\"b\""},
		{"groups", "[[\"a\\\\b\",1,0,0]]", "groups[0]: name: \"a\\\\b\""},
		{"groups", "[[\"a\\u001b[2J\",1,0,0]]", "groups[0]: name: \"a\\u001B[2J\""},
		{"groups", "[[\"\xc3\xa4\",1,0,0]]", "groups[0]: name: \"\\u00E4\""},
		{"groups", "[[7,1,0,0]]", "groups[0]: name: 7"},
		{"groups", "[[\"a\",0,0,0]]", "groups[0]: ranks: 0 must be a whole number from 1 to 1048576"},
		{"groups", "[[\"a\",1048577,0,0]]", "groups[0]: ranks: 1048577"},
		{"groups", "[[\"a\",1.0,0,0]]", "groups[0]: ranks: 1.0"},
		{"groups", "[[\"a\",1,-1,0]]", "groups[0]: entered: -1"},
		{"groups", "[[\"a\",1,1000000000000001,0]]", "groups[0]: entered: 1000000000000001"},
		{"groups", "[[\"a\",1,5,6]]", "groups[0]: left: 6 must be a whole number from 0 to 5"},
		{"groups", "[[\"a\",1,5,-1]]", "groups[0]: left: -1"},
		{"groups", "[[\"a\",1,5]]", "groups[0]: group: [\"a\",1,5] must be an array of name"},
		{"groups", "[[\"a\",1,5,5,5]]", "groups[0]: group"},
		{"groups", "[{}]", "groups[0]: group: {}"},
	};
	(void)state;
	expect_all(bounds, sizeof(bounds) / sizeof(bounds[0]));
}

static void test_number_of_groups(void **state)
{
	(void)state;
	for (int count = WLBD_ACTIVITY_GROUPS_MAX; count <= WLBD_ACTIVITY_GROUPS_MAX + 1; count++) {
		char text[512];
		entry_write_groups(text, sizeof(text), count, "2,3,3");
		expect("groups", text, count == WLBD_ACTIVITY_GROUPS_MAX ? NULL : "'groups'");
	}
}

static int check(json_t *list, struct wlb_error *error)
{
	return entries_check(wlbd_activities_check, "activities", list, error);
}

static json_t *entry_of(int rank)
{
	json_t *entry = entry_parse(ENTRY);
	json_object_set_new(entry, "rank", json_integer(rank));
	return entry;
}

static void test_the_list(void **state)
{
	struct wlb_error error = {0};
	(void)state;
	assert_int_equal(check(json_null(), &error), 0);
	assert_int_equal(check(json_array(), &error), 0);
	assert_int_equal(check(json_object(), &error), -1);
	assert_non_null(strstr(error.message, "'activities'"));
	assert_int_equal(check(json_pack("[o, o]", entry_of(7), entry_of(3)), &error), 0);
	assert_int_equal(check(json_pack("[o, o, o]", entry_of(7), entry_of(3), entry_of(7)), &error), -1);
	assert_string_equal(error.message, "field 'activities': rank 7 is listed twice; list each rank once");
	assert_int_equal(check(json_pack("[o, i]", entry_of(7), 3), &error), -1);
	assert_string_equal(error.message, "activities[1]: entry: 3 must be an object");
	assert_int_equal(check(json_pack("[o, o]", entry_of(7), entry_of(-1)), &error), -1);
	assert_non_null(strstr(error.message, "activities[1]: field 'rank': -1"));
}

static void test_length_of_the_list(void **state)
{
	(void)state;
	entries_expect_most(wlbd_activities_check, "activities", entry_of, WLBD_NODE_RANKS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_entry),         cmocka_unit_test(test_bounds_of_members),
		cmocka_unit_test(test_corruption),       cmocka_unit_test(test_bounds_of_a_call),
		cmocka_unit_test(test_bounds_of_groups), cmocka_unit_test(test_number_of_groups),
		cmocka_unit_test(test_the_list),         cmocka_unit_test(test_length_of_the_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
