/* What trainers print, line by line, and what is read of it. The files in samples/ are whole outputs; the other lines
 * are made of the format strings of the trainers' code. */
#include "follow/stdout_line.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "follow/lines.h"
#include "follow/stdout_format.h"

static struct wlb_error error;
static struct wlb_followed record;
static char text[8192];

/* Adds "STEP name=value ..." to `text`, with ? for no step. */
static void describe(void)
{
	char *to = text + strlen(text);
	if (record.step_kind == WLB_FOLLOWED_NO_STEP)
		to += sprintf(to, "?");
	else
		to += sprintf(to, "%d", (int)record.step);
	for (int i = 0; i < record.count; i++)
		to += sprintf(to, " %s=%.8g", record.values[i].name, record.values[i].value);
	strcpy(to, "\n");
}

/* What all lines of the text say, line by line. */
static const char *read_text(const char *step_pattern, const char *bytes, size_t count)
{
	static struct wlb_lines lines;
	struct wlb_stdout *reader = wlb_stdout_open(step_pattern, &error);
	const char *line;
	size_t length;
	assert_non_null(reader);
	text[0] = '\0';
	wlb_lines_begin(&lines, 0, true);
	while ((line = wlb_lines_next(&lines, &bytes, &count, &length)) != NULL)
		if (wlb_stdout_read(reader, line, length, lines.line_at, &record))
			describe();
	if (wlb_stdout_flush(reader, &record))
		describe();
	wlb_stdout_close(reader);
	return text;
}

static const char *read_lines(const char *bytes)
{
	return read_text(NULL, bytes, strlen(bytes));
}

static const char *read_sample(const char *name)
{
	static char bytes[65536];
	snprintf(bytes, sizeof(bytes), WLB_SAMPLES "/%s", name);
	FILE *file = fopen(bytes, "r");
	assert_non_null(file);
	size_t count = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	assert_in_range(count, 100, sizeof(bytes) - 1);
	return read_text(NULL, bytes, count);
}

static void megatron_is_read(void **state)
{
	(void)state;
	assert_string_equal(
		read_lines(
			" [2026-11-29 05:40:29.123456] iteration       10/     100 | consumed samples:          160 "
			"| elapsed time per iteration (ms): 123.4 | throughput per GPU (TFLOP/s/GPU): 45.6 | learning "
			"rate: 1.500000E-04 | global batch size:    16 | lm loss: 9.123456E+00 | loss scale: 1.0 | "
			"grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
			"7:  iteration       11/     100 | consumed samples: 1 | elapsed time per iteration (ms): "
			"100.0 | "
			"lm loss: NAN |\n"),
		"10 consumed samples=160 step_time_s=0.1234 throughput per GPU (TFLOP/s/GPU)=45.6 lr=0.00015 "
		"global batch size=16 loss=9.123456 loss scale=1 grad_norm=1.234 number of skipped iterations=0 "
		"number of nan iterations=0\n"
		"11 consumed samples=1 step_time_s=0.1 loss=nan\n");
	assert_string_equal(read_lines(" validation loss at iteration 10 on validation set | lm loss value: "
	                               "9.012345E+00 | lm loss PPL: 8.203456E+03 | \n"),
	                    "10 validation/lm loss value=9.012345 validation/lm loss PPL=8203.456\n");
}

static void torchtitan_is_read(void **state)
{
	(void)state;
	assert_string_equal(
		read_lines("[rank0]:[titan] 2026-11-29 05:40:29,123 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: "
	                   " 8.12345  \x1b[38;2;180;60;0mgrad_norm:  1.2345  \x1b[39mmemory:  1.23GiB(1.30%)  "
	                   "\x1b[34mtps: 1,234  \x1b[36mtflops: 12.34  \x1b[35mmfu: 1.25%\x1b[39m\n"
	                   "[titan] 2026-11-29 05:40:30,123 - root - INFO - step: 200  loss: 12.50000  grad_norm: "
	                   "10.2345  memory: 61.23GiB(64.41%)  tps: 12,345,678  tflops: 1,012.34  mfu: N/A\n"
	                   "[titan] 2026-11-29 05:40:31,123 - root - INFO - validate step: 200  loss:  7.1234  memory: "
	                   " 1.23GiB(1.30%)  tps: 321\n"),
		"1 loss=8.12345 grad_norm=1.2345 memory=1.23 tokens_per_s_per_device=1234 tflops=12.34 mfu=1.25\n"
		"200 loss=12.5 grad_norm=10.2345 memory=61.23 tokens_per_s_per_device=12345678 tflops=1012.34\n"
		"200 validation/loss=7.1234 validation/memory=1.23 validation/tps=321\n");
}

static void nanotron_is_read(void **state)
{
	(void)state;
	assert_string_equal(
		read_lines(
			"\x1b[2;3m11/29 05:40:29 [INFO|DP=0|n1]\x1b[0m: iteration: 3 / 15 | consumed_tokens: 1.05M | "
			"time_per_iteration_ms: 1.14K | tokens_per_sec: 2.24K | tokens_per_sec_per_gpu: 1.12K | "
			"global_batch_size: 256 | lm_loss: 5.76 | lr: 0.0003 | model_tflops_per_gpu: 7.22 | eta: "
			"0:00:01\n"),
		"3 consumed_tokens=1050000 step_time_s=1.14 tokens_per_s=2240 tokens_per_s_per_device=1120 "
		"global_batch_size=256 loss=5.76 lr=0.0003 model_tflops_per_gpu=7.22\n");
}

/* The step of a record is in the bar that is drawn again behind it; that of validation is another bar. */
static void hugging_face_is_read(void **state)
{
	(void)state;
	assert_string_equal(read_sample("transformers-5.24.out"),
	                    "4 loss=1.694 grad_norm=1.985 lr=3.75e-05 epoch=0.5\n"
	                    "6 eval_loss=1.557 eval_runtime=0.0019 eval_samples_per_second=16860 "
	                    "eval_steps_per_second=2107 epoch=0.75\n"
	                    "8\n"
	                    "8 loss=0.5751 grad_norm=2.649 lr=2.083e-05 epoch=1\n"
	                    "12 loss=0.815 grad_norm=3.247 lr=4.167e-06 epoch=1.5\n"
	                    "12 eval_loss=1.186 eval_runtime=0.0019 eval_samples_per_second=16480 "
	                    "eval_steps_per_second=2060 epoch=1.5\n"
	                    "12 run/train_runtime=0.1879 run/train_samples_per_second=255.4 "
	                    "run/train_steps_per_second=63.86 run/train_loss=1.028 run/epoch=1.5\n");
}

static void hugging_face_without_its_bar_has_no_step(void **state)
{
	(void)state;
	assert_string_equal(read_lines("0: {'loss': 2.5, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
	                               "{'loss': 2.25, 'learning_rate': 0.0, 'epoch': 0.2, 'note': 'a, b'}\n"
	                               "{'a': 1}\n{'loss': 1.0, 'step': 7, 'epoch': 0.2}\r\n"),
	                    "? loss=2.5 grad_norm=nan lr=1e-05 epoch=0.1\n"
	                    "? loss=2.25 lr=0 epoch=0.2\n"
	                    "7 loss=1 epoch=0.2\n");
	/* Bars of something else are none of training. */
	assert_string_equal(read_lines("Map: 100%|####| 9/9 [00:01<00:00, 9.5it/s]\r 50%|##  | 1/2 [00:01<00:00]\r"),
	                    "");
}

static void a_held_record_is_given_after_some_lines(void **state)
{
	struct wlb_stdout *reader = wlb_stdout_open(NULL, &error);
	const char *line = "{'loss': 2.5, 'epoch': 0.1}";
	int lines = 0;
	(void)state;
	assert_false(wlb_stdout_read(reader, line, strlen(line), 77, &record));
	assert_int_equal(wlb_stdout_held_at(reader), 77);
	while (!wlb_stdout_read(reader, "x", 1, 100, &record))
		assert_in_range(++lines, 0, 100);
	assert_int_equal(record.at, 77);
	assert_int_equal(record.count, 2);
	assert_int_equal(wlb_stdout_held_at(reader), -1);
	assert_false(wlb_stdout_flush(reader, &record));
	wlb_stdout_close(reader);
}

/* A bar has the number of the batch in its epoch, which is no step. */
static void lightning_is_read(void **state)
{
	(void)state;
	const char *found = read_sample("lightning-2.6.out");
	assert_non_null(strstr(found, "? epoch=1 v_num=0 loss=0.0617 val_loss=0.47\n"));
	assert_null(strstr(found, "10 "));
	assert_string_equal(read_lines("\rEpoch 2:  50%|##  | 5/10 [00:00<00:00, 62.13it/s, v_num=0, loss=0.5, "
	                               "global_step=25.00]\n"),
	                    "25 epoch=2 v_num=0 loss=0.5\n");
	/* It goes on from a checkpoint within an epoch. */
	assert_string_equal(read_lines("\rTraining: |          | 0/? [00:00<?, ?it/s]\r"
	                               "Training: |          | 11/? [00:00<?, 62.13it/s, v_num=1, loss=0.25, "
	                               "global_step=11.00]\rTraining: |          | 12/? [00:01<?, 60.1it/s, v_num=1, "
	                               "loss=0.125]\rTraining: done 3/? [a, b]\n"),
	                    "11 v_num=1 loss=0.25\n? v_num=1 loss=0.125\n");
}

static void a_pattern_of_the_user_is_the_only_one(void **state)
{
	const char *named = "it=(?P<step>\\d+).*loss=(?P<loss>\\S+)(?: acc=(?P<accuracy>\\S+))?",
		   *lines = "it=5 lr=1 loss=2.5 acc=50%\nit=6 loss=nan\nit=x loss=1\nstep: 1  loss:  8.1\n";
	(void)state;
	assert_string_equal(read_text(named, lines, strlen(lines)), "5 loss=2.5 accuracy=50\n6 loss=nan\n");
	lines = "[7] 2.5 1,024\n";
	assert_string_equal(read_text("\\[(\\d+)\\] (\\S+) (\\S+)", lines, strlen(lines)), "7 loss=2.5 tokens=1024\n");
	assert_null(wlb_stdout_open("loss=\\d+", &error));
	assert_non_null(strstr(error.message, "has no group"));
	assert_null(wlb_stdout_open("(a)\\1", &error));
}

static void numbers_are_read_as_trainers_print_them(void **state)
{
	static const struct {
		const char *text;
		double value;
	} numbers[] = {{"1,234", 1234}, {" 2.5e-3 ", 2.5e-3},
	               {"5.62%", 5.62}, {"5.20GiB(3.40%)", 5.2},
	               {"1.5K", 1500},  {"2M", 2e6},
	               {"3B", 3e9},     {"-inf", -HUGE_VAL},
	               {"12ms", 12},    {"-1", -1}};
	static const char *const none[] = {"", "N/A", "0:00:01", "0x10", "1-2", "-", "1.2.3", "5 6", "1,2)"};
	double value;
	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_true(wlb_stdout_number(numbers[i].text, strlen(numbers[i].text), &value));
		assert_true(value == numbers[i].value);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(wlb_stdout_number(none[i], strlen(none[i]), &value));
	assert_true(wlb_stdout_number("nan", 3, &value) && isnan(value));
}

static void long_lines_are_not_read(void **state)
{
	static char line[WLB_STDOUT_LINE_MOST + 200];
	const char *begin = "step:  1  loss:  8.12345  grad_norm: 1.0 ";
	struct wlb_stdout *reader = wlb_stdout_open(NULL, &error);
	(void)state;
	memset(line, ' ', sizeof(line));
	memcpy(line, begin, strlen(begin));
	assert_true(wlb_stdout_read(reader, line, WLB_STDOUT_LINE_MOST, 0, &record));
	assert_false(wlb_stdout_read(reader, line, WLB_STDOUT_LINE_MOST + 1, 0, &record));
	wlb_stdout_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(megatron_is_read),
		cmocka_unit_test(torchtitan_is_read),
		cmocka_unit_test(nanotron_is_read),
		cmocka_unit_test(hugging_face_is_read),
		cmocka_unit_test(hugging_face_without_its_bar_has_no_step),
		cmocka_unit_test(a_held_record_is_given_after_some_lines),
		cmocka_unit_test(lightning_is_read),
		cmocka_unit_test(a_pattern_of_the_user_is_the_only_one),
		cmocka_unit_test(numbers_are_read_as_trainers_print_them),
		cmocka_unit_test(long_lines_are_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
