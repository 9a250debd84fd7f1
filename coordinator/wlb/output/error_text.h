/* The error of an attempt, {"text","cause","rank","is_consequence"} of a reply, as one line. */
#ifndef COORDINATOR_WLB_OUTPUT_ERROR_TEXT_H
#define COORDINATOR_WLB_OUTPUT_ERROR_TEXT_H

#include <stddef.h>

#include <jansson.h>

/* "rank 3: ValueError: loss is nan (because of KeyError: 'x')"; "" where `error` is none. An error that follows from
 * the end of another process says so. */
void wlb_error_text(const json_t *error, char *text, size_t size);

#endif
