#include "follow/stdout_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What prints each of them:
 * - Megatron-LM: training_log() and evaluate_and_print_results() of megatron/training/training.py, on the last rank:
 *   ` [2026-11-29 05:40:29.123456] iteration       10/     100 | consumed samples:          160 | elapsed time per
 *   iteration (ms): 123.4 | ... | lm loss: 9.123456E+00 | ... |`; before 2024 without the time.
 * - torchtitan: MetricsProcessor.log() and log_validation() of torchtitan/components/metrics.py, with colours:
 *   `step:  1  loss:  8.12345  grad_norm:  1.2345  memory:  1.23GiB(1.30%)  tps: 1,234  tflops: 12.34  mfu: 1.25%`.
 * - nanotron: LoggerWriter.add_scalars_from_list() and human_format() of src/nanotron/logging/base.py:
 *   `iteration: 3 / 15 | consumed_tokens: 1.05M | ... | lm_loss: 5.76 | lr: 0.0003 | ... | eta: 0:00:01`.
 * - Hugging Face: ProgressCallback and PrinterCallback of src/transformers/trainer_callback.py, which print the dict of
 *   Trainer.log, in which epoch always is: `{'loss': 1.694, 'grad_norm': 1.985, 'learning_rate': 3.75e-05, 'epoch':
 *   0.5}`; from version 5 on each value in quotes. The bar is of tqdm.
 * - Lightning: TQDMProgressBar of src/lightning/pytorch/callbacks/progress/tqdm_progress.py: `Epoch 1:  40%|####  |
 *   4/10 [00:00<00:00, 99.38it/s, v_num=0, train_loss=2.300]`. The numbers there are of batches of the epoch: a record
 *   has no step, unless the user logs one. An epoch in which it goes on from a checkpoint is called Training and has no
 *   length: `Training: |          | 11/? [00:00<?, 99.38it/s, v_num=0, train_loss=2.300]`. RichProgressBar prints
 * nothing useful where stdout is no terminal.
 */
const struct wlb_stdout_format wlb_stdout_formats[WLB_STDOUT_FORMATS] = {
	{"Megatron-LM", "elapsed time per iteration (ms)", "\\biteration +(?P<step>\\d+)/ *\\d+ \\|(?P<pairs>.*)", "",
         WLB_STDOUT_RECORD, WLB_STDOUT_BARS},
	{"Megatron-LM", "validation loss at iteration",
         "validation loss at iteration +(?P<step>\\d+)[^|]*\\|(?P<pairs>.*)", "validation/", WLB_STDOUT_RECORD,
         WLB_STDOUT_BARS},
	{"torchtitan", "step: ", "\\bvalidate step: +(?P<step>\\d+) +(?P<pairs>loss: .*)", "validation/",
         WLB_STDOUT_RECORD, WLB_STDOUT_WORDS},
	{"torchtitan", "step: ", "(?:^|[^a-zA-Z_])step: +(?P<step>\\d+) +(?P<pairs>loss: .*)", "", WLB_STDOUT_RECORD,
         WLB_STDOUT_WORDS},
	{"nanotron", "iteration: ", "\\biteration: (?P<step>\\d+) / \\d+ \\|(?P<pairs>.*)", "", WLB_STDOUT_RECORD,
         WLB_STDOUT_BARS},
	{"Hugging Face", "'train_runtime': ", "\\{(?P<pairs>'.*)\\}\\s*$", "run/", WLB_STDOUT_NEEDS_BAR,
         WLB_STDOUT_PYTHON}, /* at the end, of the whole run: its train_loss is that of no step */
	{"Hugging Face", "'epoch': ", "\\{(?P<pairs>'.*)\\}\\s*$", "", WLB_STDOUT_NEEDS_BAR, WLB_STDOUT_PYTHON},
	{"Hugging Face", "%|", "^\\s*\\d+%\\|[^|]*\\| (?P<step>\\d+)/(?P<total>\\d+) \\[", "", WLB_STDOUT_BAR,
         WLB_STDOUT_NO_PAIRS},
	{"Lightning", "Epoch ", "^\\s*Epoch (?P<epoch>\\d+):.* \\d+/\\d+ \\[[^,\\]]*, [^,\\]]*, (?P<pairs>.*)\\]", "",
         WLB_STDOUT_RECORD, WLB_STDOUT_EQUALS},
	{"Lightning", "Training:", "^\\s*Training:.* \\d+/(?:\\d+|\\?) \\[[^,\\]]*, [^,\\]]*, (?P<pairs>.*)\\]", "",
         WLB_STDOUT_RECORD, WLB_STDOUT_EQUALS},
};

static double power_of(char suffix)
{
	static const char suffixes[] = "KMBTPE";
	const char *found = suffix != '\0' ? strchr(suffixes, suffix) : NULL;
	return found != NULL ? pow(1000, (double)(found - suffixes + 1)) : 0;
}

/* Whether what is behind a number is a unit: a percent sign, or letters and what is in brackets behind them. */
static bool is_unit(const char *text)
{
	size_t letters = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%");
	return letters > 0 && (text[letters] == '\0' || text[letters] == '(');
}

bool wlb_stdout_number(const char *text, size_t length, double *value)
{
	enum { NUMBER_MOST = 48 };
	char plain[NUMBER_MOST + 1], *end;
	size_t used = 0;
	for (size_t i = 0; i < length && used < NUMBER_MOST; i++)
		if (text[i] != ',' && !(text[i] == ' ' && used == 0))
			plain[used++] = text[i];
	while (used > 0 && plain[used - 1] == ' ')
		used--;
	plain[used] = '\0';
	if (used == 0 || used == NUMBER_MOST || strpbrk(plain, "xX") != NULL) /* strtod reads hexadecimal numbers */
		return false;
	*value = strtod(plain, &end);
	double power = end[0] != '\0' && end[1] == '\0' ? power_of(end[0]) : 0;
	if (power > 0)
		*value *= power;
	return end > plain && (*end == '\0' || power > 0 || is_unit(end));
}

static void add(struct wlb_followed *record, const char *prefix, const char *name, size_t name_length, const char *text,
                size_t length)
{
	char whole[2 * WLB_VALUE_NAME_SIZE];
	double value;
	if (!wlb_stdout_number(text, length, &value))
		return;
	if ((name_length == 4 && memcmp(name, "step", 4) == 0) ||
	    (name_length == 11 && memcmp(name, "global_step", 11) == 0)) {
		wlb_followed_set_step(record, WLB_FOLLOWED_STEP, value);
		return;
	}
	int bytes = snprintf(whole, sizeof(whole), "%s%.*s", prefix, (int)name_length, name);
	wlb_followed_add(record, whole, bytes < (int)sizeof(whole) ? (size_t)bytes : sizeof(whole) - 1, value);
}

/* The same without quotes and spaces around the name and the value. */
static void add_trimmed(struct wlb_followed *record, const char *prefix, const char *name, size_t name_length,
                        const char *text, size_t length)
{
	static const char around[] = " \t'\"";
	while (name_length > 0 && strchr(around, *name) != NULL) {
		name++;
		name_length--;
	}
	while (name_length > 0 && strchr(around, name[name_length - 1]) != NULL)
		name_length--;
	while (length > 0 && strchr(around, *text) != NULL) {
		text++;
		length--;
	}
	while (length > 0 && strchr(around, text[length - 1]) != NULL)
		length--;
	add(record, prefix, name, name_length, text, length);
}

/* Items between `item_end`, in each a name, `name_end` and a value. */
static void read_items(struct wlb_followed *record, const char *prefix, const char *pairs, size_t length,
                       const char *item_end, const char *name_end)
{
	const char *end = pairs + length;
	while (pairs < end) {
		const char *item = memmem(pairs, (size_t)(end - pairs), item_end, strlen(item_end));
		const char *next = item != NULL ? item + strlen(item_end) : end, *behind = item != NULL ? item : end;
		const char *colon = memmem(pairs, (size_t)(behind - pairs), name_end, strlen(name_end));
		if (colon != NULL)
			add_trimmed(record, prefix, pairs, (size_t)(colon - pairs), colon + strlen(name_end),
			            (size_t)(behind - colon) - strlen(name_end));
		pairs = next;
	}
}

/* A word with a colon at its end is the name of the value behind it. */
static void read_words(struct wlb_followed *record, const char *prefix, const char *pairs, size_t length)
{
	const char *name = NULL;
	size_t name_length = 0;
	for (size_t i = 0; i < length;) {
		const char *word = pairs + i;
		size_t bytes = 0;
		while (i + bytes < length && word[bytes] != ' ')
			bytes++;
		i += bytes + 1;
		if (bytes > 1 && word[bytes - 1] == ':') {
			name = word;
			name_length = bytes - 1;
		} else if (bytes > 0 && name != NULL) {
			add(record, prefix, name, name_length, word, bytes);
			name = NULL;
		}
	}
}

void wlb_stdout_read_pairs(struct wlb_followed *record, const struct wlb_stdout_format *format, const char *pairs,
                           size_t length)
{
	switch (format->pairs) {
	case WLB_STDOUT_NO_PAIRS:
		break;
	case WLB_STDOUT_BARS:
		read_items(record, format->prefix, pairs, length, "|", ": ");
		break;
	case WLB_STDOUT_WORDS:
		read_words(record, format->prefix, pairs, length);
		break;
	case WLB_STDOUT_PYTHON:
		read_items(record, format->prefix, pairs, length, ", ", ": ");
		break;
	case WLB_STDOUT_EQUALS:
		read_items(record, format->prefix, pairs, length, ", ", "=");
		break;
	}
}
