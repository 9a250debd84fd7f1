#include "coordinator/wlbd/http/question_share.h"

#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/http/call.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/wlbd.h"

int wlbd_question_share_take(struct wlbd_call *call)
{
	if (call->has_question || wlbd_call_privileged(call))
		return 0;
	switch (wlbd_budget_enter(call->wlbd->question_budget, call->uid)) {
	case WLBD_BUDGET_TAKEN:
		call->has_question = true;
		return 0;
	case WLBD_BUDGET_USER_FULL:
		wlbd_call_fail(call, 503,
		               "uid %u has too many requests under way that wait for the database or Slurm; try again "
		               "when some are done",
		               call->uid);
		return -1;
	case WLBD_BUDGET_FULL:
		wlbd_call_fail(call, 503, "too many requests wait for the database or Slurm; try again");
		return -1;
	}
	return -1;
}
