#include "worker/checkpoint/hyperparameters.h"

#include <float.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const styles[] = {
	[WLB_LR_CONSTANT] = "constant", [WLB_LR_LINEAR] = "linear", [WLB_LR_COSINE] = "cosine"};
enum { STYLES = sizeof(styles) / sizeof(styles[0]) };

enum kind { REAL, COUNT, STYLE };

static const struct row {
	const char *key;
	const char *option;
	enum kind kind;
	size_t offset;
	double least, most; /* of a REAL */
	int of_decay;       /* without an effect where the learning rate is constant after warm-up */
} rows[] = {
#define ROW(kind, name, option, least, most, of_decay)                                                                 \
	{                                                                                                              \
#name, option, kind, offsetof(struct wlb_hyperparameters, name), least, most, of_decay                 \
	}
	ROW(REAL, lr, "--lr", DBL_MIN, 1e3, 0),
	ROW(REAL, min_lr, "--min-lr", 0, 1e3, 1),
	ROW(COUNT, lr_warmup_iters, "--lr-warmup-iters", 0, 0, 0),
	ROW(COUNT, lr_decay_iters, "--lr-decay-iters (by default --train-iters)", 0, 0, 1),
	ROW(STYLE, lr_decay_style, "--lr-decay-style", 0, 0, 0),
	ROW(REAL, weight_decay, "--weight-decay", 0, 1e3, 0),
	ROW(REAL, adam_beta1, "--adam-beta1", 0, 1 - DBL_EPSILON, 0),
	ROW(REAL, adam_beta2, "--adam-beta2", 0, 1 - DBL_EPSILON, 0),
	ROW(REAL, adam_eps, "--adam-eps", FLT_MIN, 1, 0),
	ROW(REAL, clip_grad, "--clip-grad", 0, 1e9, 0),
#undef ROW
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const void *value_of(const struct wlb_hyperparameters *values, const struct row *row)
{
	return (const char *)values + row->offset;
}

json_t *wlb_hyperparameters_format(const struct wlb_hyperparameters *values)
{
	json_t *json = json_object();
	for (int i = 0; i < ROWS; i++) {
		const void *value = value_of(values, &rows[i]);
		json_t *member = rows[i].kind == REAL    ? json_real(*(const double *)value)
		                 : rows[i].kind == COUNT ? json_integer(*(const int64_t *)value)
		                                         : json_string(styles[*(const int *)value]);
		if (json_object_set_new(json, rows[i].key, member) < 0) {
			json_decref(json);
			return NULL;
		}
	}
	return json;
}

static int parse_style(const char *text)
{
	int style = 0;
	while (style < STYLES && (text == NULL || strcmp(text, styles[style]) != 0))
		style++;
	return style;
}

int wlb_hyperparameters_parse(const json_t *json, struct wlb_hyperparameters *values, struct wlb_error *error)
{
	for (int i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];
		const json_t *member = json_object_get(json, row->key);
		void *value = (char *)values + row->offset;
		double number = json_number_value(member);
		int style = parse_style(json_string_value(member));
		if (row->kind == REAL && json_is_number(member) && number >= row->least && number <= row->most)
			*(double *)value = number;
		else if (row->kind == COUNT && json_is_integer(member) && json_integer_value(member) >= 0)
			*(int64_t *)value = json_integer_value(member);
		else if (row->kind == STYLE && style < STYLES)
			*(int *)value = style;
		else
			return wlb_fail(error, "%s is missing, or no value that the option %s can have", row->key,
			                row->option);
	}
	return 0;
}

/* Writes a value with the fewest digits that are read as the same number. */
static void format_value(const struct row *row, const void *value, char text[32])
{
	if (row->kind == STYLE)
		snprintf(text, 32, "%s", styles[*(const int *)value]);
	else if (row->kind == COUNT)
		snprintf(text, 32, "%lld", (long long)*(const int64_t *)value);
	for (int digits = 6; row->kind == REAL && digits <= 17; digits++) {
		snprintf(text, 32, "%.*g", digits, *(const double *)value);
		if (strtod(text, NULL) == *(const double *)value)
			break;
	}
}

static int is_same(const struct row *row, const void *was, const void *is)
{
	if (row->kind == REAL)
		return *(const double *)was == *(const double *)is;
	return row->kind == COUNT ? *(const int64_t *)was == *(const int64_t *)is
	                          : *(const int *)was == *(const int *)is;
}

int wlb_hyperparameters_compare(const struct wlb_hyperparameters *was, const struct wlb_hyperparameters *is, char *text,
                                size_t size)
{
	int count = 0, stays = was->lr_decay_style == WLB_LR_CONSTANT && is->lr_decay_style == WLB_LR_CONSTANT;
	size_t length = 0;
	text[0] = '\0';
	for (int i = 0; i < ROWS; i++) {
		char before[32], now[32];
		const void *a = value_of(was, &rows[i]), *b = value_of(is, &rows[i]);
		if (is_same(&rows[i], a, b) || (rows[i].of_decay && stays))
			continue;
		format_value(&rows[i], a, before);
		format_value(&rows[i], b, now);
		if (length < size)
			length += (size_t)snprintf(text + length, size - length, "%s%s was %s, is %s",
			                           count > 0 ? "; " : "", rows[i].option, before, now);
		count++;
	}
	return count;
}
