#include "coordinator/wlb/logs/output_path.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH_MAX = 10 }; /* of srun, which takes a greater one for this */

/* One thing that is replaced, "%5t". */
struct field {
	int width; /* of a number, filled with zeros */
	char letter;
	size_t length; /* in the pattern */
};

/* srun replaces nothing where a backslash is in the name. */
static bool is_plain(const char *pattern)
{
	return strchr(pattern, '\\') != NULL;
}

static struct field read_field(const char *at)
{
	struct field field = {.length = 1};
	while (isdigit((unsigned char)at[field.length])) {
		if (field.width <= WIDTH_MAX)
			field.width = field.width * 10 + (at[field.length] - '0');
		field.length++;
	}
	field.width = field.width > WIDTH_MAX ? WIDTH_MAX : field.width;
	field.letter = at[field.length];
	field.length += field.letter != '\0';
	return field;
}

static bool has_field(const char *pattern, const char *letters)
{
	if (is_plain(pattern))
		return false;
	for (const char *at = strchr(pattern, '%'); at != NULL; at = strchr(at, '%')) {
		struct field field = read_field(at);
		if (field.letter != '\0' && strchr(letters, field.letter) != NULL)
			return true;
		at += field.length;
	}
	return false;
}

bool wlb_output_is_of_rank(const char *pattern)
{
	return has_field(pattern, "t");
}

bool wlb_output_is_of_node(const char *pattern)
{
	return has_field(pattern, "Nn");
}

static int write_number(const char *text, const struct field *field, char *to, size_t size)
{
	if (text == NULL || !isdigit((unsigned char)text[0]))
		return -1;
	return snprintf(to, size, "%0*lld", field->width, strtoll(text, NULL, 10));
}

static int write_int(int64_t value, const struct field *field, char *to, size_t size)
{
	return value < 0 ? -1 : snprintf(to, size, "%0*lld", field->width, (long long)value);
}

static int write_text(const char *text, char *to, size_t size)
{
	return text == NULL || *text == '\0' ? -1 : snprintf(to, size, "%s", text);
}

/* Returns the length, as snprintf does; -1: what it depends on is not known. */
static int write_field(const struct field *field, const struct wlb_output_facts *facts, char *to, size_t size)
{
	const char *step = facts->step != NULL ? strchr(facts->step, '.') : NULL;
	const char *task = facts->alias != NULL ? strchr(facts->alias, '_') : NULL;
	switch (field->letter) {
	case '%':
		return snprintf(to, size, "%%");
	case 'j':
		return write_int(facts->job_id, field, to, size);
	case 'J':
		return step != NULL ? snprintf(to, size, "%lld%s", (long long)facts->job_id, step) : -1;
	case 's':
		return step != NULL ? write_number(step + 1, field, to, size) : -1;
	case 'A':
		return task != NULL ? write_number(facts->alias, field, to, size)
		                    : write_int(facts->job_id, field, to, size);
	case 'a':
		return task != NULL ? write_number(task + 1, field, to, size) : -1;
	case 't':
		return write_int(facts->rank, field, to, size);
	case 'n':
		return facts->node != NULL ? write_int(facts->node_number, field, to, size) : -1;
	case 'N':
		return write_text(facts->node, to, size);
	case 'u':
		return write_text(facts->user, to, size);
	case 'x':
		return write_text(facts->job_name, to, size);
	default:
		return -1;
	}
}

int wlb_output_path(const char *pattern, const struct wlb_output_facts *facts, char *path, size_t size,
                    struct wlb_error *error)
{
	size_t used = 0;
	for (const char *at = pattern; *at != '\0' && used < size;) {
		struct field field = {.length = 1};
		int length = 1;
		if (*at == '%' && !is_plain(pattern)) {
			field = read_field(at);
			length = write_field(&field, facts, path + used, size - used);
			if (length < 0)
				return wlb_fail(error, "%.*s in %.200s is not known of this attempt", (int)field.length,
				                at, pattern);
		} else {
			path[used] = *at;
		}
		used += (size_t)length;
		at += field.length;
	}
	if (used >= size)
		return wlb_fail(error, "the path of %.200s is longer than %zu bytes", pattern, size - 1);
	path[used] = '\0';
	return 0;
}
