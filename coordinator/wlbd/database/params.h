/*
 * The parameters $1, $2, ... of a statement, in order, as the text that libpq sends. Begins as {0}; each function adds
 * the next parameter. It points into itself: it is passed by address and never assigned.
 */
#ifndef COORDINATOR_WLBD_DATABASE_PARAMS_H
#define COORDINATOR_WLBD_DATABASE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WLBD_PARAMS_MAX = 15,
	WLBD_PARAM_NUMBER_SIZE = 32,
};

struct wlbd_params {
	int count;
	const char *list[WLBD_PARAMS_MAX]; /* NULL: SQL's null */
	char numbers[WLBD_PARAMS_MAX][WLBD_PARAM_NUMBER_SIZE];
};

/* NULL is SQL's null. `text` stays the caller's and outlives `params`. */
void wlbd_params_add_text(struct wlbd_params *params, const char *text);
void wlbd_params_add_integer(struct wlbd_params *params, int64_t value);
/* SQL's null where the value is not known. */
void wlbd_params_add_integer_if(struct wlbd_params *params, bool is_known, int64_t value);
/* Seconds, to the microsecond, for to_timestamp($N::float8). */
void wlbd_params_add_seconds(struct wlbd_params *params, double value_s);
void wlbd_params_add_boolean(struct wlbd_params *params, bool value);

/* Sets `texts` to the texts of the parameters, whatever their origin, in UTF-8, as PostgreSQL takes them. The texts are
 * valid until the caller frees *memory, which may be NULL. Returns -1 if out of memory. */
int wlbd_params_texts(const struct wlbd_params *params, const char *texts[WLBD_PARAMS_MAX], char **memory);

/* Returns a copy with its texts, which one call of free() releases, or NULL if out of memory. *bytes, unless NULL,
 * receives the size of the texts, each with its NUL. */
struct wlbd_params *wlbd_params_copy(const struct wlbd_params *params, size_t *bytes);

#endif
