/* The options by which a trainer is told its layout, and what its command says of it. */
#include "coordinator/wlb/run/command/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/run/command/launcher.h"
#include "tests/unit/wlb/words.h"

/* 64 windows a step: 2 replicas of 16 micro-batches of 2. */
static const struct wlb_trainer_layout planned = {
	.layout = {.tp = 4, .cp = 2, .pp = 2, .dp = 2}, .micro_batch_size = 2, .micro_batches = 16, .interleave = 1};

static void check(const char *trainer, const struct wlb_trainer_layout *layout, const char *command,
                  const char *expected, const char *kept)
{
	struct words from;
	struct wlb_error error;
	char **made, line[2048], found[512];
	if (wlb_trainer_tell(wlb_trainer_find(trainer), layout, split(&from, command), &made, found, sizeof(found),
	                     &error) != 0)
		fail_msg("%s: %s", command, error.message);
	wlb_launcher_line(made, line, sizeof(line));
	assert_string_equal(line, expected);
	assert_string_equal(found, kept);
	wlb_launcher_free(made);
}

#define MEGATRON                                                                                                       \
	"--tensor-model-parallel-size=4 --context-parallel-size=2 --pipeline-model-parallel-size=2 "                   \
	"--sequence-parallel"

static void megatron_is_told(void **state)
{
	struct wlb_trainer_layout layout = planned;
	(void)state;
	assert_null(wlb_trainer_find("fairseq"));
	check("megatron", &layout, "python pretrain_gpt.py --lr 1",
	      "python pretrain_gpt.py --lr 1 " MEGATRON " --micro-batch-size=2", "");
	check("megatron", &layout, "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py",
	      "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py " MEGATRON " --micro-batch-size=2", "");
	layout.interleave = 3;
	check("megatron", &layout, "t", "t " MEGATRON " --num-virtual-stages-per-pipeline-rank=3 --micro-batch-size=2",
	      "");
	layout = (struct wlb_trainer_layout){.layout = {.tp = 1, .cp = 1, .pp = 1, .dp = 8}};
	check("megatron", &layout, "t",
	      "t --tensor-model-parallel-size=1 --context-parallel-size=1 --pipeline-model-parallel-size=1", "");
}

/* Attention alone is recomputed by fused kernels, and nothing is said of it. */
static void recomputation_of_layers(void **state)
{
	struct wlb_trainer_layout layout = planned;
	(void)state;
	layout.recomputes_layers = true;
	check("megatron", &layout, "t",
	      "t " MEGATRON " --micro-batch-size=2 --recompute-granularity=full --recompute-method=uniform "
	      "--recompute-num-layers=1",
	      "");
	layout.recompute_layers = 5;
	check("megatron", &layout, "t",
	      "t " MEGATRON " --micro-batch-size=2 --recompute-granularity=full --recompute-method=block "
	      "--recompute-num-layers=5",
	      "");
	check("megatron", &layout, "t --recompute-activations",
	      "t --recompute-activations " MEGATRON " --micro-batch-size=2", "");
	assert_true(wlb_trainer_tells_recompute(wlb_trainer_find("megatron")));
	assert_false(wlb_trainer_tells_recompute(wlb_trainer_find("torchtitan")));
}

#define TITAN "--parallelism.tensor_parallel_degree=4 --parallelism.context_parallel_degree=2 "

static void torchtitan_is_told(void **state)
{
	struct wlb_trainer_layout layout = planned;
	(void)state;
	check("torchtitan", &layout, "torchrun -m torchtitan.train",
	      "torchrun -m torchtitan.train " TITAN
	      "--parallelism.pipeline_parallel_degree=2 --parallelism.data_parallel_shard_degree=-1 "
	      "--parallelism.pipeline_parallel_schedule=1F1B --parallelism.pipeline_parallel_microbatch_size=2 "
	      "--training.local_batch_size=32",
	      "");
	layout.layout.pp = 1;
	check("torchtitan", &layout, "t activation-checkpoint:full",
	      "t " TITAN "--parallelism.pipeline_parallel_degree=1 --parallelism.data_parallel_shard_degree=-1 "
	      "--parallelism.pipeline_parallel_microbatch_size=2 --training.local_batch_size=2 "
	      "activation-checkpoint:full",
	      "");
	check("torchtitan", &layout,
	      "t --parallelism.tensor-parallel-degree 4 --parallelism.data_parallel_shard_degree=-1",
	      "t --parallelism.tensor-parallel-degree 4 --parallelism.data_parallel_shard_degree=-1 "
	      "--parallelism.context_parallel_degree=2 --parallelism.pipeline_parallel_degree=1 "
	      "--parallelism.pipeline_parallel_microbatch_size=2 --training.local_batch_size=2",
	      "--parallelism.tensor_parallel_degree --parallelism.data_parallel_shard_degree");
}

static void options_of_the_command_stay(void **state)
{
	struct wlb_trainer_layout layout = planned;
	(void)state;
	layout.interleave = 3;
	check("megatron", &layout,
	      "t --tensor-model-parallel-size 2 --tensor-model-parallel-size 4 --micro-batch-size=2 "
	      "--num-layers-per-virtual-pipeline-stage 2",
	      "t --tensor-model-parallel-size 2 --tensor-model-parallel-size 4 --micro-batch-size=2 "
	      "--num-layers-per-virtual-pipeline-stage 2 --context-parallel-size=2 --pipeline-model-parallel-size=2 "
	      "--sequence-parallel",
	      "--tensor-model-parallel-size --micro-batch-size");
	check("torchtitan", &layout, "t --parallelism.pipeline_parallel_schedule ZBV --training.local_batch_size 32",
	      "t --parallelism.pipeline_parallel_schedule ZBV --training.local_batch_size 32 " TITAN
	      "--parallelism.pipeline_parallel_degree=2 --parallelism.data_parallel_shard_degree=-1 "
	      "--parallelism.pipeline_parallel_microbatch_size=2",
	      "--parallelism.pipeline_parallel_schedule --training.local_batch_size");
}

static void a_contradiction_is_refused(void **state)
{
	static const struct {
		const char *trainer, *command, *why;
	} cases[] = {
		{"megatron", "t --tensor-model-parallel-size 8",
	         "--for=megatron: the command has --tensor-model-parallel-size 8, and with the layout "
	         "tp=4,cp=2,pp=2,dp=2 "
	         "it must be 4: leave it out"},
		{"megatron", "t --context-parallel-size", "--context-parallel-size , and"},
		{"torchtitan", "t --parallelism.data-parallel-shard-degree=8", "it must be -1"},
		{"torchtitan", "t --training.local_batch_size=8", "it must be 32"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct words from;
		struct wlb_error error = {0};
		char **made, kept[512];
		assert_int_equal(wlb_trainer_tell(wlb_trainer_find(cases[i].trainer), &planned,
		                                  split(&from, cases[i].command), &made, kept, sizeof(kept), &error),
		                 -1);
		if (strstr(error.message, cases[i].why) == NULL)
			fail_msg("%s: %s", cases[i].command, error.message);
	}
}

static struct wlb_search_fixed read_from(const char *trainer, const char *command, int expected)
{
	struct words from;
	struct wlb_search_fixed fixed;
	struct wlb_error error;
	assert_int_equal(wlb_trainer_read(wlb_trainer_find(trainer), split(&from, command), &fixed, &error), expected);
	return fixed;
}

static void what_a_command_holds(void **state)
{
	(void)state;
	struct wlb_search_fixed fixed = read_from("megatron", "t", 0);
	assert_int_equal(fixed.tp + fixed.cp + fixed.pp + fixed.dp + fixed.interleave + fixed.micro_batch_windows, 0);
	assert_int_equal(fixed.recompute, -1);
	fixed = read_from(
		"megatron",
		"t --tensor-model-parallel-size 1 --tensor-model-parallel-size=2 --context-parallel-size 4 "
		"--pipeline-model-parallel-size 8 --micro-batch-size 3 --num-virtual-stages-per-pipeline-rank 5",
		0);
	assert_int_equal(fixed.tp, 2);
	assert_int_equal(fixed.cp, 4);
	assert_int_equal(fixed.pp, 8);
	assert_int_equal(fixed.micro_batch_windows, 3);
	assert_int_equal(fixed.interleave, 5);
	assert_int_equal(read_from("megatron", "t --pipeline-model-parallel-layout Et|L", 0).interleave, 1);
	fixed = read_from("megatron", "t --tensor-model-parallel-size auto --context-parallel-size 2", -1);
	assert_int_equal(fixed.tp, 0);
	assert_int_equal(fixed.cp, 2);
	/* A name that Megatron-LM does not have. */
	assert_int_equal(read_from("megatron", "t --tensor_model_parallel_size 2", 0).tp, 0);
	fixed = read_from("torchtitan", "t --parallelism.tensor-parallel-degree=2", 0);
	assert_int_equal(fixed.tp, 2);
	assert_int_equal(fixed.interleave, 1);
}

static void recomputation_that_a_command_holds(void **state)
{
	static const struct {
		const char *command;
		int recompute, layers;
	} cases[] = {
		{"t --recompute-activations", WLB_RECOMPUTE_SELECTIVE, 0},
		{"t --recompute-granularity selective", WLB_RECOMPUTE_SELECTIVE, 0},
		{"t --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
	         WLB_RECOMPUTE_FULL, 0},
		{"t --recompute-granularity=full --recompute-method=block --recompute-num-layers=3", WLB_RECOMPUTE_FULL,
	         3},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wlb_search_fixed fixed = read_from("megatron", cases[i].command, 0);
		assert_int_equal(fixed.recompute, cases[i].recompute);
		assert_int_equal(fixed.recompute_layers, cases[i].layers);
	}
}

static void checkpoints_of_another_layout(void **state)
{
	static const struct {
		const char *trainer, *command;
		bool is_read;
	} cases[] = {
		{"megatron", "t", false},
		{"megatron", "t --ckpt-format torch", false},
		{"megatron", "t --ckpt-format=torch_dist", true},
		{"megatron", "t --ckpt-format torch_dist --use-distributed-optimizer", false},
		{"megatron",
	         "t --ckpt-format torch_dist --use-distributed-optimizer --dist-ckpt-optim-fully-reshardable", true},
		{"megatron", "t --ckpt-format torch_dist --use-distributed-optimizer --no-load-optim", true},
		{"torchtitan", "t --ckpt-format torch_dist", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct words from;
		assert_int_equal(
			wlb_trainer_reshards(wlb_trainer_find(cases[i].trainer), split(&from, cases[i].command)),
			cases[i].is_read);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(megatron_is_told),
		cmocka_unit_test(recomputation_of_layers),
		cmocka_unit_test(torchtitan_is_told),
		cmocka_unit_test(options_of_the_command_stay),
		cmocka_unit_test(a_contradiction_is_refused),
		cmocka_unit_test(what_a_command_holds),
		cmocka_unit_test(recomputation_that_a_command_holds),
		cmocka_unit_test(checkpoints_of_another_layout),
	};
	return cmocka_run_group_tests_name("wlb_trainer", tests, NULL, NULL);
}
