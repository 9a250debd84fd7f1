/* Tests that the settings of a trainer are read from the words of its command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/trainer_words.h"

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

static struct wlb_trainer_words read(char **words, enum wlb_words_of of)
{
	struct wlb_trainer_words got;
	struct wlb_error error = {""};
	int rc = wlb_trainer_words_read(words, of, &got, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(rc, 0);
	return got;
}

static void has(const struct wlb_trainer_words *words, enum wlb_setting setting, int64_t value)
{
	assert_true(wlb_trainer_words_have(words, setting));
	assert_int_equal(wlb_trainer_words_value(words, setting, -7), value);
}

static void refused(char **words, enum wlb_words_of of, const char *name, const char *rule)
{
	struct wlb_trainer_words got;
	struct wlb_error error = {""};
	assert_int_equal(wlb_trainer_words_read(words, of, &got, &error), -1);
	assert_non_null(strstr(error.message, name));
	assert_non_null(strstr(error.message, rule));
}

/* Values behind a space or "=", switches, their opposites, and of what is given twice the last. */
static void options_of_megatron(void **state)
{
	(void)state;
	const struct wlb_trainer_words w =
		read(WORDS("srun", "--ntasks=8", "torchrun", "--nnodes", "4", "--tensor-model-parallel-size=9",
	                   "a/pretrain_gpt.py", "--pipeline-model-parallel-size=4", "--tensor-model-parallel-size", "2",
	                   "--tensor-model-parallel-size", "8", "--sequence-parallel", "--no-overlap-p2p-communication",
	                   "--recompute-granularity", "full", "--recompute-modules", "moe_act", "layernorm",
	                   "--recompute-method=block", "--lr", "1e-4", "--data-path", "0.5", "a", "0.5",
	                   "--attention-backend", "fused", "-x"),
	             WLB_WORDS_OF_MEGATRON);
	has(&w, WLB_SETTING_TP, 8);
	has(&w, WLB_SETTING_PP, 4);
	has(&w, WLB_SETTING_SEQUENCE_PARALLEL, 1);
	has(&w, WLB_SETTING_OVERLAP_PP, 0);
	has(&w, WLB_SETTING_RECOMPUTE, WLB_RECOMPUTE_FULL);
	has(&w, WLB_SETTING_RECOMPUTE_MODULES, WLB_RECOMPUTE_LAYERNORM | WLB_RECOMPUTE_MOE_ACT);
	has(&w, WLB_SETTING_RECOMPUTE_BLOCK, 1);
	assert_false(wlb_trainer_words_have(&w, WLB_SETTING_CP));
	assert_int_equal(wlb_trainer_words_value(&w, WLB_SETTING_CP, 5), 5);
	assert_int_equal(w.unread_count, 2);
	assert_memory_equal(w.unread[0].text, "--attention-backend", (size_t)w.unread[0].bytes);
	assert_memory_equal(w.unread[1].text, "-x", (size_t)w.unread[1].bytes);
}

static void overrides_of_nemo(void **state)
{
	(void)state;
	const struct wlb_trainer_words w =
		read(WORDS("nemo", "llm", "pretrain", "--factory", "llama3_70b",
	                   "trainer.strategy.tensor_model_parallel_size=4",
	                   "++model.virtual_pipeline_model_parallel_size=null", "data.global_batch_size=512",
	                   "model.kv_channels=null", "model.max_seq_length=9", "model.sequence_parallel=False",
	                   "model.grad_reduce_in_fp32=True", "trainer.devices=8",
	                   "model.activations_checkpoint_granularity=selective",
	                   "model.recompute_modules=[\"mla_up_proj\",'mlp']"),
	             WLB_WORDS_OF_NEMO);
	has(&w, WLB_SETTING_TP, 4);
	has(&w, WLB_SETTING_GLOBAL_BATCH, 512);
	has(&w, WLB_SETTING_SEQUENCE_PARALLEL, 0);
	has(&w, WLB_SETTING_BFLOAT16_GRADIENTS, 0);
	has(&w, WLB_SETTING_GPUS_PER_NODE, 8);
	has(&w, WLB_SETTING_RECOMPUTE, WLB_RECOMPUTE_SELECTIVE);
	has(&w, WLB_SETTING_RECOMPUTE_MODULES, WLB_RECOMPUTE_MLA_UP_PROJ | WLB_RECOMPUTE_MLP);
	has(&w, WLB_SETTING_INTERLEAVE, 1);
	assert_false(wlb_trainer_words_have(&w, WLB_SETTING_HEAD_DIM));
	assert_false(wlb_trainer_words_have(&w, WLB_SETTING_WINDOW));
	assert_int_equal(w.unread_count, 1); /* max_seq_length, which is another name */
}

/* Of 2024 and 2025; -1 is what is left. */
static void options_of_torchtitan(void **state)
{
	(void)state;
	const struct wlb_trainer_words w =
		read(WORDS("python", "-m", "torch.distributed.run", "--nnodes=2", "-m", "torchtitan.train",
	                   "--training.tensor_parallel_degree", "8", "--training.batch_size=2", "--training.seq_len",
	                   "8192", "--parallelism.data_parallel_shard_degree", "-1",
	                   "--experimental.pipeline_parallel_degree=4", "--activation_checkpoint.mode", "none",
	                   "--comm.mode", "default", "--activation_checkpoint.selective_ac_option=op"),
	             WLB_WORDS_OF_TORCHTITAN);
	has(&w, WLB_SETTING_TP, 8);
	has(&w, WLB_SETTING_PP, 4);
	has(&w, WLB_SETTING_LOCAL_BATCH, 2);
	has(&w, WLB_SETTING_WINDOW, 8192);
	has(&w, WLB_SETTING_RECOMPUTE, WLB_RECOMPUTE_NONE);
	has(&w, WLB_SETTING_RECOMPUTE_EVERY, 0);
	assert_false(wlb_trainer_words_have(&w, WLB_SETTING_SHARD));
	assert_int_equal(w.unread_count, 1); /* --comm.mode */
}

static void refusals(void **state)
{
	(void)state;
	const enum wlb_words_of megatron = WLB_WORDS_OF_MEGATRON;
	refused(WORDS("x.py", "--seq-length", "$LENGTH"), megatron, "'$LENGTH'", "is not expanded");
	refused(WORDS("x.py", "`date`"), megatron, "'`date`'", "nothing is executed");
	refused(WORDS("$SCRIPT", "--seq-length", "8"), megatron, "'$SCRIPT'", "is not expanded");
	refused(WORDS("--micro-batch-size", "--lr", "1"), megatron, "--micro-batch-size", "a value is needed");
	refused(WORDS("--micro-batch-size"), megatron, "--micro-batch-size", "a value is needed");
	refused(WORDS("--micro-batch-size", "0"), megatron, "--micro-batch-size '0'", "from 1 to 1048576");
	refused(WORDS("--tensor-model-parallel-size=-1"), megatron, "'-1'", "from 1");
	refused(WORDS("--seq-length", "9999999999"), megatron, "'9999999999'", "from 1 to 1073741824");
	refused(WORDS("--recompute-granularity", "most"), megatron, "most", "selective|full");
	refused(WORDS("--recompute-modules", "moe", "mhc"), megatron, "--recompute-modules mhc", "some of core_attn");
	refused(WORDS("--recompute-modules=full"), megatron, "full", "some of core_attn");
	refused(WORDS("--sequence-parallel=2"), megatron, "2", "true or false");
	refused(WORDS("--expert-tensor-parallel-size", "2"), megatron, "expert-tensor", "planned with tp");
	refused(WORDS("--pipeline-model-parallel-layout", "E"), megatron, "--pipeline-model-parallel-layout",
	        "another number");
	refused(WORDS("--yaml-cfg=x.yaml"), megatron, "--yaml-cfg", "files are not read");
	refused(WORDS("--training.seq_len", "8"), megatron, "--training.seq_len", "add --trainer torchtitan");
	refused(WORDS("--training.global_batch_size", "8"), megatron, "global_batch_size", "add --trainer torchtitan");
	refused(WORDS("model.seq_length=8"), megatron, "model.seq_length", "add --trainer nemo");
	refused(WORDS("--seq-length", "8"), WLB_WORDS_OF_TORCHTITAN, "--seq-length", "add --trainer megatron");
	refused(WORDS("--training.max_context_length=8"), WLB_WORDS_OF_TORCHTITAN, "length", "--training.seq_len");
	refused(WORDS("--config", "llama3_8b"), WLB_WORDS_OF_TORCHTITAN, "--config", "is not read");
	refused(WORDS("--pipeline_parallel_schedule", "ZBVZeroBubble"), WLB_WORDS_OF_TORCHTITAN, "ZBV",
	        "Interleaved1F1B");
}

/* A word and a command that are as long as can be, and longer. */
static void bounds(void **state)
{
	(void)state;
	static char *many[WLB_WORDS_MAX + 2], word[WLB_WORD_BYTES_MAX + 2];
	for (int i = 0; i < WLB_WORDS_MAX; i++)
		many[i] = "a";
	read(many, WLB_WORDS_OF_NEMO);
	many[WLB_WORDS_MAX] = "a";
	refused(many, WLB_WORDS_OF_NEMO, "more than 4096 words", "layout alone");
	memset(word, 'a', WLB_WORD_BYTES_MAX);
	read(WORDS(word), WLB_WORDS_OF_NEMO);
	word[WLB_WORD_BYTES_MAX] = 'a';
	refused(WORDS(word), WLB_WORDS_OF_NEMO, "aaa...", "65536 bytes");
}

/* An option is called as the command has it, else by its usual name. */
static void names(void **state)
{
	(void)state;
	char name[128];
	struct wlb_trainer_words w = read(WORDS("--training.tensor_parallel_degree=8"), WLB_WORDS_OF_TORCHTITAN);
	wlb_trainer_words_option(&w, WLB_SETTING_TP, name, sizeof(name));
	assert_string_equal(name, "--training.tensor_parallel_degree");
	wlb_trainer_words_option(&w, WLB_SETTING_CP, name, sizeof(name));
	assert_string_equal(name, "--parallelism.context_parallel_degree");
	wlb_trainer_words_option(&w, WLB_SETTING_SEQUENCE_PARALLEL, name, sizeof(name));
	assert_string_equal(name, "");
	w = read(WORDS("a.py"), WLB_WORDS_OF_MEGATRON);
	wlb_trainer_words_option(&w, WLB_SETTING_TP, name, sizeof(name));
	assert_string_equal(name, "--tensor-model-parallel-size");
	assert_int_equal(wlb_words_of_trainer("megatron-2021"), WLB_WORDS_OF_MEGATRON);
	assert_int_equal(wlb_words_of_trainer("nemo"), WLB_WORDS_OF_NEMO);
	assert_int_equal(wlb_words_of_trainer("torchtitan-eager"), WLB_WORDS_OF_TORCHTITAN);
	assert_int_equal(wlb_words_of_trainer("worker"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_megatron),
		cmocka_unit_test(overrides_of_nemo),
		cmocka_unit_test(options_of_torchtitan),
		cmocka_unit_test(refusals),
		cmocka_unit_test(bounds),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
