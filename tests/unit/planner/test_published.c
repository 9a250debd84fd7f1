/* Tests which published steps are near a question, and what is said of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "planner/published.h"

static int parse(const char *text, struct wlb_published *published, struct wlb_error *error)
{
	*published = (struct wlb_published){0};
	return wlb_published_parse(text, strlen(text), published, error);
}

/* A source with `count` steps on 8 H100, of which the i-th is off by i hundredths. */
static size_t source(char *text, size_t size, const char *constants, const char *trainer, int window, int count)
{
	size_t used =
		(size_t)snprintf(text, size, "{\"title\": \"x\", \"sets_constants\": %s, \"steps\": [", constants);
	for (int i = 1; i <= count; i++)
		used += (size_t)snprintf(text + used, size - used, "%s[\"H100\", \"%s\", %d, 8, %g]", i > 1 ? "," : "",
		                         trainer, window, i % 2 == 0 ? 1.0 + 0.01 * i : 1.0 - 0.01 * i);
	return used + (size_t)snprintf(text + used, size - used, "]}");
}

/* Three sources: 20 steps of nemo, 4 of torchtitan, 5 of megatron that set constants. */
static struct wlb_published three(void)
{
	char nemo[2048], titan[512], core[512], text[4096];
	struct wlb_published published;
	struct wlb_error error = {""};
	source(nemo, sizeof(nemo), "false", "nemo", 8192, 20);
	source(titan, sizeof(titan), "false", "torchtitan", 8192, 4);
	source(core, sizeof(core), "true", "megatron", 4096, 5);
	snprintf(text, sizeof(text), "{\"sources\": [%s, %s, %s]}", nemo, titan, core);
	assert_int_equal(parse(text, &published, &error), 0);
	assert_int_equal(published.count, 29);
	return published;
}

static struct wlb_published_near near_of(const struct wlb_published *published, const char *machine,
                                         const char *trainer, double window, double gpus, int32_t without)
{
	const struct wlb_published_question question = {machine, trainer, window, gpus, 0, without};
	return wlb_published_near(published, &question);
}

static void assert_interval(const struct wlb_published_near *near, double ratio)
{
	double factor = ratio < 1.0 ? 1.0 / ratio : ratio;
	assert_true(fabs(near->upper - factor) < 1e-9 && fabs(near->lower - 1.0 / factor) < 1e-9);
}

static void steps_near_the_question_are_found(void **state)
{
	(void)state;
	struct wlb_published published = three();
	/* No two sources have this trainer. Each of the 20 steps of nemo weighs a fifth of one of the other source: of
	 * both, 1.8 are off by as much as the 16th of them, 0.85, or less. */
	struct wlb_published_near near = near_of(&published, "h100", "nemo", 16384, 64, -1);
	assert_int_equal(near.kind, WLB_PUBLISHED_PREDICTED);
	assert_true(near.steps == 24 && near.sources == 2 && near.any_trainer);
	assert_interval(&near, 0.85);
	/* Without one of them those that set constants count too. */
	near = near_of(&published, "H100", "nemo", 8192, 1, 1);
	assert_int_equal(near.kind, WLB_PUBLISHED_PREDICTED);
	assert_true(near.steps == 25 && near.sources == 2 && near.any_trainer);
	assert_interval(&near, 0.85);
	wlb_published_free(&published);
}

/* Steps of this trainer count alone where two sources have it. */
static void a_trainer_of_two_sources_counts_alone(void **state)
{
	(void)state;
	char first[512], second[512], other[512], text[2048];
	struct wlb_published published;
	struct wlb_error error = {""};
	source(first, sizeof(first), "false", "nemo", 8192, 2);
	source(second, sizeof(second), "false", "nemo", 8192, 3);
	source(other, sizeof(other), "false", "fsdp", 8192, 9);
	snprintf(text, sizeof(text), "{\"sources\": [%s, %s, %s]}", first, second, other);
	assert_int_equal(parse(text, &published, &error), 0);
	struct wlb_published_near near = near_of(&published, "H100", "nemo", 8192, 8, -1);
	assert_true(near.steps == 5 && near.sources == 2 && !near.any_trainer);
	near = near_of(&published, "H100", "nemo", 8192, 8, 0);
	assert_true(near.steps == 12 && near.sources == 2 && near.any_trainer);
	wlb_published_free(&published);
	source(first, sizeof(first), "true", "nemo", 8192, 2);
	source(second, sizeof(second), "true", "nemo", 8192, 3);
	snprintf(text, sizeof(text), "{\"sources\": [%s, %s]}", first, second);
	assert_int_equal(parse(text, &published, &error), 0);
	near = near_of(&published, "H100", "nemo", 8192, 8, -1);
	assert_int_equal(near.kind, WLB_PUBLISHED_CALIBRATED);
	assert_interval(&near, 0.97);
	wlb_published_free(&published);
}

static void what_is_not_near_is_unknown(void **state)
{
	(void)state;
	struct wlb_published published = three();
	/* Five steps of one source. */
	assert_int_equal(near_of(&published, "H100", "megatron", 2048, 8, -1).kind, WLB_PUBLISHED_UNKNOWN);
	assert_int_equal(near_of(&published, "A100", "nemo", 8192, 8, -1).kind, WLB_PUBLISHED_UNKNOWN);
	assert_int_equal(near_of(&published, "H100", "nemo", 16385, 8, -1).kind, WLB_PUBLISHED_UNKNOWN);
	assert_int_equal(near_of(&published, "H100", "nemo", 8192, 513, -1).kind, WLB_PUBLISHED_UNKNOWN);
	assert_int_equal(near_of(&published, "H100", "nemo", 1024, 8, -1).kind, WLB_PUBLISHED_UNKNOWN);
	wlb_published_free(&published);
}

/* Steps of models with experts, and those in 8 bits, tell of such alone. */
static void each_list_tells_of_its_own_steps(void **state)
{
	(void)state;
	static const char step[] = "[\"H100\", \"nemo\", 4096, 8, 1.5]", eight[] = "[\"H100\", \"nemo\", 4096, 8, 0.8]";
	char steps[512], with[900], text[2048];
	struct wlb_published published;
	struct wlb_error error = {""};
	struct wlb_published_question question = {"H100", "nemo", 4096, 8, WLB_PUBLISHED_EXPERT_STEPS, -1};
	size_t used = source(steps, sizeof(steps), "false", "nemo", 4096, 4);
	snprintf(with, sizeof(with), "%.*s, \"expert_steps\": [%s, %s], \"fp8_steps\": [%s, %s]}", (int)used - 1, steps,
	         step, step, eight, eight);
	snprintf(text, sizeof(text), "{\"sources\": [%s, %s]}", with, with);
	assert_int_equal(parse(text, &published, &error), 0);
	assert_int_equal(published.count, 16);
	struct wlb_published_near near = wlb_published_near(&published, &question);
	assert_true(near.steps == 4 && near.sources == 2);
	assert_interval(&near, 1.5);
	question.list = WLB_PUBLISHED_FP8_STEPS;
	near = wlb_published_near(&published, &question);
	assert_true(near.steps == 4 && near.sources == 2);
	assert_interval(&near, 0.8);
	question.list = WLB_PUBLISHED_STEPS;
	near = wlb_published_near(&published, &question);
	assert_true(near.steps == 8 && near.sources == 2);
	assert_interval(&near, 1.04);
	wlb_published_free(&published);
}

static void each_value_is_checked(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"[", "not JSON"},
		{"{\"sources\": 3}", "a list of sources"},
		{"{\"sources\": [{\"steps\": []}]}", "sets_constants"},
		{"{\"sources\": [{\"sets_constants\": true, \"steps\": [[\"H100\", \"nemo\", 8192, 8]]}]}",
	         "source 0, steps 0"},
		{"{\"sources\": [{\"sets_constants\": true, \"steps\": [[\"H100\", \"nemo\", 8192, 8, 0]]}]}",
	         "0.01 to 100"},
		{"{\"sources\": [{\"sets_constants\": true, \"steps\": [], \"expert_steps\": 3}]}",
	         "expert_steps must be a list"},
		{"{\"sources\": [{\"sets_constants\": true, \"steps\": [], \"expert_steps\": [3]}]}",
	         "source 0, expert_steps 0"},
		{"{\"sources\": [{\"sets_constants\": true, \"steps\": [[\"H100\", "
	         "\"0123456789012345678901234567890123\", 1, 1, "
	         "1]]}]}",
	         "bytes"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_published published;
		struct wlb_error error = {""};
		assert_int_equal(parse(cases[i].text, &published, &error), -1);
		assert_non_null(strstr(error.message, cases[i].words));
		wlb_published_free(&published);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_near_the_question_are_found),
		cmocka_unit_test(a_trainer_of_two_sources_counts_alone),
		cmocka_unit_test(what_is_not_near_is_unknown),
		cmocka_unit_test(each_list_tells_of_its_own_steps),
		cmocka_unit_test(each_value_is_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
