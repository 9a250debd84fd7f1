#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_spank.h"
#include "spank/options.h"

static struct wlb_spank_options options;

static int forget(void **state)
{
	(void)state;
	memset(&options, 0, sizeof(options));
	return 0;
}

static void registers_every_option(void **state)
{
	(void)state;
	fake_spank_reset();
	wlb_spank_options_register(NULL, NULL);
	assert_int_equal(fake_spank_options(), WLB_JOB_OPTION_COUNT);
	assert_string_equal(fake_spank_logged(), "");
}

static void writes_values_in_one_way(void **state)
{
	(void)state;
	struct wlb_error error;
	assert_int_equal(wlb_spank_options_take(&options, WLB_JOB_LAYOUT, "pp=2,tp=4", true, &error), 0);
	assert_string_equal(options.text[WLB_JOB_LAYOUT], "tp=4,cp=1,pp=2");
	assert_int_equal(wlb_spank_options_take(&options, WLB_JOB_SEQ_LENGTH, "007", true, &error), 0);
	assert_string_equal(options.text[WLB_JOB_SEQ_LENGTH], "7");
	assert_int_equal(
		wlb_spank_options_take(&options, WLB_JOB_ON_FAULT, "evict,slow=report,hang-after=5m", true, &error), 0);
	assert_string_equal(options.text[WLB_JOB_ON_FAULT],
	                    "crash=evict,hang=evict,slow=report,corrupt=evict,outliers=evict,hang-after=300");
	assert_int_equal(wlb_spank_options_take(&options, WLB_JOB_SPARES, "0", true, &error), 0);
	assert_string_equal(options.text[WLB_JOB_SPARES], "0");
}

static void takes_an_option_without_a_value(void **state)
{
	static const char *const without[] = {NULL, "", "(null)"};
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		assert_int_equal(wlb_spank_options_take(&options, WLB_JOB_GROW, "30", true, &error), 0);
		assert_string_equal(options.text[WLB_JOB_GROW], "30");
		assert_int_equal(wlb_spank_options_take(&options, WLB_JOB_GROW, without[i], true, &error), 0);
		assert_string_equal(options.text[WLB_JOB_GROW], "600");
	}
}

static void lets_the_last_value_win(void **state)
{
	(void)state;
	struct wlb_error error;
	assert_int_equal(wlb_spank_options_take(&options, WLB_JOB_LAYOUT, "auto", true, &error), 0);
	assert_true(wlb_spank_options_active(&options));
	assert_int_equal(wlb_spank_options_take(&options, WLB_JOB_LAYOUT, "off", true, &error), 0);
	assert_false(wlb_spank_options_active(&options));
}

static void refuses_with_value_rule_and_example_in_one_line(void **state)
{
	(void)state;
	static const struct {
		enum wlb_job_option_id which;
		const char *value;
		const char *example;
	} bad[] = {
		{WLB_JOB_LAYOUT, "bogus", "tp=2,cp=1,pp=2"},
		{WLB_JOB_LAYOUT, "tp=0", "tp=2,cp=1,pp=2"},
		{WLB_JOB_MODEL, "/nowhere/model.json", "--wlb-model=config.json"},
		{WLB_JOB_MODEL, "/tmp", "--wlb-model=config.json"},
		{WLB_JOB_SEQ_LENGTH, "4k", "--wlb-seq-length=4096"},
		{WLB_JOB_SEQ_LENGTH, "0", "--wlb-seq-length=4096"},
		{WLB_JOB_SEQ_LENGTH, "99999999999999999999", "--wlb-seq-length=4096"},
		{WLB_JOB_MIN_NODES, "-1", "--wlb-min-nodes=2"},
		{WLB_JOB_MIN_NODES, "", "--wlb-min-nodes=2"},
		{WLB_JOB_SPARES, " 1", "--wlb-spares=1"},
		{WLB_JOB_SPARES, "65534", "--wlb-spares=1"},
		{WLB_JOB_GROW, "10m", "--wlb-grow=600"},
		{WLB_JOB_GROW, "0", "--wlb-grow=600"},
		{WLB_JOB_GROW, "604801", "--wlb-grow=600"},
		{WLB_JOB_ON_FAULT, "ignore", "hang=evict,slow=report"},
		{WLB_JOB_ON_FAULT, "hang-after=1", "90s"},
		{WLB_JOB_ON_FAULT, "slow-by=0", "10%"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wlb_error error;
		assert_int_equal(wlb_spank_options_take(&options, bad[i].which, bad[i].value, true, &error), -1);
		assert_non_null(strstr(error.message, wlb_job_options[bad[i].which].flag));
		assert_non_null(strstr(error.message, bad[i].value));
		assert_non_null(strstr(error.message, bad[i].example));
		assert_null(strchr(error.message, '\n'));
		assert_string_equal(options.text[bad[i].which], "");
	}
}

static void looks_at_the_model_only_where_it_is_submitted(void **state)
{
	(void)state;
	struct wlb_error error;
	assert_int_equal(wlb_spank_options_take(&options, WLB_JOB_MODEL, "/nowhere/model.json", false, &error), 0);
	assert_string_equal(options.text[WLB_JOB_MODEL], "/nowhere/model.json");
}

static void names_an_option_without_effect(void **state)
{
	(void)state;
	assert_null(wlb_spank_options_ineffective(&options));
	strcpy(options.text[WLB_JOB_SPARES], "0");
	assert_string_equal(wlb_spank_options_ineffective(&options), "--wlb-spares");
	strcpy(options.text[WLB_JOB_LAYOUT], "off");
	assert_null(wlb_spank_options_ineffective(&options));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(registers_every_option, forget),
		cmocka_unit_test_setup(writes_values_in_one_way, forget),
		cmocka_unit_test_setup(takes_an_option_without_a_value, forget),
		cmocka_unit_test_setup(lets_the_last_value_win, forget),
		cmocka_unit_test_setup(refuses_with_value_rule_and_example_in_one_line, forget),
		cmocka_unit_test_setup(looks_at_the_model_only_where_it_is_submitted, forget),
		cmocka_unit_test_setup(names_an_option_without_effect, forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
