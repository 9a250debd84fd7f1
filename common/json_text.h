/* Makes JSON strings of text of any origin. */
#ifndef COMMON_JSON_TEXT_H
#define COMMON_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

enum { WLB_JSON_TEXT_MAX = 4096 }; /* bytes of a text that the coordinator takes */

/* A JSON string of the text as wlb_text_store makes it, of as many of its characters as have room in WLB_JSON_TEXT_MOST
 * bytes; jansson makes none of a text that is not UTF-8. Returns NULL if out of memory. */
json_t *wlb_json_text(const char *text);

/* The same with another limit. */
json_t *wlb_json_text_cut(const char *text, size_t max);

#endif
