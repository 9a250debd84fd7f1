/* Formats messages of errors; internal. */
#ifndef LIBVERDICT_ERROR_H
#define LIBVERDICT_ERROR_H

#include "libverdict/wlb_verdict.h"

/* Always returns -1, so that a check reads `return verdict_fail(error, ...)`. `error` may be NULL. */
int verdict_fail(struct wlb_verdict_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
