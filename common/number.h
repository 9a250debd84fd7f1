/* Parses numbers that a user typed. */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

#include <stdint.h>

#include "libwlb/wlb.h"

/* Parses a whole number in [minimum, maximum]. Returns -1 with a message that begins with `name`, such as "--steps",
 * and states the text and the rule; *number is unchanged then. */
int wlb_number_parse(const char *name, const char *text, int64_t minimum, int64_t maximum, int64_t *number,
                     struct wlb_error *error);

/* The same for any finite number. */
int wlb_real_parse(const char *name, const char *text, double minimum, double maximum, double *number,
                   struct wlb_error *error);

#endif
