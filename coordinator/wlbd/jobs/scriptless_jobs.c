#include "coordinator/wlbd/jobs/scriptless_jobs.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/wlbd/attempts/launchers.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/http/route.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/nodes/dead_node.h"
#include "coordinator/wlbd/slurm/job_orders.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

struct scriptless_job {
	struct wlbd *wlbd;
	json_int_t run_pk, job_id, uid, restart_count;
	char run[WLBD_RUN_NAME_SIZE];
	int is_complete; /* the run */
	void (*done)(void *context);
	void *context;
};

/* Probes see a node's slurmd alone, which may not respond while the script works, and its launcher if it has one now.
 */
static bool is_dead(struct wlbd *wlbd, const struct wlbd_node *node, const struct wlb_slurm_job *job)
{
	return (node->down || !wlbd_launchers_has(wlbd, job->job_id, job->uid)) &&
	       wlbd_host_is_dead(wlbd, node, job->job_id, job->uid);
}

bool wlbd_job_has_no_script(struct wlbd *wlbd, const struct wlb_slurm_job *job)
{
	const struct wlbd_node *host =
		job->running && !job->configuring && job->batch ? wlbd_nodes_find(wlbd->nodes, job->batch_host) : NULL;
	return host != NULL && is_dead(wlbd, host, job);
}

static bool is_over(const struct scriptless_job *left, const struct wlbd_job_facts *facts)
{
	return facts->found == 0 || (facts->found == 1 && (facts->job.finished || facts->job.uid != (uid_t)left->uid ||
	                                                   facts->job.restart_count > left->restart_count));
}

static void forget(const struct scriptless_job *left)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, left->run_pk);
	wlbd_params_add_integer(&params, left->restart_count);
	wlbd_outbox_put(left->wlbd->outbox, (uid_t)left->uid, left->run_pk, "select wlb_run_job_over($1, $2)", &params);
}

/* What is recorded once Slurm has done it: a job of which that is recorded is not looked at again. */
struct job_end {
	struct wlbd *wlbd;
	json_int_t run_pk, restart_count;
	uid_t uid;
	bool is_requeued;
	char detail[600];
};

static void on_ordered(void *context, const char *failure)
{
	struct job_end *end = context;
	struct wlbd_params params = {0};
	if (failure == NULL) {
		wlbd_params_add_integer(&params, end->run_pk);
		wlbd_params_add_integer(&params, end->restart_count);
		wlbd_params_add_text(&params, end->is_requeued ? "job_requeued" : "job_ended");
		wlbd_params_add_text(&params, end->detail);
		wlbd_outbox_put(end->wlbd->outbox, end->uid, end->run_pk,
		                "select wlb_run_job_without_script($1, $2, $3, $4)", &params);
	}
	free(end);
}

static void end_or_requeue(const struct scriptless_job *left, const struct wlb_slurm_job *job)
{
	char why[512];
	struct job_end *end = wlbd_job_orders_has(left->wlbd->job_orders, job->job_id) ? NULL : malloc(sizeof(*end));
	if (end == NULL)
		return; /* the next poll finds the same */
	*end = (struct job_end){.wlbd = left->wlbd,
	                        .run_pk = left->run_pk,
	                        .restart_count = left->restart_count,
	                        .uid = (uid_t)left->uid,
	                        .is_requeued = left->is_complete && job->requeue};
	snprintf(why, sizeof(why), "the node of its script, %s, is down", job->batch_host);
	snprintf(end->detail, sizeof(end->detail), "job %u is %s, since %s", job->job_id,
	         end->is_requeued ? "requeued" : "ended", why);
	wlbd_log(WLBD_LOG_WARNING, "run %s: %s", left->run, end->detail);
	wlbd_job_orders_give(left->wlbd, end->is_requeued ? WLBD_JOB_REQUEUE : WLBD_JOB_KILL, job->job_id, why,
	                     on_ordered, end);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct scriptless_job *left = context;
	if (left->wlbd->stopping) {
		/* The next start of wlbd finds the same. */
	} else if (is_over(left, facts)) {
		forget(left);
	} else if (facts->found == 1 && wlbd_job_has_no_script(left->wlbd, &facts->job)) {
		end_or_requeue(left, &facts->job);
	}
	left->done(left->context);
	free(left);
}

void wlbd_scriptless_job_check(struct wlbd *wlbd, const json_t *row, void (*done)(void *context), void *context)
{
	struct scriptless_job *left = calloc(1, sizeof(*left));
	const char *run;
	if (left == NULL || json_unpack((json_t *)row, "{s:I, s:s, s:I, s:I, s:I, s:b}", "run_pk", &left->run_pk, "run",
	                                &run, "job_id", &left->job_id, "uid", &left->uid, "restart_count",
	                                &left->restart_count, "complete", &left->is_complete) != 0) {
		free(left);
		done(context);
		return;
	}
	left->wlbd = wlbd;
	left->done = done;
	left->context = context;
	snprintf(left->run, sizeof(left->run), "%s", run);
	wlbd_slurm_job_poll(wlbd, (uint32_t)left->job_id, on_job, left);
}
