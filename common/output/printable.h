/* JSON, and texts in it, that a terminal may print. */
#ifndef COMMON_OUTPUT_PRINTABLE_H
#define COMMON_OUTPUT_PRINTABLE_H

#include <stddef.h>

#include <jansson.h>

#include "libwlb/wlb.h"

/* Replaces each control character (wlb_text_is_control) in the texts of `value`, at any depth, by a space: some of them
 * come from the records of other users, and a terminal would execute them. Returns -1 if out of memory. */
int wlb_make_printable(json_t *value);

/* Returns `value` as JSON that a terminal may print: with the flags of json_dumps, its members in their order, and the
 * same characters escaped. The caller frees it. Returns NULL if `value` is NULL or out of memory. */
char *wlb_printable_json(const json_t *value, size_t flags);

/* Prints it so to standard output, indented. Returns -1 if it is NULL, out of memory, or cannot be written. */
int wlb_json_print(const json_t *value);

/* Prints a command's report in the same way, and releases it. Returns -1 with the reason. */
int wlb_json_print_report(json_t *report, struct wlb_error *error);

#endif
