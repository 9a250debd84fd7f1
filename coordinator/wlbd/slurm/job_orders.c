#include "coordinator/wlbd/slurm/job_orders.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

struct job_order {
	TAILQ_ENTRY(job_order) link;
	struct wlbd_job_orders *orders;
	uint32_t job_id;
	void (*done)(void *context, const char *failure);
	void *context;
};

struct wlbd_job_orders {
	TAILQ_HEAD(, job_order) list; /* under way */
};

struct wlbd_job_orders *wlbd_job_orders_new(void)
{
	struct wlbd_job_orders *orders = calloc(1, sizeof(*orders));
	if (orders != NULL)
		TAILQ_INIT(&orders->list);
	return orders;
}

void wlbd_job_orders_free(struct wlbd_job_orders *orders)
{
	free(orders);
}

bool wlbd_job_orders_has(const struct wlbd_job_orders *orders, uint32_t job_id)
{
	const struct job_order *order;
	TAILQ_FOREACH(order, &orders->list, link)
	if (order->job_id == job_id)
		return true;
	return false;
}

static void on_carried_out(void *context, const char *failure)
{
	struct job_order *order = context;
	TAILQ_REMOVE(&order->orders->list, order, link);
	if (order->done != NULL)
		order->done(order->context, failure);
	free(order);
}

void wlbd_job_orders_give(struct wlbd *wlbd, enum wlbd_job_order what, uint32_t job_id, const char *why,
                          void (*done)(void *context, const char *failure), void *context)
{
	struct job_order *order = malloc(sizeof(*order));
	if (order == NULL) {
		if (done != NULL)
			done(context, "out of memory");
		return;
	}
	*order = (struct job_order){.orders = wlbd->job_orders, .job_id = job_id, .done = done, .context = context};
	TAILQ_INSERT_TAIL(&wlbd->job_orders->list, order, link);
	if (what == WLBD_JOB_REQUEUE)
		wlbd_slurm_requeue(wlbd, job_id, why, on_carried_out, order);
	else
		wlbd_slurm_job_kill(wlbd, job_id, why, on_carried_out, order);
}
