#include "coordinator/wlbd/http/long_reply.h"

#include <string.h>

#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/wlbd.h"

enum { SHORT_BYTES = 16 << 10 }; /* replies up to this size are bounded by the number of connections */

void wlbd_request_reply_long(struct wlbd_request *request, const char *json)
{
	size_t bytes = strlen(json);
	if (bytes > SHORT_BYTES) {
		switch (wlbd_budget_take(request->wlbd->reply_budget, request->uid, bytes)) {
		case WLBD_BUDGET_TAKEN:
			request->reply_bytes = bytes;
			break;
		case WLBD_BUDGET_USER_FULL:
			wlbd_request_fail(
				request, 503,
				"the reply has %zu bytes, which are too many beside the replies that uid %u has not "
				"read yet; read those, ask for less, or try again",
				bytes, request->uid);
			return;
		case WLBD_BUDGET_FULL:
			wlbd_request_fail(
				request, 503,
				"the reply has %zu bytes, which are too many beside the replies that other users "
				"have not read yet; try again",
				bytes);
			return;
		}
	}
	wlbd_request_reply_text(request, 200, json);
}

void wlbd_request_reply_db(void *request, const struct wlbd_db_result *result)
{
	if (result->status == WLBD_DB_OK)
		wlbd_request_reply_long(request, result->value);
	else
		wlbd_request_fail_db(request, result);
}
