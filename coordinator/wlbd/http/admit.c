#include "coordinator/wlbd/http/admit.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/http/body.h"
#include "coordinator/wlbd/http/call.h"
#include "coordinator/wlbd/http/head.h"
#include "coordinator/wlbd/http/reply.h"

/* Allocates the buffer of the body. Returns -1 where that is refused; the request is answered then. */
static int allocate_body(struct wlbd_exchange *exchange)
{
	struct wlbd_call *call = exchange->call;
	size_t bytes = exchange->expected_bytes;
	size_t most_bytes = call->route->body_most_bytes;
	if (bytes > most_bytes) {
		wlbd_call_fail(call, 413, "body: %zu bytes; at most %zu are accepted there", bytes, most_bytes);
		return -1;
	}
	if (wlbd_body_hold(call, bytes) != 0)
		return -1;
	if (strcmp(call->method, "POST") != 0 || (call->text = malloc(bytes + 1)) != NULL)
		return 0;
	wlbd_call_fail_memory(call);
	return -1;
}

void wlbd_admit(struct wlbd_call *call)
{
	struct wlbd_exchange *exchange = call->exchange;
	if (wlbd_connection_proved(call->connection, call->uid) != WLBD_BUDGET_TAKEN) {
		exchange->is_closed_next = true;
		wlbd_call_fail(call, 503,
		               "uid %u has too many connections, beside those of other users; close some, or try again",
		               call->uid);
	} else if (wlbd_head_check_route(exchange) == 0 && allocate_body(exchange) == 0) {
		wlbd_exchange_resume(exchange);
	}
}
