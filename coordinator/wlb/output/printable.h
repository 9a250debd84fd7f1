/* Texts of a reply that a terminal may print. */
#ifndef COORDINATOR_WLB_OUTPUT_PRINTABLE_H
#define COORDINATOR_WLB_OUTPUT_PRINTABLE_H

#include <jansson.h>

/* Replaces each control character in the texts of `value`, at any depth, by a space (ISO 6429: 0 to 31, 127 and 128 to
 * 159): some of them come from the records of other users, and a terminal would execute them. Returns -1 if out of
 * memory. */
int wlb_make_printable(json_t *value);

#endif
