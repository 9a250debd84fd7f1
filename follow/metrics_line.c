#include "follow/metrics_line.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* JSON has no such numbers; Python and others write them as these words. */
static const struct {
	const char *word;
	double value;
} words[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};

enum { RANKS_MOST = 1 << 24 };
enum { WORDS = sizeof(words) / sizeof(words[0]) };

/* The word at the beginning of the text, which ends there, or -1. */
static int word_at(const char *text)
{
	for (int i = 0; i < WORDS; i++) {
		size_t bytes = strlen(words[i].word);
		if (strncmp(text, words[i].word, bytes) == 0 && strchr(",} \t\r]", text[bytes]) != NULL)
			return i;
	}
	return -1;
}

/* Copies the line with the words in quotes, so that they are texts. `to` has room for a line of `length` bytes in which
 * every third byte begins a word. */
static void quote_words(char *to, const char *from)
{
	bool in_string = false;
	while (*from != '\0') {
		int word = in_string ? -1 : word_at(from);
		if (word >= 0) {
			size_t bytes = strlen(words[word].word);
			*to++ = '"';
			memcpy(to, from, bytes);
			to += bytes;
			*to++ = '"';
			from += bytes;
			continue;
		}
		if (*from == '"')
			in_string = !in_string;
		if (in_string && *from == '\\' && from[1] != '\0')
			*to++ = *from++;
		*to++ = *from++;
	}
	*to = '\0';
}

/* Whether the field is a number, which *value is set to. */
static bool read_number(const json_t *field, double *value)
{
	if (json_is_string(field)) {
		int word = word_at(json_string_value(field));
		if (word < 0 || strcmp(json_string_value(field), words[word].word) != 0)
			return false;
		*value = words[word].value;
		return true;
	}
	*value = json_is_boolean(field) ? json_is_true(field) : json_number_value(field);
	return json_is_number(field) || json_is_boolean(field);
}

static void read_field(struct wlb_metrics_line *line, const char *name, const json_t *field)
{
	double value;
	if (strcmp(name, "checkpoint") == 0 && json_is_string(field)) {
		if (json_string_length(field) < sizeof(line->checkpoint))
			wlb_text_store(line->checkpoint, sizeof(line->checkpoint), json_string_value(field));
		else
			line->record.left_out++;
	} else if (!read_number(field, &value)) {
		line->record.left_out += !json_is_null(field);
	} else if (strcmp(name, "step") == 0) {
		wlb_followed_set_step(&line->record, WLB_FOLLOWED_STEP, value);
	} else if (strcmp(name, "step_of_attempt") == 0) {
		if (line->record.step_kind == WLB_FOLLOWED_NO_STEP)
			wlb_followed_set_step(&line->record, WLB_FOLLOWED_STEP_OF_ATTEMPT, value);
	} else if (strcmp(name, "rank") == 0) {
		line->rank = value >= 0 && value < RANKS_MOST ? (int)value : -1;
	} else if (strcmp(name, "time") == 0) {
		line->record.time_s = value > 0 && value < 1e11 ? value : 0;
	} else {
		wlb_followed_add(&line->record, name, strlen(name), value);
	}
}

static json_t *parse(const char *text, struct wlb_error *error)
{
	size_t stored_size = 3 * strlen(text) + 1; /* a byte that is not UTF-8 becomes three */
	char *stored = malloc(stored_size), *quoted = malloc(2 * stored_size);
	json_error_t at = {.line = 0};
	json_t *object = NULL;
	if (stored != NULL && quoted != NULL) {
		wlb_text_store(stored, stored_size, text);
		quote_words(quoted, stored);
		object = json_loads(quoted, 0, &at);
	}
	if (object == NULL)
		wlb_fail(error, "a line of WLB_METRICS_FILE is no JSON: %s at column %d: write one object a line",
		         at.text, at.column);
	free(stored);
	free(quoted);
	return object;
}

int wlb_metrics_line_read(struct wlb_metrics_line *line, const char *text, size_t length, struct wlb_error *error)
{
	const char *name;
	json_t *field;
	wlb_followed_begin(&line->record);
	line->checkpoint[0] = '\0';
	line->rank = -1;
	if (strlen(text) < length)
		return wlb_fail(error, "a line of WLB_METRICS_FILE has a NUL byte: write one JSON object a line");
	if (text[strspn(text, " \t\r")] == '\0')
		return 0;
	json_t *object = parse(text, error);
	if (object == NULL)
		return -1;
	int rc = 1;
	if (!json_is_object(object))
		rc = wlb_fail(error, "a line of WLB_METRICS_FILE is a JSON array: write one object a line, "
		                     "such as {\"step\": 1, \"loss\": 2.5}");
	json_object_foreach(object, name, field) read_field(line, name, field);
	json_decref(object);
	return rc;
}
