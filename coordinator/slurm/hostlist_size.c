#include "coordinator/slurm/hostlist_size.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Numbers in brackets; more digits than 18 could overflow an int64_t. */
enum { DIGITS_MOST = 18, SHOWN_BYTES = 60 };

/* The expression, and how far it was read. */
struct reader {
	const char *text, *at;
	int64_t most;
	int64_t name_bytes; /* of the name at `at`, at most */
};

/* Fails with what was read before the mistake, which is printable ASCII, while the rest may be anything. */
static int refuse(const struct reader *r, const char *rule, struct wlb_error *error)
{
	int before = (int)(r->at - r->text), shown = before < SHOWN_BYTES ? before : SHOWN_BYTES;
	return wlb_fail(error, "byte %d, after '%.*s': %s; write node lists as Slurm does: n[1-3,5],login", before + 1,
	                shown, r->at - shown, rule);
}

static int refuse_many(const struct reader *r, struct wlb_error *error)
{
	char rule[120];
	snprintf(rule, sizeof(rule), "the list has more than %lld names, the maximum: name each node once",
	         (long long)r->most);
	return refuse(r, rule, error);
}

/* Reads the digits of a number; *digits is how many they are. */
static int read_number(struct reader *r, int64_t *number, int64_t *digits, struct wlb_error *error)
{
	*number = 0;
	for (*digits = 0; *r->at >= '0' && *r->at <= '9'; r->at++, ++*digits) {
		if (*digits == DIGITS_MOST)
			return refuse(r, "a number must have at most 18 digits", error);
		*number = *number * 10 + (*r->at - '0');
	}
	return *digits > 0 ? 0 : refuse(r, "must be a number", error);
}

/* Reads "1-3" or "5" inside brackets and adds its numbers to *count. Numbers of "01-3" have the two digits of the
 * first, those of "9-10" up to the two of the last. */
static int read_range(struct reader *r, int64_t *count, int64_t *widest, struct wlb_error *error)
{
	int64_t first, last, digits, last_digits = 0;
	if (read_number(r, &first, &digits, error) < 0)
		return -1;
	last = first;
	if (*r->at == '-') {
		r->at++;
		if (read_number(r, &last, &last_digits, error) < 0)
			return -1;
		if (last < first)
			return refuse(r, "the end of a range must not be below its begin", error);
	}
	if (last_digits > digits)
		digits = last_digits;
	if (digits > *widest)
		*widest = digits;
	if (last - first >= r->most - *count)
		return refuse_many(r, error);
	*count += last - first + 1;
	return 0;
}

/* Reads "[1-3,5]" and multiplies *names by its numbers. */
static int read_brackets(struct reader *r, int64_t *names, struct wlb_error *error)
{
	int64_t count = 0, widest = 0;
	do {
		r->at++;
		if (read_range(r, &count, &widest, error) < 0)
			return -1;
	} while (*r->at == ',');
	if (*r->at != ']')
		return refuse(r, "must be ']', ',' or '-'", error);
	r->at++;
	r->name_bytes += widest;
	if (count > r->most / *names)
		return refuse_many(r, error);
	*names *= count;
	return 0;
}

static int read_character(struct reader *r, struct wlb_error *error)
{
	if (*r->at <= ' ' || *r->at > '~' || strchr("]\"'\\", *r->at) != NULL)
		return refuse(r, "must be a letter, a digit or '-', '_', '.' of a name", error);
	r->at++;
	r->name_bytes++;
	return 0;
}

/* Reads the names of one expression, up to ',' or the end. Returns how many they are. */
static int64_t read_item(struct reader *r, struct wlb_error *error)
{
	int64_t names = 1;
	int has_brackets = 0, ends_with_them = 0;
	r->name_bytes = 0;
	while (*r->at != ',' && *r->at != '\0') {
		ends_with_them = *r->at == '[';
		has_brackets |= ends_with_them;
		if ((ends_with_them ? read_brackets(r, &names, error) : read_character(r, error)) < 0)
			return -1;
	}
	if (r->name_bytes == 0)
		return refuse(r, "a name must not be empty", error);
	if (r->name_bytes > WLB_HOSTLIST_NAME_BYTES_MOST)
		return refuse(r, "a name must have at most 255 bytes", error);
	if (has_brackets && !ends_with_them)
		return refuse(r, "a name must end with its last bracket", error);
	return names;
}

int wlb_hostlist_size(const char *expression, int most, struct wlb_error *error)
{
	struct reader r = {.text = expression, .at = expression, .most = most};
	int64_t count = 0;
	if (r.most > WLB_HOSTLIST_NAMES_MOST)
		r.most = WLB_HOSTLIST_NAMES_MOST;
	for (;;) {
		int64_t names = read_item(&r, error);
		if (names < 0)
			return -1;
		count += names;
		if (count > r.most)
			return refuse_many(&r, error);
		if (*r.at == '\0')
			return (int)count;
		r.at++;
	}
}
