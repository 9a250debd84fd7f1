/* Lists as CSV (RFC 4180). */
#ifndef COMMON_OUTPUT_CSV_H
#define COMMON_OUTPUT_CSV_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* Writes a line for each object of the array `rows`, which ends with CR LF, after a line of `fields` where has_header.
 * A field is the name of a member; "layout.tp" is that of a member of a member, and `fields` end with NULL.
 * - A number is as in JSON, true and false are these words; null, and a member that is not there, is empty.
 * - The elements of an array have a space between them; an object is JSON.
 * - In texts each control character (wlb_text_is_control) becomes a space, also in `rows`. A text that a spreadsheet
 * would take for a formula, since it begins with = + - or @, has a ' before it: other users choose some of the texts.
 * Returns -1 if out of memory. */
int wlb_csv_print(json_t *rows, const char *const *fields, bool has_header, FILE *out);

#endif
