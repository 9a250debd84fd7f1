/* wlb save: whom it may ask, and what has come of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/asked_save.h"

/* A run whose attempt 1 has ended and whose attempt 2 trains; `attempt` is added to the latter, `lists` to the run. */
static json_t *run_with(const char *attempt, const char *lists)
{
	char text[2048];
	snprintf(text, sizeof(text),
	         "{'run_id':'12','state':'running','ended_at':null,'attempts':[{'attempt':1,'state':'failed'},"
	         "{'attempt':2,'state':'running','last_step':50,'saves_on_request':true,'output':{'slurm_step':'12.7'}%"
	         "s}]%s}",
	         attempt, lists);
	for (char *at = text; *at != '\0'; at++)
		if (*at == '\'')
			*at = '"';
	json_t *run = json_loads(text, 0, NULL);
	assert_non_null(run);
	return run;
}

static void its_step_and_what_was_saved_before_are_found(void **state)
{
	static const struct {
		const char *attempt, *lists;
		int64_t after_step;
		size_t failures;
	} cases[] = {
		{"", "", 49, 0},
		{",'last_step':null", "", -1, 0},
		{"", ",'checkpoints':[{'attempt':1,'step':60},{'attempt':2,'step':40}]", 49, 0},
		{"", ",'checkpoints':[{'attempt':2,'step':50},{'attempt':2,'step':40}]", 50, 0},
		{"", ",'checkpoints':[{'attempt':2,'step':55,'is_seen':true},{'attempt':2,'step':null,'is_seen':true}]",
	         49, 0},
		{"",
	         ",'events':[{'attempt':1,'kind':'checkpoint_failed'},{'attempt':2,'kind':'checkpoint_failed'},"
	         "{'attempt':2,'kind':'saved'}]",
	         49, 1},
	};
	struct wlb_asked_save asked;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *run = run_with(cases[i].attempt, cases[i].lists);
		assert_int_equal(wlb_asked_save_find(run, &asked, &error), 0);
		assert_int_equal(asked.attempt, 2);
		assert_int_equal(asked.job_id, 12);
		assert_int_equal(asked.step_id, 7);
		assert_int_equal(asked.after_step, cases[i].after_step);
		assert_int_equal(asked.failures, cases[i].failures);
		json_decref(run);
	}
}

/* The signal would end another program. */
static void nobody_else_is_asked(void **state)
{
	static const struct {
		const char *attempt, *lists, *why;
	} cases[] = {
		{"", ",'ended_at':'2026-11-20T10:00:00Z','state':'complete'", "run 12: it has ended (complete)"},
		{"", ",'attempts':[],'state':'starting'", "run 12: no attempt of it trains now (starting)"},
		{",'state':'starting'", "", "run 12: no attempt of it trains now (starting)"},
		{",'saves_on_request':false", "", "run 12: attempt 2 has not said that it saves at SIGUSR2"},
		{",'saves_on_request':1", "", "run 12: attempt 2 has not said that it saves at SIGUSR2"},
		{",'output':null", "", "run 12: only its owner, SlurmUser and root may have it saved"},
		{",'output':{'slurm_step':null}", "", "run 12: the Slurm step of attempt 2 is not known yet"},
		{",'output':{'slurm_step':'x.1'}", "", "run 12: the Slurm step of attempt 2 is not known yet"},
	};
	struct wlb_asked_save asked;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *run = run_with(cases[i].attempt, cases[i].lists);
		assert_int_equal(wlb_asked_save_find(run, &asked, &error), -1);
		if (strncmp(error.message, cases[i].why, strlen(cases[i].why)) != 0)
			fail_msg("%s, not %s", error.message, cases[i].why);
		json_decref(run);
	}
}

static void what_has_come_of_it_is_found(void **state)
{
	static const struct {
		const char *attempt, *lists;
		enum wlb_asked_save_state state;
		const char *why;
	} cases[] = {
		{"", ",'checkpoints':[{'attempt':2,'step':49}]", WLB_ASKED_SAVE_WAITS, ""},
		{"", ",'checkpoints':[{'attempt':1,'step':70},{'attempt':2,'step':70,'is_seen':true}]",
	         WLB_ASKED_SAVE_WAITS, ""},
		{"", ",'checkpoints':[{'attempt':2,'step':49},{'attempt':2,'step':50,'path':'/c'}]",
	         WLB_ASKED_SAVE_DONE, ""},
		{",'state':'ended'", ",'checkpoints':[{'attempt':2,'step':51,'path':'/c'}]", WLB_ASKED_SAVE_DONE, ""},
		{"",
	         ",'events':[{'attempt':2,'kind':'checkpoint_failed','detail':'a'},{'attempt':2,'kind':'checkpoint_"
	         "failed',"
	         "'detail':'b'}]",
	         WLB_ASKED_SAVE_FAILED, "run 12: b"},
		{"", ",'events':[{'attempt':2,'kind':'checkpoint_failed','detail':'a'}]", WLB_ASKED_SAVE_WAITS, ""},
		{",'state':'failed'", "", WLB_ASKED_SAVE_FAILED, "run 12: attempt 2 has ended before it saved"},
		{"", ",'attempts':[{'attempt':3,'state':'running'}]", WLB_ASKED_SAVE_FAILED,
	         "run 12: attempt 2 has ended before it saved"},
	};
	const struct wlb_asked_save asked = {.attempt = 2, .after_step = 49, .failures = 1};
	const json_t *saved;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error = {0};
		json_t *run = run_with(cases[i].attempt, cases[i].lists);
		assert_int_equal(wlb_asked_save_look(run, &asked, &saved, &error), cases[i].state);
		if (strncmp(error.message, cases[i].why, strlen(cases[i].why)) != 0)
			fail_msg("%s, not %s", error.message, cases[i].why);
		if (cases[i].state == WLB_ASKED_SAVE_DONE)
			assert_string_equal(json_string_value(json_object_get(saved, "path")), "/c");
		json_decref(run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_step_and_what_was_saved_before_are_found),
		cmocka_unit_test(nobody_else_is_asked),
		cmocka_unit_test(what_has_come_of_it_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
