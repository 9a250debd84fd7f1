/* Text of any origin as a JSON string. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stddef.h>

#include <jansson.h>

/* At most the first `most` bytes, fewer where that would cut a character in two, "" where it is not UTF-8. NULL: no
 * memory. */
json_t *wlb_text_json(const char *text, size_t most);

#endif
