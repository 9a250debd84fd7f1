#include "common/on_fault.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number of an item, kept to a thousandth, so that it is printed as it was typed. */
struct limit {
	double min, max;
	const char *units[3]; /* that may follow it; NULL-terminated */
	double scale[2];      /* of each unit */
	const char *rule;
};

enum value {
	ACTION,
	LIMIT,
};

static const struct key {
	const char *name;
	enum value value;
	size_t offset; /* in struct wlb_on_fault */
	struct limit limit;
} keys[] = {
	{.name = "crash", .value = ACTION, .offset = offsetof(struct wlb_on_fault, crash)},
	{.name = "hang", .value = ACTION, .offset = offsetof(struct wlb_on_fault, hang)},
	{.name = "slow", .value = ACTION, .offset = offsetof(struct wlb_on_fault, slow)},
	{.name = "corrupt", .value = ACTION, .offset = offsetof(struct wlb_on_fault, corrupt)},
	{.name = "outliers", .value = ACTION, .offset = offsetof(struct wlb_on_fault, outliers)},
	{.name = "hang-after",
         .value = LIMIT,
         .offset = offsetof(struct wlb_on_fault, hang_after_s),
         .limit = {.min = 2,
                   .max = 3600,
                   .units = {"s", "m"},
                   .scale = {1, 60},
                   .rule = "must be a time from 2s to 60m, for example 90s"}},
	{.name = "slow-by",
         .value = LIMIT,
         .offset = offsetof(struct wlb_on_fault, slow_by_percent),
         .limit = {.min = 1,
                   .max = 1000,
                   .units = {"%"},
                   .scale = {1},
                   .rule = "must be a percentage from 1 to 1000, for example 10%"}},
};
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

static const char *const actions[] = {[WLB_FAULT_REPORT] = "report", [WLB_FAULT_EVICT] = "evict"};
enum { ACTION_COUNT = sizeof(actions) / sizeof(actions[0]) };

void wlb_on_fault_init(struct wlb_on_fault *on_fault)
{
	*on_fault = (struct wlb_on_fault){.crash = WLB_FAULT_EVICT,
	                                  .hang = WLB_FAULT_EVICT,
	                                  .slow = WLB_FAULT_REPORT,
	                                  .corrupt = WLB_FAULT_REPORT,
	                                  .outliers = WLB_FAULT_REPORT,
	                                  .hang_after_s = 8,
	                                  .slow_by_percent = 10};
}

static enum wlb_fault_action *action_of(struct wlb_on_fault *on_fault, const struct key *key)
{
	return (enum wlb_fault_action *)((char *)on_fault + key->offset);
}

static double *limit_of(struct wlb_on_fault *on_fault, const struct key *key)
{
	return (double *)((char *)on_fault + key->offset);
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* Returns the action of that name; -1: it is none. */
static int find_action(const char *word)
{
	for (int i = 0; i < ACTION_COUNT; i++)
		if (strcmp(actions[i], word) == 0)
			return i;
	return -1;
}

static const struct key *find_key(const char *name, size_t length)
{
	for (int i = 0; i < KEY_COUNT; i++)
		if (strlen(keys[i].name) == length && strncmp(keys[i].name, name, length) == 0)
			return &keys[i];
	return NULL;
}

/* Returns what a unit multiplies a number by; 0: there is no such unit. No unit is the first one. */
static double scale_of(const struct limit *limit, const char *unit)
{
	if (*unit == '\0')
		return limit->scale[0];
	for (int i = 0; limit->units[i] != NULL; i++)
		if (strcmp(limit->units[i], unit) == 0)
			return limit->scale[i];
	return 0;
}

static int read_limit(const struct key *key, const char *item, const char *word, double *value, struct wlb_error *error)
{
	const struct limit *limit = &key->limit;
	size_t digits = strspn(word, "0123456789.");
	char *end = NULL;
	double number = word[0] >= '0' && word[0] <= '9' ? strtod(word, &end) : NAN;
	double scale = end == word + digits ? scale_of(limit, end) : 0;
	number = round(number * scale * 1000) / 1000;
	if (scale == 0 || !(number >= limit->min && number <= limit->max))
		return wlb_fail(error, "'%.100s': %s %s", item, key->name, limit->rule);
	*value = number;
	return 0;
}

static int read_item(const char *item, struct wlb_on_fault *on_fault, bool named[KEY_COUNT], struct wlb_error *error)
{
	const char *equals = strchr(item, '=');
	const struct key *key = equals != NULL ? find_key(item, (size_t)(equals - item)) : NULL;
	int action = find_action(equals != NULL ? equals + 1 : item);
	if (equals == NULL && action >= 0) {
		for (int i = 0; i < KEY_COUNT; i++) {
			if (keys[i].value != ACTION)
				continue;
			*action_of(on_fault, &keys[i]) = (enum wlb_fault_action)action;
			named[i] = true;
		}
		return 0;
	}
	if (key == NULL || (key->value == ACTION && action < 0))
		return wlb_fail(
			error,
			"'%.100s': an item must be report, evict, KIND=report or KIND=evict with a KIND of "
			"crash, hang, slow, corrupt and outliers, hang-after=SECONDS or slow-by=PERCENT, for example "
			"hang=evict,slow=report,hang-after=90s",
			item);
	named[key - keys] = true;
	if (key->value == LIMIT)
		return read_limit(key, item, equals + 1, limit_of(on_fault, key), error);
	*action_of(on_fault, key) = (enum wlb_fault_action)action;
	return 0;
}

static int read_items(const char *text, struct wlb_on_fault *on_fault, bool named[KEY_COUNT], struct wlb_error *error)
{
	char copy[WLB_ON_FAULT_SIZE];
	struct wlb_on_fault read = *on_fault;
	if (strlen(text) >= sizeof(copy))
		return wlb_fail(error, "'%.60s...': must be shorter than %zu characters; name each kind once", text,
		                sizeof(copy));
	strcpy(copy, text);
	for (char *rest = copy, *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ","))
		if (read_item(item, &read, named, error) != 0)
			return -1;
	*on_fault = read;
	return 0;
}

int wlb_on_fault_parse(const char *text, struct wlb_on_fault *on_fault, struct wlb_error *error)
{
	bool named[KEY_COUNT] = {false};
	return read_items(text, on_fault, named, error);
}

/* ---- writing ----------------------------------------------------------------------------------- */

static void write_named(const struct wlb_on_fault *on_fault, const bool named[KEY_COUNT], char *text, size_t size)
{
	struct wlb_on_fault values = *on_fault;
	size_t length = 0;
	text[0] = '\0';
	for (int i = 0; i < KEY_COUNT && length < size; i++) {
		const char *comma = length > 0 ? "," : "";
		if (!named[i])
			continue;
		if (keys[i].value == ACTION)
			length += (size_t)snprintf(text + length, size - length, "%s%s=%s", comma, keys[i].name,
			                           actions[*action_of(&values, &keys[i])]);
		else
			length += (size_t)snprintf(text + length, size - length, "%s%s=%.7g", comma, keys[i].name,
			                           *limit_of(&values, &keys[i]));
	}
}

void wlb_on_fault_text(const struct wlb_on_fault *on_fault, char *text, size_t size)
{
	bool named[KEY_COUNT];
	for (int i = 0; i < KEY_COUNT; i++)
		named[i] = true;
	write_named(on_fault, named, text, size);
}

int wlb_on_fault_items(const char *text, char *items, size_t size, struct wlb_error *error)
{
	bool named[KEY_COUNT] = {false};
	struct wlb_on_fault read;
	wlb_on_fault_init(&read);
	if (read_items(text, &read, named, error) != 0)
		return -1;
	write_named(&read, named, items, size);
	return 0;
}
