/* Makes JSON strings of text of any origin. */
#ifndef COMMON_JSON_TEXT_H
#define COMMON_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

/* A JSON string of at most the first `most` bytes; shorter where that limit would split a character, "" if the text is
 * not UTF-8. Returns NULL if out of memory. */
json_t *wlb_json_text(const char *text, size_t most);

#endif
