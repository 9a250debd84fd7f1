/* The layout of an attempt whose command names a part of it, where no plan fits. */
#include "coordinator/wlb/run/plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char large[] =
	"{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_act\": \"silu\","
	"\"hidden_size\": 16384, \"intermediate_size\": 53248, \"num_hidden_layers\": 126,"
	"\"num_attention_heads\": 128, \"num_key_value_heads\": 8, \"vocab_size\": 128256,"
	"\"max_position_embeddings\": 2048, \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0,"
	"\"tie_word_embeddings\": false}";
static char model[] = "/tmp/wlb-plan-XXXXXX";
static char *nodes[] = {"n1", "n2", NULL};

/* Of two nodes with two tasks each; the coordinator's layout is data parallel. */
static struct wlb_attempt planned(const char *tp, const char *pp, int expected)
{
	char tp_word[64], pp_word[64];
	snprintf(tp_word, sizeof(tp_word), "--tensor-model-parallel-size=%s", tp);
	snprintf(pp_word, sizeof(pp_word), "--pipeline-model-parallel-size=%s", pp);
	char *command[] = {"train", tp_word, pp_word, "--global-batch-size=8", NULL};
	struct wlb_run run = {.options.command = command,
	                      .job = {.nodes = nodes, .node_count = 2, .tasks_per_node = 2}};
	struct wlb_attempt attempt = {.number = 1,
	                              .nodes = nodes,
	                              .node_count = 2,
	                              .tasks_per_node = 2,
	                              .has_layout = true,
	                              .layout = {.tp = 1, .cp = 1, .pp = 1, .dp = 4}};
	struct wlb_error error = {0};
	run.job.policy = json_pack("{s:s, s:s, s:i}", "layout", "auto", "model", model, "seq_length", 2048);
	assert_int_equal(wlb_run_plan(&run, &attempt, &error), expected);
	json_decref(run.job.policy);
	if (expected != 0)
		assert_non_null(strstr(error.message, "layout auto: "));
	assert_null(attempt.plan);
	assert_int_equal(attempt.settings.micro_batch_size, 0);
	return attempt;
}

static void the_layout_is_that_of_the_command(void **state)
{
	static const struct {
		const char *tp, *pp;
		struct wlb_layout layout;
	} cases[] = {{"2", "auto", {2, 1, 1, 2}}, {"2", "2", {2, 1, 2, 1}}, {"1", "4", {1, 1, 4, 1}}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wlb_attempt attempt = planned(cases[i].tp, cases[i].pp, 0);
		assert_true(attempt.has_layout);
		assert_int_equal(attempt.layout.tp, cases[i].layout.tp);
		assert_int_equal(attempt.layout.cp, cases[i].layout.cp);
		assert_int_equal(attempt.layout.pp, cases[i].layout.pp);
		assert_int_equal(attempt.layout.dp, cases[i].layout.dp);
	}
}

/* Over both nodes, as another trainer may. */
static void one_that_wlb_does_not_have_is_not_told(void **state)
{
	(void)state;
	assert_false(planned("4", "1", 0).has_layout);
}

static void a_command_that_names_none_is_refused(void **state)
{
	(void)state;
	planned("auto", "auto", -1);
}

static int write_model(void **state)
{
	int fd = mkstemp(model);
	(void)state;
	if (fd < 0 || write(fd, large, strlen(large)) != (ssize_t)strlen(large))
		return -1;
	close(fd);
	return setenv("WLB_MACHINE", WLB_TEST_MACHINES "/H100.json", 1);
}

static int remove_model(void **state)
{
	(void)state;
	return unlink(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_layout_is_that_of_the_command),
		cmocka_unit_test(one_that_wlb_does_not_have_is_not_told),
		cmocka_unit_test(a_command_that_names_none_is_refused),
	};
	return cmocka_run_group_tests(tests, write_model, remove_model);
}
