/* Texts of UTF-8 in lines of a width. */
#ifndef COORDINATOR_WLB_OUTPUT_WRAP_H
#define COORDINATOR_WLB_OUTPUT_WRAP_H

#include <stdio.h>

/* Characters of a text. */
int wlb_text_width(const char *text);

/* Prints the text in lines of at most `columns`, each behind `indent` spaces, and ends the last one. A word that fits
 * no line is cut into lines. A line takes at least 20 characters of text, whatever `columns` is. */
void wlb_wrap_print(const char *text, int indent, int columns, FILE *out);

#endif
