#include "coordinator/wlbd/api/attempts/candidate_nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct wlbd_nodes_rules all_rules = {.excludes_crashed = true, .avoids_nodes = true};

static struct wlbd_candidate_nodes make(const char *names_text, const char *history_text, json_t **names)
{
	struct wlbd_candidate_nodes candidates;
	json_t *history = json_loads(history_text, 0, NULL);
	*names = json_loads(names_text, 0, NULL);
	assert_int_equal(wlbd_candidate_nodes_make(*names, history, all_rules, &candidates), 0);
	json_decref(history);
	return candidates;
}

static void a_run_without_history_suspects_no_node(void **state)
{
	json_t *names;
	(void)state;
	struct wlbd_candidate_nodes candidates = make("[\"n2\",\"n1\"]", "{\"crashes\":[],\"node_losses\":{}}", &names);
	assert_int_equal(candidates.count, 2);
	assert_string_equal(candidates.list[0].name, "n2");
	assert_string_equal(candidates.list[1].name, "n1");
	for (int i = 0; i < 2; i++) {
		assert_null(candidates.list[i].failed);
		assert_false(candidates.list[i].down);
		assert_false(candidates.list[i].silent);
	}
	assert_int_equal(candidates.program_step, -1);
	wlbd_candidate_nodes_free(&candidates);
	assert_null(candidates.list);
	json_decref(names);
}

static void losses_and_crashes_are_those_of_the_node(void **state)
{
	json_t *names;
	(void)state;
	struct wlbd_candidate_nodes candidates = make("[\"n1\",\"n2\",\"n3\"]",
	                                              "{\"node_losses\":{\"n3\":1,\"n9\":2},\"crashes\":["
	                                              "{\"node\":\"n2\",\"step\":40,\"age_s\":60.5},"
	                                              "{\"node\":\"n2\",\"step\":30,\"age_s\":600},"
	                                              "{\"node\":\"n2\",\"step\":20,\"age_s\":900},"
	                                              "{\"node\":\"n2\",\"step\":10,\"age_s\":1200}]}",
	                                              &names);
	assert_null(candidates.list[0].failed);
	assert_string_equal(candidates.list[1].failed, "failed again and again");
	assert_null(candidates.list[2].failed);
	assert_int_equal(candidates.program_step, -1);
	wlbd_candidate_nodes_free(&candidates);
	json_decref(names);
}

static void crashes_that_are_reported_leave_no_node_out(void **state)
{
	struct wlbd_candidate_nodes candidates;
	json_t *names = json_pack("[s, s, s, s, s, s]", "n1", "n2", "n3", "n4", "n5", "n6");
	json_t *history = json_loads("{\"node_losses\":{\"n3\":2},\"crashes\":["
	                             "{\"node\":\"n2\",\"step\":40,\"age_s\":60},"
	                             "{\"node\":\"n2\",\"step\":30,\"age_s\":600},"
	                             "{\"node\":\"n2\",\"step\":20,\"age_s\":900}],"
	                             "\"evictions\":[{\"node\":\"n1\",\"kind\":\"hang\",\"step\":7,\"age_s\":9}]}",
	                             0, NULL);
	(void)state;
	for (int leaves_out = 0; leaves_out <= 1; leaves_out++) {
		assert_int_equal(wlbd_candidate_nodes_make(names, history,
		                                           (struct wlbd_nodes_rules){.excludes_crashed = leaves_out},
		                                           &candidates),
		                 0);
		for (int i = 0; i < candidates.count; i++)
			assert_int_equal(candidates.list[i].failed != NULL, leaves_out && (i == 1 || i == 2));
		assert_true(candidates.list[0].evicted); /* that is another setting */
		wlbd_candidate_nodes_free(&candidates);
	}
	json_decref(history);
	json_decref(names);
}

static void a_step_that_fails_on_two_nodes_is_the_programs(void **state)
{
	json_t *names;
	(void)state;
	struct wlbd_candidate_nodes candidates = make("[\"n1\",\"n2\"]",
	                                              "{\"node_losses\":{},\"crashes\":["
	                                              "{\"node\":\"n2\",\"step\":40,\"age_s\":60,\"in_row\":true},"
	                                              "{\"node\":\"n1\",\"step\":40,\"age_s\":600,\"in_row\":true}]}",
	                                              &names);
	assert_int_equal(candidates.program_step, 40);
	assert_null(candidates.list[0].failed);
	assert_null(candidates.list[1].failed);
	wlbd_candidate_nodes_free(&candidates);
	json_decref(names);
}

static void nodes_that_are_known_from_other_runs_are_avoided(void **state)
{
	static const char names_text[] = "[\"n1\",\"n2\",\"n3\",\"n4\"]";
	static const char history_text[] =
		"{\"crashes\":[],\"node_losses\":{},\"avoided\":{\"n3\":{\"weight\":2,\"why\":\"failed a check\"},"
		"\"n9\":{\"weight\":9,\"why\":\"was lost in 9 runs\"}}}";
	struct wlbd_candidate_nodes candidates;
	json_t *names = json_loads(names_text, 0, NULL), *history = json_loads(history_text, 0, NULL);
	(void)state;
	for (int avoids = 0; avoids <= 1; avoids++) {
		const struct wlbd_nodes_rules rules = {.avoids_nodes = avoids};
		assert_int_equal(wlbd_candidate_nodes_make(names, history, rules, &candidates), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(candidates.list[i].avoided != NULL, avoids && i == 2);
		if (avoids)
			assert_string_equal(candidates.list[2].avoided, "failed a check");
		wlbd_candidate_nodes_free(&candidates);
	}
	json_decref(history);
	json_decref(names);
}

/* Of four nodes two are excluded, whatever the reasons are: those with the strongest. */
static void all_reasons_together_leave_half_out(void **state)
{
	static const char lost[] = "\"node_losses\":{\"n1\":2}",
			  lost_both[] = "\"node_losses\":{\"n1\":2,\"n2\":3,\"n3\":4}";
	static const char evicted[] = "\"evictions\":[{\"node\":\"n2\",\"kind\":\"hang\",\"step\":7,\"age_s\":9},"
				      "{\"node\":\"n3\",\"kind\":\"hang\",\"step\":3,\"age_s\":99}]";
	static const char avoided[] = "\"avoided\":{\"n4\":{\"weight\":2,\"why\":\"failed a check\"}}";
	static const struct {
		const char *parts[3];
		const char *out; /* of each node: lost, evicted, avoided, or used */
	} cases[] = {{{lost, evicted, avoided}, "leuu"},
	             {{"\"node_losses\":{}", evicted, avoided}, "ueeu"},
	             {{lost, "\"evictions\":[]", avoided}, "luua"},
	             {{lost_both, "\"evictions\":[]", avoided}, "ullu"}};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		char history[512];
		json_t *names;
		snprintf(history, sizeof(history), "{\"crashes\":[],%s,%s,%s}", cases[c].parts[0], cases[c].parts[1],
		         cases[c].parts[2]);
		struct wlbd_candidate_nodes candidates = make("[\"n1\",\"n2\",\"n3\",\"n4\"]", history, &names);
		for (int i = 0; i < 4; i++) {
			const struct wlbd_candidate_node *node = &candidates.list[i];
			char out = node->failed != NULL ? 'l' : node->evicted ? 'e' : node->avoided != NULL ? 'a' : 'u';
			assert_int_equal(out, cases[c].out[i]);
		}
		wlbd_candidate_nodes_free(&candidates);
		json_decref(names);
	}
}

static void nodes_that_are_down_or_silent_are_not_held(void **state)
{
	json_t *names;
	(void)state;
	struct wlbd_candidate_nodes candidates =
		make("[\"n1\",\"n2\",\"n3\",\"n4\"]", "{\"crashes\":[],\"node_losses\":{}}", &names);
	candidates.list[1].down = true;
	candidates.list[2].silent = true;
	candidates.list[3].evicted = true;
	assert_int_equal(wlbd_candidate_nodes_held(&candidates), 2);
	wlbd_candidate_nodes_free(&candidates);
	json_decref(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_without_history_suspects_no_node),
		cmocka_unit_test(losses_and_crashes_are_those_of_the_node),
		cmocka_unit_test(crashes_that_are_reported_leave_no_node_out),
		cmocka_unit_test(a_step_that_fails_on_two_nodes_is_the_programs),
		cmocka_unit_test(nodes_that_are_known_from_other_runs_are_avoided),
		cmocka_unit_test(all_reasons_together_leave_half_out),
		cmocka_unit_test(nodes_that_are_down_or_silent_are_not_held),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
