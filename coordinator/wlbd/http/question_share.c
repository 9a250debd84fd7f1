#include "coordinator/wlbd/http/question_share.h"

#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/http/request.h"
#include "coordinator/wlbd/wlbd.h"

int wlbd_question_share_take(struct wlbd_request *request)
{
	if (request->has_question || wlbd_request_privileged(request))
		return 0;
	switch (wlbd_budget_enter(request->wlbd->question_budget, request->uid)) {
	case WLBD_BUDGET_TAKEN:
		request->has_question = true;
		return 0;
	case WLBD_BUDGET_USER_FULL:
		wlbd_request_fail(
			request, 503,
			"uid %u has too many requests under way that wait for the database or Slurm; try again "
			"when some are done",
			request->uid);
		return -1;
	case WLBD_BUDGET_FULL:
		wlbd_request_fail(request, 503, "too many requests wait for the database or Slurm; try again");
		return -1;
	}
	return -1;
}
