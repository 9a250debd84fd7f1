/* Reads and replaces values of a YAML text in block style, as PyYAML writes it: "section:" at the beginning of a line,
 * and "  key: value" in a line below it. All else is left as it is. Pure, no I/O. */
#ifndef COORDINATOR_WLB_RUN_COMMAND_BLOCK_YAML_H
#define COORDINATOR_WLB_RUN_COMMAND_BLOCK_YAML_H

#include <stdbool.h>
#include <stdint.h>

#include "libwlb/wlb.h"

bool wlb_block_yaml_has(const char *text, const char *section, const char *key);

/* Reads a whole number of 1 to 2^30. Returns -1 with value and rule where it is missing, or no such number. */
int wlb_block_yaml_number(const char *text, const char *section, const char *key, int64_t *number,
                          struct wlb_error *error);

/* Replaces the value in the text, which is moved in memory. Returns -1 where it is missing; the text is unchanged. */
int wlb_block_yaml_set(char **text, const char *section, const char *key, const char *value, struct wlb_error *error);

#endif
