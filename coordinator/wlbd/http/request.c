#include "coordinator/wlbd/http/request.h"

#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/wlbd.h"

struct wlbd_request *wlbd_request_new(struct wlbd *wlbd, const char *uri)
{
	struct wlbd_request *request = calloc(1, sizeof(*request));
	if (request == NULL || (request->uri = strdup(uri)) == NULL) {
		free(request);
		return NULL;
	}
	request->wlbd = wlbd;
	request->uid = (uid_t)-1;
	request->began_ms = wlb_clock_ms();
	TAILQ_INIT(&request->query);
	return request;
}

void wlbd_request_free(struct wlbd_request *request)
{
	wlbd_budget_give(request->wlbd->budget, request->uid, request->in_flight_bytes);
	wlbd_budget_give(request->wlbd->reply_budget, request->uid, request->reply_bytes);
	if (request->has_question)
		wlbd_budget_leave(request->wlbd->question_budget, request->uid);
	if (request->memory.newest == NULL)
		json_decref(request->body);
	wlbd_body_memory_free(&request->memory);
	evhttp_clear_headers(&request->query);
	free(request->parsed);
	free(request->credential);
	free(request->answer.body);
	free(request->answer.proof);
	free(request->text);
	free(request->uri);
	free(request);
}

bool wlbd_request_privileged(const struct wlbd_request *request)
{
	return request->uid == 0 || request->uid == request->wlbd->slurm_uid;
}

const char *wlbd_request_parameter(const struct wlbd_request *request, const char *name)
{
	const char *value = evhttp_find_header(&request->query, name);
	return value != NULL && *value != '\0' ? value : NULL;
}
