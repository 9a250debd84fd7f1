/* Values of entries that are arrays, read and checked: each function returns -1 with a message that names what the
 * value is, the value and the rule. */
#ifndef COORDINATOR_WLBD_API_REPORTS_ENTRY_VALUES_H
#define COORDINATOR_WLBD_API_REPORTS_ENTRY_VALUES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Returns -1 with the message. */
int wlbd_value_refuse(const char *what, const json_t *value, const char *rule, struct wlb_error *error);

int wlbd_value_integer(const char *what, const json_t *value, int64_t min, int64_t max, int64_t *number,
                       struct wlb_error *error);
/* A name of printable characters that can be written into replies as they are; it must fit name[size]. */
int wlbd_value_name(const char *what, const json_t *value, char *name, size_t size, struct wlb_error *error);

#endif
