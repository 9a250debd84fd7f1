/* The layout of an attempt whose command names a part of it, where no plan fits; and of one that is given its layout.
 */
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
static const char small[] =
	"{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_act\": \"silu\","
	"\"hidden_size\": 256, \"intermediate_size\": 1280, \"num_hidden_layers\": 4,"
	"\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 12000,"
	"\"max_position_embeddings\": 2048, \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0,"
	"\"tie_word_embeddings\": true}";
static char small_model[] = "/tmp/wlb-plan-XXXXXX";
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

static int write_file(char *path, const char *text)
{
	int fd = mkstemp(path);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return -1;
	return close(fd);
}

/* ---- a layout that is given ------------------------------------------------------------------------------------- */

static const char *told_model = small_model;

/* Plans an attempt of `run`, whose model is told_model, on the first nodes of four, with two tasks each; frees its
 * nodes. */
static struct wlb_attempt told(struct wlb_run *run, int number, int node_count, int tasks, int expected,
                               struct wlb_error *error)
{
	struct wlb_attempt attempt = {.number = number,
	                              .nodes = calloc(5, sizeof(char *)),
	                              .node_count = node_count,
	                              .tasks_per_node = tasks,
	                              .has_layout = true,
	                              .layout = {.tp = 1, .cp = 1, .pp = 1, .dp = node_count * tasks}};
	for (int i = 0; i < node_count; i++)
		assert_true(asprintf(&attempt.nodes[i], "n%d", i + 1) > 0);
	run->job = (struct wlb_run_job){.tasks_per_node = tasks, .node_count = 4, .first_node_count = 4};
	run->job.policy = json_pack("{s:s, s:s, s:i}", "layout", "auto", "model", told_model, "seq_length", 2048);
	assert_int_equal(wlb_run_plan(run, &attempt, error), expected);
	json_decref(run->job.policy);
	for (int i = 0; i < attempt.node_count; i++)
		free(attempt.nodes[i]);
	free(attempt.nodes);
	json_decref(attempt.plan);
	return attempt;
}

static struct wlb_run run_of(char **command, const char *trainer)
{
	return (struct wlb_run){.options = {.command = command, .trainer = trainer}, .journal.fd = -1};
}

static void only_dp_changes(void **state)
{
	char *command[] = {"t", "--global-batch-size=24", "--pipeline-model-parallel-size=2", NULL};
	struct wlb_run run = run_of(command, "megatron");
	struct wlb_error error = {0};
	(void)state;
	struct wlb_attempt first = told(&run, 1, 4, 2, 0, &error);
	assert_int_equal(first.layout.pp, 2);
	assert_string_equal(first.settings.recompute, "none");
	assert_int_equal(first.settings.micro_batches * first.settings.micro_batch_size * first.layout.dp, 24);
	/* The command may say less in a later attempt, as where it is made anew. */
	command[2] = NULL;
	struct wlb_attempt second = told(&run, 2, 3, 2, 0, &error);
	assert_int_equal(second.layout.tp, first.layout.tp);
	assert_int_equal(second.layout.cp, first.layout.cp);
	assert_int_equal(second.layout.pp, 2);
	assert_int_equal(second.settings.interleave, first.settings.interleave);
	assert_true(second.layout.dp < first.layout.dp);
}

static void a_layout_that_the_nodes_cannot_hold_is_refused(void **state)
{
	char *command[] = {"t", "--global-batch-size=24", "--pipeline-model-parallel-size=4", NULL};
	char *other[] = {"t", "--global-batch-size=24", "--ckpt-format=torch_dist", NULL};
	struct wlb_run run = run_of(command, "megatron");
	struct wlb_error error = {0};
	(void)state;
	run.options.planned_trainer = "none";
	told(&run, 1, 4, 1, -1, &error);
	assert_non_null(strstr(error.message, "--trainer: 'none' is unknown"));
	run.options.planned_trainer = NULL;
	told(&run, 1, 4, 1, 0, &error);
	command[2] = NULL;
	told(&run, 2, 3, 1, -1, &error);
	if (strstr(error.message,
	           "the attempts before had tp=1, cp=1 and pp=4, and megatron reads their checkpoint in no "
	           "other layout: give the run more nodes, or have it save with --ckpt-format torch_dist") == NULL)
		fail_msg("%s", error.message);
	run.options.command = other;
	assert_true(told(&run, 3, 3, 1, 0, &error).layout.pp < 4);
}

/* Two processes on each node; 8 windows can be divided among 8 or 4 ranks. */
static void a_launcher_has_a_rank_in_each_process(void **state)
{
	char *command[] = {"torchrun",
	                   "--nproc-per-node=2",
	                   "t.py",
	                   "--training.global_batch_size=8",
	                   "--parallelism.tensor_parallel_degree=1",
	                   "--parallelism.context_parallel_degree=1",
	                   "--parallelism.pipeline_parallel_degree=1",
	                   NULL};
	struct wlb_run run = run_of(command, "torchtitan");
	struct wlb_error error = {0};
	(void)state;
	struct wlb_attempt all = told(&run, 1, 4, 1, 0, &error);
	assert_int_equal(all.layout.dp, 8);
	assert_int_equal(all.node_count, 4);
	struct wlb_attempt fewer = told(&run, 2, 3, 1, 0, &error);
	assert_int_equal(fewer.layout.dp, 4);
	assert_int_equal(fewer.node_count, 2);
	assert_int_equal(fewer.tasks_per_node, 1);
}

/* It runs whatever is predicted for it, on all nodes. */
static void a_launcher_with_a_layout_of_its_own(void **state)
{
	char *command[] = {
		"torchrun", "--nproc-per-node=2", "t.py", "--global-batch-size=8", "--tensor-model-parallel-size=2",
		NULL};
	struct wlb_run run = run_of(command, "megatron");
	struct wlb_error error = {0};
	(void)state;
	told_model = model;
	struct wlb_attempt attempt = told(&run, 1, 4, 1, 0, &error);
	told_model = small_model;
	assert_int_equal(attempt.node_count, 4);
	assert_int_equal(attempt.layout.tp, 2);
	assert_int_equal(attempt.layout.dp, 4);
	assert_int_equal(run.held.tp, 2);
}

static void nothing_to_plan_with_is_refused(void **state)
{
	char *command[] = {"t", NULL};
	struct wlb_run run = run_of(command, "torchtitan");
	struct wlb_error error = {0};
	(void)state;
	told(&run, 1, 4, 2, -1, &error);
	assert_non_null(strstr(error.message, "--for=torchtitan: the layout cannot be planned: add "
	                                      "--training.global_batch_size=N to the command"));
}

/* 24 windows a step, and context parallelism as the file has it. */
static void the_batch_of_a_configuration_file(void **state)
{
	char path[] = "/tmp/wlb-nanotron-XXXXXX", *command[] = {"t", "--config-file", path, NULL};
	struct wlb_run run = run_of(command, "nanotron");
	struct wlb_error error = {0};
	(void)state;
	assert_int_equal(write_file(path, "parallelism:\n dp: 4\n pp: 1\n tp: 1\n context_parallel_size: 2\n"
	                                  "tokens:\n sequence_length: 2048\n micro_batch_size: 3\n"
	                                  " batch_accumulation_per_replica: 2\n"),
	                 0);
	struct wlb_attempt attempt = told(&run, 1, 4, 2, 0, &error);
	assert_int_equal(attempt.layout.cp, 2);
	assert_int_equal(attempt.settings.interleave, 1);
	assert_int_equal(attempt.settings.micro_batches * attempt.settings.micro_batch_size * attempt.layout.dp, 24);
	unlink(path);
	told(&run, 2, 4, 2, -1, &error);
	assert_non_null(strstr(error.message, path));
}

static int write_model(void **state)
{
	(void)state;
	if (write_file(model, large) != 0 || write_file(small_model, small) != 0)
		return -1;
	return setenv("WLB_MACHINE", WLB_TEST_MACHINES "/H100.json", 1);
}

static int remove_model(void **state)
{
	(void)state;
	return unlink(model) | unlink(small_model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_layout_is_that_of_the_command),
		cmocka_unit_test(one_that_wlb_does_not_have_is_not_told),
		cmocka_unit_test(a_command_that_names_none_is_refused),
		cmocka_unit_test(only_dp_changes),
		cmocka_unit_test(a_layout_that_the_nodes_cannot_hold_is_refused),
		cmocka_unit_test(a_launcher_has_a_rank_in_each_process),
		cmocka_unit_test(a_launcher_with_a_layout_of_its_own),
		cmocka_unit_test(nothing_to_plan_with_is_refused),
		cmocka_unit_test(the_batch_of_a_configuration_file),
	};
	return cmocka_run_group_tests(tests, write_model, remove_model);
}
