#include "coordinator/wlbd/slurm/slurm_requests.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/database/lease.h"
#include "coordinator/wlbd/lease_end.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/slurm/user_names.h"
#include "coordinator/wlbd/thread_pool.h"
#include "coordinator/wlbd/wlbd.h"

/* ---- a job --------------------------------------------------------------------------------------- */

/* While slurmctld does not answer, one question at a time finds out whether it answers again, and nothing waits for
 * that one; all other questions are answered at once, without libslurm's long timeout. */
struct job_ask {
	struct wlbd_task task;
	struct wlbd *wlbd;
	uint32_t job_id;
	uid_t asker;
	bool finds_out;
	struct wlbd_job_facts facts;
	void (*done)(void *context, const struct wlbd_job_facts *facts);
	void *context;
};

static void run_job_ask(struct wlbd_task *task)
{
	struct job_ask *ask = (struct job_ask *)task;
	struct wlbd_job_facts *facts = &ask->facts;
	if (ask->wlbd->slurm_unavailable && !ask->finds_out) {
		facts->found = wlb_fail(&facts->error, "slurmctld does not answer");
	} else {
		facts->found = wlb_slurm_job(ask->job_id, &facts->job, &facts->error);
		/* A job that cannot be read is an answer. */
		ask->wlbd->slurm_unavailable = facts->found < 0 && facts->job.job_id == 0;
		if (facts->found < 0)
			wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_SLURM, "%s", facts->error.message);
	}
	facts->uid = facts->found == 1 ? facts->job.uid : ask->asker;
	wlbd_user_name(ask->wlbd->user_names, facts->uid, facts->user, sizeof(facts->user));
}

static void finish_job_ask(struct wlbd_task *task)
{
	struct job_ask *ask = (struct job_ask *)task;
	if (ask->finds_out)
		ask->wlbd->slurm_tried = false;
	if (ask->done != NULL)
		ask->done(ask->context, &ask->facts);
	wlb_slurm_job_free(&ask->facts.job);
	free(ask);
}

static void discard_job_ask(struct wlbd_task *task)
{
	struct job_ask *ask = (struct job_ask *)task;
	ask->facts = (struct wlbd_job_facts){.found = -1, .uid = ask->asker};
	snprintf(ask->facts.user, sizeof(ask->facts.user), "%u", ask->asker);
	wlb_fail(&ask->facts.error, "job %u: Slurm was not asked", ask->job_id);
	finish_job_ask(task);
}

static struct job_ask *job_ask_new(struct wlbd *wlbd, uint32_t job_id, uid_t asker)
{
	struct job_ask *ask = calloc(1, sizeof(*ask));
	if (ask == NULL)
		return NULL;
	ask->task = (struct wlbd_task){.run = run_job_ask, .done = finish_job_ask, .discard = discard_job_ask};
	ask->wlbd = wlbd;
	ask->job_id = job_id;
	ask->asker = asker;
	return ask;
}

void wlbd_slurm_ping(struct wlbd *wlbd)
{
	bool needed = wlbd->slurm_unavailable && !wlbd->slurm_tried;
	struct job_ask *ask =
		needed ? job_ask_new(wlbd, 1, 0) : NULL; /* any job: only whether there is an answer matters */
	if (ask == NULL)
		return;
	ask->finds_out = true;
	wlbd->slurm_tried = true;
	wlbd_thread_pool_submit(wlbd->slurm_questions, &ask->task);
}

static void ask_job(struct wlbd *wlbd, uint32_t job_id, uid_t asker, uid_t turn,
                    void (*done)(void *context, const struct wlbd_job_facts *facts), void *context)
{
	struct job_ask *ask = job_ask_new(wlbd, job_id, asker);
	if (ask == NULL) {
		struct wlbd_job_facts facts = {.found = -1, .uid = asker, .error = {"out of memory"}};
		done(context, &facts);
		return;
	}
	ask->task.owner = turn;
	ask->done = done;
	ask->context = context;
	wlbd_thread_pool_submit(wlbd->slurm_questions, &ask->task);
	wlbd_slurm_ping(wlbd);
}

void wlbd_slurm_job(struct wlbd *wlbd, uint32_t job_id, uid_t asker,
                    void (*done)(void *context, const struct wlbd_job_facts *facts), void *context)
{
	ask_job(wlbd, job_id, asker, asker, done, context);
}

void wlbd_slurm_job_poll(struct wlbd *wlbd, uint32_t job_id,
                         void (*done)(void *context, const struct wlbd_job_facts *facts), void *context)
{
	ask_job(wlbd, job_id, 0, (uid_t)-1, done, context);
}

/* ---- a step --------------------------------------------------------------------------------------- */

bool wlbd_slurm_step_number(uint32_t job_id, const char *slurm_step, uint32_t *step)
{
	char expected[32];
	char *end = NULL;
	size_t length = (size_t)snprintf(expected, sizeof(expected), "%u.", job_id);
	if (strncmp(slurm_step, expected, length) != 0 || !isdigit((unsigned char)slurm_step[length]))
		return false;
	errno = 0;
	unsigned long number = strtoul(slurm_step + length, &end, 10);
	*step = (uint32_t)number;
	return *end == '\0' && errno == 0 && number < UINT32_MAX;
}

struct step_ask {
	struct wlbd_task task;
	uint32_t job_id;
	uint32_t step_id;
	int has_stepd;
	struct wlb_error error;
	void (*done)(void *context, int has_stepd);
	void *context;
};

static void run_step_ask(struct wlbd_task *task)
{
	struct step_ask *ask = (struct step_ask *)task;
	ask->has_stepd = wlb_slurm_step_has_stepd(ask->job_id, ask->step_id, &ask->error);
}

static void finish_step_ask(struct wlbd_task *task)
{
	struct step_ask *ask = (struct step_ask *)task;
	if (ask->has_stepd < 0)
		wlbd_log_limited(WLBD_LOG_INFO, WLBD_LIMIT_SLURM, "%s", ask->error.message);
	ask->done(ask->context, ask->has_stepd);
	free(ask);
}

static void discard_step_ask(struct wlbd_task *task)
{
	struct step_ask *ask = (struct step_ask *)task;
	ask->done(ask->context, -1);
	free(ask);
}

void wlbd_slurm_step_has_stepd(struct wlbd *wlbd, uint32_t job_id, const char *slurm_step,
                               void (*done)(void *context, int has_stepd), void *context)
{
	uint32_t step_id;
	struct step_ask *ask = wlbd_slurm_step_number(job_id, slurm_step, &step_id) ? calloc(1, sizeof(*ask)) : NULL;
	if (ask == NULL) {
		done(context, -1);
		return;
	}
	ask->task = (struct wlbd_task){.run = run_step_ask, .done = finish_step_ask, .discard = discard_step_ask};
	ask->job_id = job_id;
	ask->step_id = step_id;
	ask->done = done;
	ask->context = context;
	wlbd_thread_pool_submit(wlbd->slurm_questions, &ask->task);
}

/* ---- orders ---------------------------------------------------------------------------------------- */

struct order {
	struct wlbd_task task;
	struct wlbd *wlbd;
	struct wlbd_lease_waiter lease;
	int (*carry_out)(struct order *order);
	uint32_t job_id;
	uid_t owner;     /* of the job, where Slurm is asked for it */
	uint32_t number; /* of the step; of nodes */
	char node[256];
	char text[512]; /* for the log, and the reason in Slurm */
	int rc;         /* 0 done, 1 not needed, -1 failed */
	struct wlb_error error;
	void (*done)(void *context, const char *failure); /* NULL: nobody waits for it */
	void *context;
};

static void run_order(struct wlbd_task *task)
{
	struct order *order = (struct order *)task;
	order->rc = wlbd_lease_end_watch(&order->error) == 0 ? order->carry_out(order) : -1;
}

static void finish_order(struct wlbd_task *task)
{
	struct order *order = (struct order *)task;
	if (order->rc == 0)
		wlbd_log(WLBD_LOG_INFO, "Slurm: %s: done", order->text);
	else if (order->rc < 0)
		wlbd_log(WLBD_LOG_ERROR, "Slurm: %s: %s", order->text, order->error.message);
	if (order->done != NULL)
		order->done(order->context, order->rc == 0 ? NULL : order->error.message);
	free(order);
}

static void discard_order(struct wlbd_task *task)
{
	struct order *order = (struct order *)task;
	static const char reason[] = "not done, because wlbd is stopping or too many orders wait";
	wlbd_log(WLBD_LOG_ERROR, "Slurm: %s: %s", order->text, reason);
	if (order->done != NULL)
		order->done(order->context, reason);
	free(order);
}

/* Returns NULL if out of memory, and logs it. */
static struct order *order_new(struct wlbd *wlbd, int (*carry_out)(struct order *order), uint32_t job_id)
{
	struct order *order = calloc(1, sizeof(*order));
	if (order == NULL) {
		wlbd_log(WLBD_LOG_ERROR, "out of memory: an order to Slurm is lost");
		return NULL;
	}
	order->task = (struct wlbd_task){.run = run_order, .done = finish_order, .discard = discard_order};
	order->wlbd = wlbd;
	order->carry_out = carry_out;
	order->job_id = job_id;
	return order;
}

static void on_lease(void *context, bool renewed)
{
	struct order *order = context;
	if (renewed)
		wlbd_thread_pool_submit(order->wlbd->slurm_orders, &order->task);
	else
		discard_order(&order->task);
}

/* Where another wlbd stands by, the database says first that this one still acts. */
static void give(struct order *order)
{
	struct wlbd_lease *lease = order->wlbd->lease;
	order->lease = (struct wlbd_lease_waiter){.done = on_lease, .context = order};
	if (lease != NULL && !order->wlbd->stopping)
		wlbd_lease_wait(lease, &order->lease);
	else
		on_lease(order, lease == NULL);
}

static int carry_out_node_down(struct order *order)
{
	return wlb_slurm_node_down(order->node, order->text, &order->error);
}

void wlbd_slurm_node_down(struct wlbd *wlbd, const char *node, const char *reason)
{
	struct order *order = order_new(wlbd, carry_out_node_down, 0);
	if (order == NULL)
		return;
	snprintf(order->node, sizeof(order->node), "%s", node);
	wlb_text_format(order->text, sizeof(order->text), "%s", reason);
	give(order);
}

static int carry_out_step_kill(struct order *order)
{
	struct wlb_slurm_job job;
	int found = wlb_slurm_job(order->job_id, &job, &order->error);
	wlb_slurm_job_free(&job);
	if (found < 0)
		return -1;
	if (found == 0 || job.uid != order->owner)
		return wlb_fail(&order->error, "Slurm knows no such job of uid %u", order->owner);
	return wlb_slurm_step_kill(order->job_id, order->number, SIGKILL, &order->error);
}

void wlbd_slurm_step_kill(struct wlbd *wlbd, uint32_t job_id, uid_t owner, const char *slurm_step, const char *why,
                          void (*done)(void *context, const char *failure), void *context)
{
	uint32_t step;
	struct order *order = NULL;
	if (wlbd_slurm_step_number(job_id, slurm_step, &step))
		order = order_new(wlbd, carry_out_step_kill, job_id);
	if (order == NULL) {
		done(context, "out of memory");
		return;
	}
	order->done = done;
	order->context = context;
	order->owner = owner;
	order->number = step;
	wlb_text_format(order->text, sizeof(order->text), "kill step %u.%u, since %s", job_id, step, why);
	give(order);
}

static int carry_out_resize(struct order *order)
{
	return wlb_slurm_job_resize_pending(order->job_id, order->number, 0, &order->error);
}

void wlbd_slurm_resize(struct wlbd *wlbd, uint32_t job_id, uint32_t min_nodes,
                       void (*done)(void *context, const char *failure), void *context)
{
	struct order *order = order_new(wlbd, carry_out_resize, job_id);
	if (order == NULL) {
		done(context, "out of memory");
		return;
	}
	order->done = done;
	order->context = context;
	order->number = min_nodes;
	snprintf(order->text, sizeof(order->text), "let the requeued job %u start on %u nodes", job_id, min_nodes);
	give(order);
}

static void order_job(struct wlbd *wlbd, int (*carry_out)(struct order *order), const char *verb, uint32_t job_id,
                      const char *why, void (*done)(void *context, const char *failure), void *context)
{
	struct order *order = order_new(wlbd, carry_out, job_id);
	if (order == NULL) {
		done(context, "out of memory");
		return;
	}
	order->done = done;
	order->context = context;
	wlb_text_format(order->text, sizeof(order->text), "%s job %u, since %s", verb, job_id, why);
	give(order);
}

static int carry_out_requeue(struct order *order)
{
	return wlb_slurm_requeue(order->job_id, &order->error);
}

void wlbd_slurm_requeue(struct wlbd *wlbd, uint32_t job_id, const char *why,
                        void (*done)(void *context, const char *failure), void *context)
{
	order_job(wlbd, carry_out_requeue, "requeue", job_id, why, done, context);
}

static int carry_out_job_kill(struct order *order)
{
	return wlb_slurm_job_kill(order->job_id, &order->error);
}

void wlbd_slurm_job_kill(struct wlbd *wlbd, uint32_t job_id, const char *why,
                         void (*done)(void *context, const char *failure), void *context)
{
	order_job(wlbd, carry_out_job_kill, "end", job_id, why, done, context);
}

/* ---- SlurmUser and the name of the cluster
 * ------------------------------------------------------------------------------------ */

struct identity {
	struct wlbd_task task;
	struct wlbd *wlbd;
	uid_t uid;
	char cluster[64];
};

static void run_identity(struct wlbd_task *task)
{
	struct identity *identity = (struct identity *)task;
	identity->uid = wlb_slurm_user();
	if (identity->uid == (uid_t)-1 ||
	    !wlb_slurm_config("ClusterName", identity->cluster, sizeof(identity->cluster)))
		identity->cluster[0] = '\0';
}

static void retry_identity(evutil_socket_t fd, short what, void *context)
{
	struct wlbd *wlbd = context;
	(void)fd;
	(void)what;
	if (!wlbd->stopping)
		wlbd_slurm_identify(wlbd);
}

static void finish_identity(struct wlbd_task *task)
{
	struct identity *identity = (struct identity *)task;
	struct wlbd *wlbd = identity->wlbd;
	struct timeval later = {5, 0};
	wlbd->slurm_uid = identity->uid;
	memcpy(wlbd->cluster, identity->cluster, sizeof(wlbd->cluster));
	free(identity);
	if (wlbd->slurm_uid != (uid_t)-1 || wlbd->stopping)
		return;
	wlbd_log(WLBD_LOG_WARNING, "slurmctld does not answer; asking again in 5 s");
	event_base_once(wlbd->base, -1, EV_TIMEOUT, retry_identity, wlbd, &later);
}

static void discard_identity(struct wlbd_task *task)
{
	free(task);
}

void wlbd_slurm_identify(struct wlbd *wlbd)
{
	struct identity *identity = calloc(1, sizeof(*identity));
	if (identity == NULL)
		return;
	identity->task = (struct wlbd_task){.run = run_identity, .done = finish_identity, .discard = discard_identity};
	identity->wlbd = wlbd;
	wlbd_thread_pool_submit(wlbd->slurm_questions, &identity->task);
}
