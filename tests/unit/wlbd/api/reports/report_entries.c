#include "tests/unit/wlbd/api/reports/report_entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

json_t *entry_parse(const char *text)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(value);
	return value;
}

void entry_expect(entry_read_fn *read, json_t *entry, const char *what, const char *value, const char *word)
{
	struct wlb_error error = {0};
	int rc = read(entry, &error);
	if ((rc == 0) != (word == NULL))
		fail_msg("%s %s: returned %d: %s", what, value, rc, error.message);
	if (word != NULL && strstr(error.message, word) == NULL)
		fail_msg("%s %s: '%s' does not name '%s'", what, value, error.message, word);
	json_decref(entry);
}

void entry_write_groups(char *text, size_t size, int count, const char *values)
{
	size_t length = (size_t)snprintf(text, size, "[");
	for (int i = 0; i < count && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s[\"g%d\",%s]", i > 0 ? "," : "", i, values);
	assert_true(length + 2 <= size);
	strcat(text, "]");
}

int entries_check(entries_check_fn *check, const char *name, json_t *list, struct wlb_error *error)
{
	const json_t *found = NULL;
	json_t *body = json_pack("{s:o}", name, list);
	int rc = check(body, &found, error);
	assert_true(rc != 0 || found == list || json_is_null(list));
	json_decref(body);
	return rc;
}

void entries_expect_most(entries_check_fn *check, const char *name, json_t *(*make)(int number), int most)
{
	for (int count = most; count <= most + 1; count++) {
		struct wlb_error error = {0};
		json_t *list = json_array();
		for (int i = 0; i < count; i++)
			json_array_append_new(list, make(count - i));
		assert_int_equal(entries_check(check, name, list, &error), count == most ? 0 : -1);
	}
}
