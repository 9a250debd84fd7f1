/* What the tests of the entries of a report have in common. */
#ifndef TESTS_UNIT_WLBD_API_REPORTS_REPORT_ENTRIES_H
#define TESTS_UNIT_WLBD_API_REPORTS_REPORT_ENTRIES_H

#include <jansson.h>
#include <stddef.h>

#include "libwlb/wlb.h"

/* Returns the value of a JSON text; the test fails where it is none. */
json_t *entry_parse(const char *text);

/* Reads the entry; returns 0, or -1 with a message. */
typedef int entry_read_fn(const json_t *entry, struct wlb_error *error);

/* Reads `entry`, which it releases. Fails unless it is accepted, where `word` is NULL, or refused with a message that
 * has the word. `what` and `value` tell which entry it is. */
void entry_expect(entry_read_fn *read, json_t *entry, const char *what, const char *value, const char *word);

/* Writes a JSON array of `count` arrays ["g0", VALUES], ["g1", VALUES] and so on. */
void entry_write_groups(char *text, size_t size, int count, const char *values);

/* Checks the list of a report; as wlbd_activities_check. */
typedef int entries_check_fn(const json_t *body, const json_t **list, struct wlb_error *error);

/* Checks a report whose member `name` is `list`, which it releases. Returns what the check returns; fails where it
 * returns 0 and another list. */
int entries_check(entries_check_fn *check, const char *name, json_t *list, struct wlb_error *error);

/* Checks lists of `most` entries, which must be accepted, and of one more. `make` returns an entry, another one for
 * each number from 1 on. */
void entries_expect_most(entries_check_fn *check, const char *name, json_t *(*make)(int number), int most);

#endif
