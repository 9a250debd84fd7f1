/* How large the values of a JSON text will be, before it is parsed. */
#ifndef COORDINATOR_WLBD_HTTP_BODY_SIZE_H
#define COORDINATOR_WLBD_HTTP_BODY_SIZE_H

#include <stddef.h>

struct wlbd_body_size {
	size_t values; /* an upper bound: every value but the first follows one of , : [ { */
	int depth;     /* of nested objects and arrays, at its deepest */
};

/* `text` need not be JSON, nor end with a NUL. */
struct wlbd_body_size wlbd_body_size(const char *text, size_t length);

#endif
