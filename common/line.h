/* Reads files of lines whose length has a bound. */
#ifndef COMMON_LINE_H
#define COMMON_LINE_H

#include <stddef.h>
#include <stdio.h>

#include "libwlb/wlb.h"

/* Reads the next line into `line` of `size` bytes, without its newline; *length (NULL allowed) counts NUL bytes of the
 * line too. Returns 1, 0 at the end of the file, or -1 where the file cannot be read or the line has `size` bytes or
 * more: no part of such a line is taken for a line. */
int wlb_line_read(FILE *file, char *line, size_t size, size_t *length, struct wlb_error *error);

#endif
