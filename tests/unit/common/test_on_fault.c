#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/on_fault.h"

static struct wlb_error error;

/* What all values are after `text`, from the defaults. */
static const char *after(const char *text)
{
	static char canonical[WLB_ON_FAULT_SIZE];
	struct wlb_on_fault on_fault;
	wlb_on_fault_init(&on_fault);
	assert_int_equal(wlb_on_fault_parse(text, &on_fault, &error), 0);
	wlb_on_fault_text(&on_fault, canonical, sizeof(canonical));
	return canonical;
}

static void crashes_and_hangs_evict_by_default(void **state)
{
	char text[WLB_ON_FAULT_SIZE];
	struct wlb_on_fault on_fault;
	wlb_on_fault_init(&on_fault);
	wlb_on_fault_text(&on_fault, text, sizeof(text));
	assert_string_equal(
		text, "crash=evict,hang=evict,slow=report,corrupt=report,outliers=report,hang-after=8,slow-by=10");
	(void)state;
}

static void items_change_what_they_name(void **state)
{
	assert_string_equal(after("slow=evict"),
	                    "crash=evict,hang=evict,slow=evict,corrupt=report,outliers=report,hang-after=8,slow-by=10");
	assert_string_equal(
		after("report"),
		"crash=report,hang=report,slow=report,corrupt=report,outliers=report,hang-after=8,slow-by=10");
	assert_string_equal(after("evict"),
	                    "crash=evict,hang=evict,slow=evict,corrupt=evict,outliers=evict,hang-after=8,slow-by=10");
	assert_string_equal(
		after("corrupt=evict,hang-after=90s,slow-by=2.5%"),
		"crash=evict,hang=evict,slow=report,corrupt=evict,outliers=report,hang-after=90,slow-by=2.5");
	(void)state;
}

static void later_items_win(void **state)
{
	assert_string_equal(
		after("hang=evict,report"),
		"crash=report,hang=report,slow=report,corrupt=report,outliers=report,hang-after=8,slow-by=10");
	assert_string_equal(
		after("report,crash=evict,crash=report,crash=evict"),
		"crash=evict,hang=report,slow=report,corrupt=report,outliers=report,hang-after=8,slow-by=10");
	(void)state;
}

static void limits_have_units(void **state)
{
	static const struct {
		const char *text;
		double seconds, percent;
	} limits[] = {
		{"hang-after=90", 90, 10},       {"hang-after=90s", 90, 10}, {"hang-after=5m", 300, 10},
		{"hang-after=60m", 3600, 10},    {"hang-after=2", 2, 10},    {"hang-after=0.5m", 30, 10},
		{"hang-after=2.125", 2.125, 10}, {"slow-by=1", 8, 1},        {"slow-by=1000%", 8, 1000},
	};
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct wlb_on_fault on_fault;
		wlb_on_fault_init(&on_fault);
		assert_int_equal(wlb_on_fault_parse(limits[i].text, &on_fault, &error), 0);
		assert_true(on_fault.hang_after_s == limits[i].seconds);
		assert_true(on_fault.slow_by_percent == limits[i].percent);
	}
	(void)state;
}

static void what_is_wrong_is_refused_and_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"",
		",",
		"evict,",
		"hang",
		"hang=",
		"=evict",
		"hang=Evict",
		"rank=evict",
		"hang = evict",
		"slow=10",
		"hang-after",
		"hang-after=",
		"hang-after=1",
		"hang-after=1.9",
		"hang-after=3601",
		"hang-after=61m",
		"hang-after=9h",
		"hang-after=+9",
		"hang-after=nan",
		"hang-after=inf",
		"hang-after=0x10",
		"hang-after=1e2",
		"hang-after=9.9.9",
		"hang-after=evict",
		"slow-by=0",
		"slow-by=0.9",
		"slow-by=1001",
		"slow-by=10s",
		"slow-by=%",
		"slow-by=1 0",
		"report,hang-after=x",
		"hang=evict\nslow=evict",
	};
	struct wlb_on_fault on_fault;
	char before[WLB_ON_FAULT_SIZE], now[WLB_ON_FAULT_SIZE];
	wlb_on_fault_init(&on_fault);
	wlb_on_fault_text(&on_fault, before, sizeof(before));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		wlb_on_fault_init(&on_fault);
		assert_int_equal(wlb_on_fault_parse(wrong[i], &on_fault, &error), -1);
		wlb_on_fault_text(&on_fault, now, sizeof(now));
		assert_string_equal(now, before);
	}
	(void)state;
}

static void errors_name_value_and_rule(void **state)
{
	struct wlb_on_fault on_fault;
	char text[WLB_ON_FAULT_SIZE + 1];
	wlb_on_fault_init(&on_fault);
	assert_int_equal(wlb_on_fault_parse("slow=evict,hang-after=1", &on_fault, &error), -1);
	assert_string_equal(error.message, "'hang-after=1': hang-after must be a time from 2s to 60m, for example 90s");
	assert_int_equal(wlb_on_fault_parse("rank=evict", &on_fault, &error), -1);
	assert_non_null(strstr(error.message, "'rank=evict': an item must be report, evict,"));
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(wlb_on_fault_parse(text, &on_fault, &error), -1);
	assert_non_null(strstr(error.message, "shorter than 256 characters"));
	(void)state;
}

static void what_a_text_names_is_written_once(void **state)
{
	char items[WLB_ON_FAULT_SIZE];
	assert_int_equal(wlb_on_fault_items("hang-after=5m,hang=evict,hang=report", items, sizeof(items), &error), 0);
	assert_string_equal(items, "hang=report,hang-after=300");
	assert_int_equal(wlb_on_fault_items("evict,slow=report", items, sizeof(items), &error), 0);
	assert_string_equal(items, "crash=evict,hang=evict,slow=report,corrupt=evict,outliers=evict");
	assert_int_equal(wlb_on_fault_items("evict;slow", items, sizeof(items), &error), -1);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crashes_and_hangs_evict_by_default),
		cmocka_unit_test(items_change_what_they_name),
		cmocka_unit_test(later_items_win),
		cmocka_unit_test(limits_have_units),
		cmocka_unit_test(what_is_wrong_is_refused_and_changes_nothing),
		cmocka_unit_test(errors_name_value_and_rule),
		cmocka_unit_test(what_a_text_names_is_written_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
