#include "coordinator/wlbd/slurm/job_poll.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "common/clock.h"

enum {
	SOON_INTERVAL_MS = 1000,
	SOON_FOR_MS = 30000,
	SOON_MAX = 4096, /* of more jobs the next ones wait for the poll of all */
};

/* A job that is looked at each second. */
struct soon_job {
	TAILQ_ENTRY(soon_job) link;
	uint32_t job_id;
	int64_t until_ms;
	int64_t nodes_until_ms; /* until then with the nodes */
};

struct wlbd_job_poll {
	int interval_ms;
	void (*poll)(void *context);
	void *context;
	struct event *timer;
	int64_t all_due_ms; /* when all jobs are looked at */
	TAILQ_HEAD(, soon_job) soon;
	int count;         /* of soon */
	bool is_of_all;    /* the poll that is under way, or that the timer waits for */
	bool is_under_way; /* `poll` was called, and wlbd_job_poll_done was not */
	bool all_again;    /* all jobs are to be looked at after the poll that is under way */
};

static void forget(struct wlbd_job_poll *poll, struct soon_job *job)
{
	TAILQ_REMOVE(&poll->soon, job, link);
	poll->count--;
	free(job);
}

static void forget_old(struct wlbd_job_poll *poll, int64_t now_ms)
{
	struct soon_job *next;
	for (struct soon_job *job = TAILQ_FIRST(&poll->soon); job != NULL; job = next) {
		next = TAILQ_NEXT(job, link);
		if (job->until_ms <= now_ms)
			forget(poll, job);
	}
}

static void set_timer(struct wlbd_job_poll *poll)
{
	int64_t now_ms = wlb_clock_ms();
	forget_old(poll, now_ms);
	int64_t ms = poll->all_due_ms > now_ms ? poll->all_due_ms - now_ms : 0;
	poll->is_of_all = TAILQ_EMPTY(&poll->soon) || ms <= SOON_INTERVAL_MS;
	if (!poll->is_of_all)
		ms = SOON_INTERVAL_MS;
	struct timeval after = {ms / 1000, ms % 1000 * 1000};
	event_add(poll->timer, &after);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct wlbd_job_poll *poll = context;
	(void)fd;
	(void)what;
	poll->is_under_way = true;
	poll->poll(poll->context);
}

struct wlbd_job_poll *wlbd_job_poll_new(struct event_base *base, int interval_ms, void (*callback)(void *context),
                                        void *context)
{
	struct wlbd_job_poll *poll = calloc(1, sizeof(*poll));
	if (poll != NULL)
		poll->timer = evtimer_new(base, on_timer, poll);
	if (poll == NULL || poll->timer == NULL) {
		free(poll);
		return NULL;
	}
	TAILQ_INIT(&poll->soon);
	poll->interval_ms = interval_ms;
	poll->poll = callback;
	poll->context = context;
	poll->all_due_ms = wlb_clock_ms() + interval_ms;
	set_timer(poll);
	return poll;
}

void wlbd_job_poll_free(struct wlbd_job_poll *poll)
{
	if (poll == NULL)
		return;
	while (!TAILQ_EMPTY(&poll->soon))
		forget(poll, TAILQ_FIRST(&poll->soon));
	event_free(poll->timer);
	free(poll);
}

void wlbd_job_poll_done(struct wlbd_job_poll *poll)
{
	poll->is_under_way = false;
	if (poll->is_of_all)
		poll->all_due_ms = wlb_clock_ms() + (poll->all_again ? SOON_INTERVAL_MS : poll->interval_ms);
	poll->all_again = false;
	set_timer(poll);
}

static bool is_due_soon(const struct wlbd_job_poll *poll)
{
	struct timeval due, now;
	const struct timeval soon = {SOON_INTERVAL_MS / 1000, SOON_INTERVAL_MS % 1000 * 1000};
	if (!evtimer_pending(poll->timer, &due))
		return false;
	evutil_gettimeofday(&now, NULL);
	evutil_timeradd(&now, &soon, &now);
	return evutil_timercmp(&due, &now, <);
}

static struct soon_job *find(const struct wlbd_job_poll *poll, uint32_t job_id)
{
	struct soon_job *job;
	TAILQ_FOREACH(job, &poll->soon, link)
	if (job->job_id == job_id)
		return job;
	return NULL;
}

/* Returns NULL where there are too many, or if out of memory. */
static struct soon_job *add(struct wlbd_job_poll *poll, uint32_t job_id)
{
	struct soon_job *job = poll->count < SOON_MAX ? calloc(1, sizeof(*job)) : NULL;
	if (job == NULL)
		return NULL;
	job->job_id = job_id;
	TAILQ_INSERT_TAIL(&poll->soon, job, link);
	poll->count++;
	return job;
}

void wlbd_job_poll_soon(struct wlbd_job_poll *poll, uint32_t job_id, bool with_nodes)
{
	struct soon_job *job = find(poll, job_id);
	if (job == NULL)
		job = add(poll, job_id);
	if (job == NULL)
		return;
	job->until_ms = wlb_clock_ms() + SOON_FOR_MS;
	if (with_nodes)
		job->nodes_until_ms = job->until_ms;
	if (!poll->is_under_way && !is_due_soon(poll))
		set_timer(poll);
}

void wlbd_job_poll_all(struct wlbd_job_poll *poll)
{
	int64_t due_ms = wlb_clock_ms() + SOON_INTERVAL_MS;
	if (due_ms < poll->all_due_ms)
		poll->all_due_ms = due_ms;
	poll->all_again = poll->is_under_way;
	if (!poll->is_under_way)
		set_timer(poll);
}

bool wlbd_job_poll_has(const struct wlbd_job_poll *poll, uint32_t job_id)
{
	return poll->is_of_all || find(poll, job_id) != NULL;
}

bool wlbd_job_poll_has_nodes(const struct wlbd_job_poll *poll)
{
	const struct soon_job *job;
	int64_t now_ms = wlb_clock_ms();
	if (poll->is_of_all)
		return true;
	TAILQ_FOREACH(job, &poll->soon, link)
	if (job->nodes_until_ms > now_ms)
		return true;
	return false;
}
