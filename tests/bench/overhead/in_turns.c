/*
 * wlb-worker that keeps no trace of its calls, activities and steps in about half of its steps: in step s where the
 * number of ones in s is even (WLB_TOLD_PHASE=0) or odd (1), which is the same on all ranks. The linker's --wrap calls
 * these functions in place of those of worker/comm and common/rank_trace.h.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "worker/comm/communicator.h"

static atomic_bool is_told = true;

void __real_wlb_rank_trace_set_step(struct wlb_rank_trace *trace, int64_t step, double work);
void __wrap_wlb_rank_trace_set_step(struct wlb_rank_trace *trace, int64_t step, double work);
void __real_wlb_rank_trace_add_step(struct wlb_rank_trace *trace, const struct wlb_trace_step *step);
void __wrap_wlb_rank_trace_add_step(struct wlb_rank_trace *trace, const struct wlb_trace_step *step);
void __real_wlb_rank_trace_set_activity(struct wlb_rank_trace *trace, enum wlb_activity activity, double since_s);
void __wrap_wlb_rank_trace_set_activity(struct wlb_rank_trace *trace, enum wlb_activity activity, double since_s);
void __real_wlb_rank_trace_started(struct wlb_rank_trace *trace, int group, uint64_t seq);
void __wrap_wlb_rank_trace_started(struct wlb_rank_trace *trace, int group, uint64_t seq);
void __real_wlb_comm_enter(struct wlb_comm *comm, const struct wlb_trace_event *call);
void __wrap_wlb_comm_enter(struct wlb_comm *comm, const struct wlb_trace_event *call);
int __real_wlb_comm_leave(struct wlb_comm *comm, int rc, struct wlb_error *error);
int __wrap_wlb_comm_leave(struct wlb_comm *comm, int rc, struct wlb_error *error);

void __wrap_wlb_rank_trace_set_step(struct wlb_rank_trace *trace, int64_t step, double work)
{
	const char *phase = getenv("WLB_TOLD_PHASE");
	is_told = (__builtin_popcountll((unsigned long long)step) + (phase != NULL && *phase == '1')) % 2 == 0;
	if (is_told)
		__real_wlb_rank_trace_set_step(trace, step, work);
}

void __wrap_wlb_rank_trace_add_step(struct wlb_rank_trace *trace, const struct wlb_trace_step *step)
{
	if (is_told)
		__real_wlb_rank_trace_add_step(trace, step);
}

void __wrap_wlb_rank_trace_set_activity(struct wlb_rank_trace *trace, enum wlb_activity activity, double since_s)
{
	if (is_told)
		__real_wlb_rank_trace_set_activity(trace, activity, since_s);
}

void __wrap_wlb_rank_trace_started(struct wlb_rank_trace *trace, int group, uint64_t seq)
{
	if (is_told)
		__real_wlb_rank_trace_started(trace, group, seq);
}

void __wrap_wlb_comm_enter(struct wlb_comm *comm, const struct wlb_trace_event *call)
{
	if (is_told)
		__real_wlb_comm_enter(comm, call);
}

int __wrap_wlb_comm_leave(struct wlb_comm *comm, int rc, struct wlb_error *error)
{
	return is_told ? __real_wlb_comm_leave(comm, rc, error) : rc;
}
