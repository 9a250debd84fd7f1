/* Lines of programs for a terminal or a log. */
#ifndef COMMON_SHOW_H
#define COMMON_SHOW_H

#include <stdio.h>

/* Prints a line, without its end in `format`, as wlb_text_show makes it of texts of any origin. */
void wlb_show_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
