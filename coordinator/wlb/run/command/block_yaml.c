#include "coordinator/wlb/run/command/block_yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"

/* A value in a text. */
struct range {
	size_t start, length;
};

/* Whether nothing but a comment follows. */
static bool is_end(const char *at)
{
	at += strspn(at, " \t\r");
	return *at == '\n' || *at == '\0' || *at == '#';
}

/* Returns what follows "name:" at the beginning of the text; NULL: it begins otherwise. */
static const char *after_name(const char *at, const char *name)
{
	size_t length = strlen(name);
	return strncmp(at, name, length) == 0 && at[length] == ':' ? at + length + 1 : NULL;
}

static struct range value_at(const char *text, const char *at)
{
	const char *start = at + strspn(at, " \t"), *end = start;
	while (*end != '\n' && *end != '\0' && !((end[0] == ' ' || end[0] == '\t') && end[1] == '#'))
		end++;
	while (end > start && strchr(" \t\r", end[-1]) != NULL)
		end--;
	return (struct range){(size_t)(start - text), (size_t)(end - start)};
}

/* Finds the last value of that name, which is the one that counts. */
static bool find_value(const char *text, const char *section, const char *key, struct range *range)
{
	bool is_found = false, is_within = false;
	size_t indent = 0;
	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t blanks = strspn(line, " ");
		const char *rest;
		if (is_end(line))
			continue;
		if (blanks == 0) {
			rest = after_name(line, section);
			is_within = rest != NULL && is_end(rest);
			indent = 0;
			continue;
		}
		indent = indent > 0 ? indent : blanks;
		rest = is_within && blanks == indent ? after_name(line + blanks, key) : NULL;
		if (rest == NULL || is_end(rest))
			continue;
		*range = value_at(text, rest);
		is_found = true;
	}
	return is_found;
}

static int fail_missing(const char *section, const char *key, struct wlb_error *error)
{
	return wlb_fail(error, "it has no line '  %s: N' below a line '%s:'; write it in block style", key, section);
}

bool wlb_block_yaml_has(const char *text, const char *section, const char *key)
{
	struct range range;
	return find_value(text, section, key, &range);
}

int wlb_block_yaml_number(const char *text, const char *section, const char *key, int64_t *number,
                          struct wlb_error *error)
{
	struct range range;
	char name[128], value[32];
	if (!find_value(text, section, key, &range))
		return fail_missing(section, key, error);
	snprintf(name, sizeof(name), "%s.%s", section, key);
	snprintf(value, sizeof(value), "%.*s", (int)(range.length < sizeof(value) ? range.length : sizeof(value)),
	         text + range.start);
	return wlb_number_parse(name, value, 1, 1 << 30, number, error);
}

int wlb_block_yaml_set(char **text, const char *section, const char *key, const char *value, struct wlb_error *error)
{
	struct range range;
	char *made;
	if (!find_value(*text, section, key, &range))
		return fail_missing(section, key, error);
	if (asprintf(&made, "%.*s%s%s", (int)range.start, *text, value, *text + range.start + range.length) < 0)
		return wlb_fail(error, "out of memory");
	free(*text);
	*text = made;
	return 0;
}
