/* What other programs write into JSON lines and the parser does not take. */
#ifndef WORKER_DATA_JSON_LINE_H
#define WORKER_DATA_JSON_LINE_H

#include <stdint.h>

/* Replaces, in place, what Python's json module writes and reads but jansson refuses: a NaN, an infinity or a number
 * beyond a double becomes 0, since only strings are read from a line; half of a surrogate pair in a string becomes
 * U+FFFD, the character that stands for what cannot be shown. `line` has these bytes and a NUL after them. */
void wlb_json_line_repair(char *line, int64_t bytes);

#endif
