#include "coordinator/wlbd/http/call.h"

#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/wlbd.h"

struct wlbd_call *wlbd_call_new(struct wlbd *wlbd, const char *uri)
{
	struct wlbd_call *call = calloc(1, sizeof(*call));
	if (call == NULL || (call->uri = strdup(uri)) == NULL) {
		free(call);
		return NULL;
	}
	call->wlbd = wlbd;
	call->uid = (uid_t)-1;
	call->began_ms = wlb_clock_ms();
	TAILQ_INIT(&call->query);
	return call;
}

void wlbd_call_free(struct wlbd_call *call)
{
	wlbd_budget_give(call->wlbd->budget, call->uid, call->in_flight_bytes);
	wlbd_budget_give(call->wlbd->reply_budget, call->uid, call->reply_bytes);
	if (call->has_question)
		wlbd_budget_leave(call->wlbd->question_budget, call->uid);
	if (call->memory.newest == NULL)
		json_decref(call->body);
	wlbd_body_memory_free(&call->memory);
	evhttp_clear_headers(&call->query);
	free(call->parsed);
	free(call->credential);
	free(call->answer.body);
	free(call->answer.proof);
	free(call->text);
	free(call->uri);
	free(call);
}

bool wlbd_call_privileged(const struct wlbd_call *call)
{
	return call->uid == 0 || call->uid == call->wlbd->slurm_uid;
}

const char *wlbd_call_parameter(const struct wlbd_call *call, const char *name)
{
	const char *value = evhttp_find_header(&call->query, name);
	return value != NULL && *value != '\0' ? value : NULL;
}
