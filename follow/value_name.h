/*
 * The names of followed values. Trainers name one value in many ways ("lm loss", "train/loss", "learning-rate"); what
 * `wlb top`, `wlb runs` and the dashboards show has one name and unit each:
 *
 *     loss, grad_norm, lr, tokens (of the step), tokens_per_s (of all ranks), tokens_per_s_per_device, step_time_s
 *
 * Every other name stays as it is, cleaned: a name comes from the user's program and ends on terminals.
 */
#ifndef FOLLOW_VALUE_NAME_H
#define FOLLOW_VALUE_NAME_H

#include <stddef.h>

enum { WLB_VALUE_NAME_SIZE = 64 }; /* bytes with the NUL; longer names are cut at a character */

/* Writes the name under which the value is stored, "" where nothing is left of it: without terminal escapes, control
 * characters and spaces at both ends. Returns by what the value is to be multiplied, for the unit of the name. */
double wlb_value_name(char to[WLB_VALUE_NAME_SIZE], const char *from, size_t length);

/* Copies a text of at most `size` - 1 bytes without terminal escapes (ECMA-48: ESC [ ... final byte, ESC ] ... BEL or
 * ESC \, ESC and one byte). Returns the bytes before the NUL. `to` may be `from`. */
size_t wlb_text_without_escapes(char *to, size_t size, const char *from, size_t length);

#endif
