/* Texts of UTF-8 in lines of a width. */
#ifndef COMMON_OUTPUT_WRAP_H
#define COMMON_OUTPUT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Returns the bytes of the characters at the text's beginning that take `columns` at most, and sets *used to the
 * columns that they take: two for a wide character, none for an accent of its own, where the locale of the process
 * knows them. */
size_t wlb_text_fit(const char *text, int columns, int *used);

/* Columns of a text. */
int wlb_text_width(const char *text);

/* Prints the text in lines of at most `columns`, each behind `indent` spaces, and ends the last one. A word that fits
 * no line is cut into lines. A line takes at least 20 characters of text, whatever `columns` is. */
void wlb_wrap_print(const char *text, int indent, int columns, FILE *out);

#endif
