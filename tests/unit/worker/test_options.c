#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "worker/launch/options.h"

enum { MAX_WORDS = 32 };

/* Parses the required options, followed by the words of `more`. */
static int parse(const char *more, struct wlb_train_options *options, struct wlb_error *error)
{
	static char text[512];
	char *words[MAX_WORDS];
	int count = 0;
	snprintf(text, sizeof(text),
	         "train --model m.json --data-path d --seq-length 100 --global-batch-size 8 --train-iters 50 --lr 1e-3 "
	         "%s",
	         more);
	for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	return wlb_train_options_parse(count, words, options, error);
}

static void assert_refused(const char *more, const char *message)
{
	struct wlb_train_options options;
	struct wlb_error error = {0};
	assert_int_equal(parse(more, &options, &error), -1);
	assert_string_equal(error.message, message);
}

static void defaults_are_megatrons(void **state)
{
	struct wlb_train_options o;
	struct wlb_error error = {0};
	assert_int_equal(parse("", &o, &error), 0);
	assert_string_equal(o.model, "m.json");
	assert_int_equal(o.seq_length, 100);
	assert_int_equal(o.max_tokens, 0);
	assert_int_equal(o.micro_batch_size, 0);
	assert_int_equal(o.virtual_stages, 0);
	assert_int_equal(o.packing, WLB_STRATEGY_BALANCED);
	assert_int_equal(o.cp_sharding, WLB_SHARDING_ADAPTIVE);
	assert_int_equal(o.recompute, WLB_RECOMPUTE_AUTO);
	assert_int_equal(o.hyper.lr_decay_iters, 50);
	assert_true(o.timeout_minutes == 10.0 && o.storage_timeout_minutes == 5.0);
	assert_int_equal(o.seed, 1234);
	assert_true(o.hyper.adam_beta1 == 0.9 && o.hyper.adam_beta2 == 0.999 && o.hyper.adam_eps == 1e-8 &&
	            o.hyper.clip_grad == 1.0);
	assert_int_equal(o.hyper.lr_decay_style, WLB_LR_COSINE);
	assert_int_equal(o.dtype, WLB_FLOAT32);
	assert_null(o.save);
	(void)state;
}

static void values_are_taken(void **state)
{
	struct wlb_train_options o;
	struct wlb_error error = {0};
	assert_int_equal(
		parse("--dtype float64 --lr-decay-style=linear --save s --save-interval 20 --lr 0.5", &o, &error), 0);
	assert_int_equal(parse("--packing plain --cp-sharding per-document --recompute-granularity full "
	                       "--recompute-num-layers 3 --micro-batch-size 4 --num-virtual-stages-per-pipeline-rank 2",
	                       &o, &error),
	                 0);
	assert_int_equal(o.packing, WLB_STRATEGY_PLAIN);
	assert_int_equal(o.cp_sharding, WLB_SHARDING_DOCUMENT);
	assert_int_equal(o.recompute, WLB_RECOMPUTE_FULL);
	assert_int_equal(o.recompute_layers, 3);
	assert_int_equal(o.micro_batch_size, 4);
	assert_int_equal(o.virtual_stages, 2);
	assert_int_equal(
		parse("--dtype float64 --lr-decay-style=linear --save s --save-interval 20 --lr 0.5", &o, &error), 0);
	assert_int_equal(o.dtype, WLB_FLOAT64);
	assert_int_equal(o.hyper.lr_decay_style, WLB_LR_LINEAR);
	assert_string_equal(o.save, "s");
	assert_int_equal(o.save_interval, 20);
	assert_true(o.hyper.lr == 0.5);
	(void)state;
}

static void the_element_type_follows_the_device(void **state)
{
	struct wlb_train_options o;
	struct wlb_error error = {0};
	assert_int_equal(parse("--device cuda", &o, &error), 0);
	assert_true(o.dtype == WLB_BFLOAT16 && o.main_grads == WLB_MAIN_GRADS_FP32);
	assert_int_equal(parse("--device cuda --dtype float32", &o, &error), 0);
	assert_int_equal(o.dtype, WLB_FLOAT32);
	assert_int_equal(parse("--device cuda --bf16 --main-grads-dtype bf16", &o, &error), 0);
	assert_true(o.dtype == WLB_BFLOAT16 && o.main_grads == WLB_MAIN_GRADS_BF16);
	assert_refused("--bf16",
	               "--bf16: a CPU computes in float32 and float64; use --device cuda, or --dtype float32");
	assert_refused("--dtype bfloat16",
	               "--dtype bfloat16: a CPU computes in float32 and float64; use --device cuda, "
	               "or --dtype float32");
	assert_refused("--device cuda --dtype float64",
	               "--dtype float64: a GPU computes in bfloat16 and float32; use --device cpu, or --dtype float32");
	assert_refused("--device cuda --bf16 --dtype float32", "--bf16 and --dtype float32: give one of them");
	assert_refused("--main-grads-dtype bf16", "--main-grads-dtype bf16: it needs --bf16; the weights are float32");
	(void)state;
}

static void wrong_values_are_named(void **state)
{
	assert_refused("--lr abc", "--lr 'abc': must be a number above 0, such as 3e-4");
	assert_refused("--lr 0", "--lr '0': must be a number above 0, such as 3e-4");
	assert_refused("--lr nan", "--lr 'nan': must be a number above 0, such as 3e-4");
	assert_refused("--seq-length 12x", "--seq-length '12x': must be a whole number from 1 to 16777216");
	assert_refused("--train-iters -1", "--train-iters '-1': must be a whole number from 1 to 1000000000000");
	assert_refused("--seed 99999999999999999999",
	               "--seed '99999999999999999999': must be a whole number from 0 to 1000000000000");
	assert_refused("--adam-beta2 1", "--adam-beta2 '1': must be a number from 0 to below 1");
	assert_refused("--dtype float16", "--dtype 'float16': must be float32, float64, bfloat16 or auto");
	assert_refused("--dtype float", "--dtype 'float': must be float32, float64, bfloat16 or auto");
	(void)state;
}

static void the_batch_ramp_is_megatrons(void **state)
{
	struct wlb_train_options o;
	struct wlb_error error = {0};
	assert_int_equal(parse("", &o, &error), 0);
	assert_int_equal(o.ramp.start, 0);
	assert_int_equal(
		parse("--rampup-batch-size 1 1 9 --data-path x y --rampup-batch-size 2 3 40 --seed 3", &o, &error), 0);
	assert_true(o.ramp.start == 2 && o.ramp.increment == 3 && o.ramp.windows == 40 && o.seed == 3);
	assert_int_equal(o.data.blend.count, 2);
	assert_refused(
		"--rampup-batch-size 2 3",
		"option '--rampup-batch-size' needs 3 values, START INCREMENT WINDOWS; see 'wlb-worker train --help'");
	assert_refused("--rampup-batch-size 2 x 40",
	               "--rampup-batch-size: INCREMENT 'x': must be a whole number from 1 to 9223372036854775807");
	assert_refused("--rampup-batch-size 2 4 40",
	               "--rampup-batch-size: 2 4 40: START must be below --global-batch-size 8, and INCREMENT divide "
	               "what is between them, 6: change one of the three");
	(void)state;
}

/* Parses with these words for the data, before and after options. */
static void parse_data(const char *more, struct wlb_train_options *o)
{
	struct wlb_error error = {0};
	if (parse(more, o, &error) < 0)
		fail_msg("%s", error.message);
}

static void datasets_are_megatrons(void **state)
{
	struct wlb_train_options o;
	parse_data("", &o);
	assert_int_equal(o.data.blend.count, 1);
	assert_string_equal(o.data.parts[0].prefix, "d");
	assert_true(o.data.split.from[WLB_SPLIT_TRAIN] == 0.0 && o.data.split.to[WLB_SPLIT_TRAIN] == 1.0);
	assert_false(o.evaluates);
	/* The last --data-path is taken, and where it begins does not matter. */
	parse_data("--data-path 0.3 a 0.7 b --split 3,1", &o);
	assert_int_equal(o.data.blend.count, 2);
	assert_true(o.data.blend.weighted && o.data.blend.parts == o.data.parts);
	assert_string_equal(o.data_path, "a");
	assert_string_equal(o.data.parts[1].prefix, "b");
	assert_true(o.data.parts[0].weight == 0.3 && o.data.parts[1].weight == 0.7);
	assert_true(o.data.split.to[WLB_SPLIT_TRAIN] == 0.75 && o.data.split.to[WLB_SPLIT_VALID] == 1.0);
	assert_true(o.evaluates);
	parse_data("--split 3,0,1", &o);
	assert_false(o.evaluates);
	parse_data("--split 3,0,1 --eval-data-path e", &o);
	assert_true(o.evaluates);
	parse_data("--data-path=a b --keep 2", &o);
	assert_int_equal(o.data.blend.count, 2);
	assert_false(o.data.blend.weighted);
	assert_int_equal(o.keep, 2);
	parse_data("--data-path 1 a", &o);
	assert_int_equal(o.data.blend.count, 1);
	assert_string_equal(o.data_path, "a");
	assert_refused("--data-path 0.3 a --keep 2 more",
	               "'more': no argument is taken; see 'wlb-worker train --help'");
	assert_refused("--split 0,1",
	               "--split 0,1: one to three numbers of 0 or more with commas between them, such as "
	               "99,1,0, the first above 0");
	(void)state;
}

static void unknown_words_are_named(void **state)
{
	assert_refused("--bogus", "option '--bogus' is unknown or ambiguous; see 'wlb-worker train --help'");
	assert_refused("--bogus=1", "option '--bogus=1' is unknown or ambiguous; see 'wlb-worker train --help'");
	assert_refused("-x", "option '-x' is unknown or ambiguous; see 'wlb-worker train --help'");
	assert_refused("more", "'more': no argument is taken; see 'wlb-worker train --help'");
	assert_refused("--keep", "option '--keep' needs a value; see 'wlb-worker train --help'");
	(void)state;
}

static void rules_between_options_are_checked(void **state)
{
	assert_refused("--override-opt_param-scheduler --use-checkpoint-opt_param-scheduler",
	               "--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler: give one of them");
	assert_refused("--min-lr 0.1", "--min-lr 0.1: it must not exceed --lr 0.001");
	assert_refused("--lr-warmup-iters 50",
	               "--lr-warmup-iters 50: it must be below --lr-decay-iters 50 (or --train-iters)");
	assert_refused("--max-tokens-per-micro-batch 99",
	               "--max-tokens-per-micro-batch 99: it must be at least --seq-length 100");
	assert_refused("--storage-timeout-minutes 10",
	               "--storage-timeout-minutes 10: it must be below --distributed-timeout-minutes 10");
	assert_refused("--save-interval 5", "--save-interval 5: --save DIR must say where checkpoints go");
	(void)state;
}

static void missing_options_are_named(void **state)
{
	char *words[] = {"train", "--model", "m.json", NULL};
	struct wlb_train_options options;
	struct wlb_error error = {0};
	assert_int_equal(wlb_train_options_parse(3, words, &options, &error), -1);
	assert_non_null(strstr(error.message, "--data-path is needed: dataset PREFIX.bin and PREFIX.idx"));
	assert_non_null(strstr(error.message, "; see 'wlb-worker train --help'"));
	(void)state;
}

/* All that a checkpoint is compared with when a run resumes. */
static void load_says_what_must_be_the_same(void **state)
{
	static const char *const compared[] = {"model",        "dataset", "sequence length",
	                                       "global batch", "packing", "seed"};
	const struct wlb_option *load = wlb_train_option_table.options;
	while (load->name == NULL || strcmp(load->name, "load") != 0)
		load++;
	const char *rule = strstr(load->help, "model");
	assert_non_null(rule);
	for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++)
		assert_non_null(strstr(rule, compared[i]));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_megatrons),
		cmocka_unit_test(values_are_taken),
		cmocka_unit_test(the_batch_ramp_is_megatrons),
		cmocka_unit_test(the_element_type_follows_the_device),
		cmocka_unit_test(wrong_values_are_named),
		cmocka_unit_test(datasets_are_megatrons),
		cmocka_unit_test(unknown_words_are_named),
		cmocka_unit_test(missing_options_are_named),
		cmocka_unit_test(rules_between_options_are_checked),
		cmocka_unit_test(load_says_what_must_be_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
