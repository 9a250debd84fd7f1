#include "coordinator/client/reporter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <jansson.h>

#include "common/clock.h"
#include "common/json_text.h"
#include "coordinator/client/backoff.h"
#include "coordinator/client/client.h"
#include "coordinator/client/deliver.h"
#include "coordinator/client/end_order.h"
#include "coordinator/client/peers.h"
#include "coordinator/client/spool.h"

enum {
	PERIOD_MS = 1000,
	REPORT_MS = 2000,  /* one report, answered or not */
	RECORDS_MS = 5000, /* one batch */
	GOODBYE_MS = 500,
	UNAVAILABLE_MS = 100, /* for the last requests, if the one before was not answered */
	FLUSH_RETRY_MS = 50,
};

struct wlb_reporter {
	/* Set once by start. */
	pid_t owner; /* a forked child has no thread: its calls do nothing */
	pthread_t thread;
	int wake_fd;   /* eventfd: stop, or something to send now */
	int cancel_fd; /* timerfd: ends any request at the deadline of stop */
	char *node;
	int rank;
	struct wlb_spool_identity identity;
	struct wlb_spool *spool; /* NULL: reports only */

	/* Shared with callers. */
	_Atomic int64_t step;
	atomic_bool stopping;
	_Atomic int64_t stop_deadline_ms;
	atomic_bool silent;      /* stop sends nothing to the coordinator */
	atomic_bool unavailable; /* the last request was not answered, or not by the database */
	atomic_bool must_end;
	atomic_bool survivors_ended;
	char end_reason[512]; /* written once, before must_end */
	pthread_mutex_t lock;
	char step_id[32];    /* under the lock, as the next five */
	char slurm_end[512]; /* why Slurm ends the tasks; "": it does not */
	double slurm_end_s;  /* since 1970 */
	bool is_slurm_end_certain;
	bool sync_failed;            /* since the last record */
	struct wlb_error sync_error; /* why */

	/* The thread's own. */
	struct wlb_connection *connection; /* NULL: no coordinator is configured */
	struct wlb_peers peers;
	struct pollfd *polls;
	struct wlb_backoff reports;
	struct wlb_backoff records;
};

/* ---- reports -------------------------------------------------------------------------------------------------- */

static json_t *lost_ranks(const struct wlb_peers *peers)
{
	json_t *lost = json_array();
	for (int i = 0; i < peers->count; i++)
		if (peers->list[i].lost && !peers->list[i].reported)
			json_array_append_new(lost, json_pack("{s:i, s:f}", "rank", peers->list[i].rank, "time",
			                                      peers->list[i].lost_time_s));
	return lost;
}

static char *report_body(struct wlb_reporter *r, bool goodbye)
{
	json_t *ranks = json_array();
	if (r->rank >= 0)
		json_array_append_new(ranks, json_integer(r->rank));
	for (int i = 0; i < r->peers.count; i++)
		json_array_append_new(ranks, json_integer(r->peers.list[i].rank));
	json_t *report = json_pack("{s:s, s:s, s:o, s:i, s:o, s:I, s:o, s:b}", "attempt_id", r->identity.attempt_id,
	                           "source", r->rank >= 0 ? "node" : "run", "node", wlb_json_text(r->node), "rank",
	                           r->rank, "ranks", ranks, "step", (json_int_t)atomic_load(&r->step), "lost_ranks",
	                           lost_ranks(&r->peers), "goodbye", goodbye);
	pthread_mutex_lock(&r->lock);
	if (r->step_id[0] != '\0')
		json_object_set_new(report, "step_id", wlb_json_text(r->step_id));
	if (r->slurm_end[0] != '\0')
		json_object_set_new(report, "slurm_end",
		                    json_pack("{s:o, s:f, s:b}", "why", wlb_json_text(r->slurm_end), "time",
		                              r->slurm_end_s, "certain", r->is_slurm_end_certain));
	pthread_mutex_unlock(&r->lock);
	char *body = json_dumps(report, JSON_COMPACT);
	json_decref(report);
	return body;
}

static void apply_order(struct wlb_reporter *r, const struct wlb_reply *reply)
{
	if (!atomic_load(&r->must_end) && wlb_reply_orders_end(reply, r->end_reason, sizeof(r->end_reason)))
		atomic_store(&r->must_end, true);
	if (wlb_reply_survivors_ended(reply))
		atomic_store(&r->survivors_ended, true);
}

static void send_report(struct wlb_reporter *r, int timeout_ms, bool goodbye)
{
	char path[128];
	struct wlb_reply reply;
	char *body = report_body(r, goodbye);
	if (body == NULL)
		return;
	snprintf(path, sizeof(path), "/v1/runs/%s/report", r->identity.run_id);
	int rc = wlb_connection_request(r->connection, "POST", path, body, timeout_ms, &reply, NULL);
	free(body);
	wlb_backoff_note(&r->reports, rc != 0);
	atomic_store(&r->unavailable, rc != 0);
	if (rc != 0)
		return;
	if (reply.status == 200) {
		apply_order(r, &reply);
		/* A report with lost ranks is answered with a proof, whatever the order. */
		for (int i = 0; reply.proved && i < r->peers.count; i++)
			r->peers.list[i].reported = r->peers.list[i].reported || r->peers.list[i].lost;
	}
	free(reply.body);
}

/* ---- the thread ----------------------------------------------------------------------------------------------- */

/* Sends pending batches until `until_ms`. Returns true if nothing is left that could be sent now. */
static bool send_records(struct wlb_reporter *r, int64_t until_ms, int timeout_ms)
{
	enum wlb_delivery outcome = WLB_DELIVERY_MORE;
	while (outcome == WLB_DELIVERY_MORE && wlb_clock_left_ms(until_ms) > 0)
		outcome = wlb_deliver_batch(r->connection, r->spool, timeout_ms, NULL);
	wlb_backoff_note(&r->records, outcome != WLB_DELIVERY_DONE && outcome != WLB_DELIVERY_MORE);
	atomic_store(&r->unavailable, outcome == WLB_DELIVERY_UNAVAILABLE);
	return outcome == WLB_DELIVERY_DONE;
}

static void sync_spool(struct wlb_reporter *r)
{
	struct wlb_error error;
	if (r->spool == NULL || wlb_spool_sync(r->spool, &error) == 0)
		return;
	pthread_mutex_lock(&r->lock);
	r->sync_failed = true;
	r->sync_error = error;
	pthread_mutex_unlock(&r->lock);
}

/* Returns -1 with the reason where records could not be synced since the last call. */
static int take_sync_error(struct wlb_reporter *r, struct wlb_error *error)
{
	pthread_mutex_lock(&r->lock);
	bool failed = r->sync_failed;
	r->sync_failed = false;
	if (failed && error != NULL)
		*error = r->sync_error;
	pthread_mutex_unlock(&r->lock);
	return failed ? -1 : 0;
}

static void tick(struct wlb_reporter *r, int64_t next_ms)
{
	sync_spool(r);
	if (r->spool != NULL)
		wlb_spool_touch(r->spool);
	if (r->connection == NULL)
		return;
	int64_t now_ms = wlb_clock_ms();
	if (r->node != NULL && now_ms >= r->reports.until_ms)
		send_report(r, REPORT_MS, false);
	if (r->spool != NULL && now_ms >= r->records.until_ms && wlb_spool_pending(r->spool) > 0)
		send_records(r, next_ms, RECORDS_MS);
}

/* Sleeps until `next_ms`; returns true earlier, as soon as there is something to send or stop is requested. */
static bool pause_until(struct wlb_reporter *r, int64_t next_ms)
{
	eventfd_t wakes;
	while (!atomic_load(&r->stopping)) {
		int left_ms = wlb_clock_left_ms(next_ms);
		r->polls[0] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
		int count = 1 + wlb_peers_poll(&r->peers, r->polls + 1);
		poll(r->polls, (nfds_t)count, left_ms);
		if (wlb_peers_check(&r->peers) || eventfd_read(r->wake_fd, &wakes) == 0)
			return true;
		if (left_ms == 0)
			return false;
	}
	return true;
}

/* Sends, within the deadline of stop(), the rest of the records, then a goodbye. A coordinator that did not answer the
 * last request is tried once more, without waiting. */
static void finish(struct wlb_reporter *r)
{
	int64_t deadline_ms = atomic_load(&r->stop_deadline_ms);
	sync_spool(r);
	if (r->connection == NULL || atomic_load(&r->silent))
		return;
	bool unavailable = r->records.failures > 0 || r->reports.failures > 0;
	int max_ms = unavailable ? UNAVAILABLE_MS : RECORDS_MS;
	while (r->spool != NULL && wlb_spool_pending(r->spool) > 0 && wlb_clock_left_ms(deadline_ms) > 0) {
		int left_ms = wlb_clock_left_ms(deadline_ms);
		if (send_records(r, deadline_ms, left_ms < max_ms ? left_ms : max_ms) || r->records.failures > 0)
			break;
		wlb_clock_sleep_ms(FLUSH_RETRY_MS);
	}
	wlb_connection_cancel_on(r->connection, -1);
	/* The goodbye is sent even if the database does not answer: a connection that closes without it is taken for a
	 * death. */
	int left_ms = r->reports.failures > 0 ? 0 : wlb_clock_left_ms(deadline_ms);
	if (r->node != NULL)
		send_report(r,
		            left_ms < UNAVAILABLE_MS ? UNAVAILABLE_MS
		            : left_ms < GOODBYE_MS   ? left_ms
		                                     : GOODBYE_MS,
		            true);
}

static void *reporter_thread(void *argument)
{
	struct wlb_reporter *r = argument;
	int64_t next_ms = wlb_clock_ms();
	while (!atomic_load(&r->stopping)) {
		next_ms += PERIOD_MS;
		if (next_ms < wlb_clock_ms())
			next_ms = wlb_clock_ms() + PERIOD_MS; /* a request took long: no burst to catch up */
		tick(r, next_ms);
		if (pause_until(r, next_ms) && !atomic_load(&r->stopping))
			r->reports.until_ms = 0; /* what is new is reported without a pause */
	}
	wlb_peers_close(&r->peers);
	finish(r);
	return NULL;
}

/* ---- start and end -------------------------------------------------------------------------------------------- */

static void reporter_free(struct wlb_reporter *r)
{
	wlb_spool_close(r->spool, true);
	wlb_connection_free(r->connection);
	wlb_peers_close(&r->peers);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	if (r->cancel_fd >= 0)
		close(r->cancel_fd);
	pthread_mutex_destroy(&r->lock);
	free(r->polls);
	free(r->node);
	free(r);
}

static int open_parts(struct wlb_reporter *r, const struct wlb_client_config *config,
                      const struct wlb_reporter_options *o, struct wlb_error *error)
{
	const char *source = o->source != NULL ? o->source : "node";
	if (wlb_spool_identify(&r->identity, o->run_id, o->attempt_id, source, error) != 0)
		return -1;
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->cancel_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->wake_fd < 0 || r->cancel_fd < 0)
		return wlb_fail(error, "reporter: no file descriptor: %s", strerror(errno));
	r->polls = calloc((size_t)o->peer_count + 1, sizeof(*r->polls));
	if (r->polls == NULL || (o->node != NULL && (r->node = strdup(o->node)) == NULL))
		return wlb_fail(error, "reporter: no memory");
	if (wlb_peers_open(&r->peers, o->peer_ranks, o->peer_pids, o->peer_count, error) != 0)
		return -1;
	if (config != NULL && (r->connection = wlb_connection_new(config)) == NULL)
		return wlb_fail(error, "reporter: no memory");
	if (r->connection != NULL)
		wlb_connection_cancel_on(r->connection, r->cancel_fd);
	if (o->source != NULL && (r->spool = wlb_spool_open(o->spool_dir, &r->identity, error)) == NULL)
		return -1;
	return 0;
}

/* The thread blocks all signals: they are for the program's own threads. */
static int start_thread(struct wlb_reporter *r, struct wlb_error *error)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&r->thread, NULL, reporter_thread, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0 ? 0 : wlb_fail(error, "reporter: no thread: %s", strerror(rc));
}

struct wlb_reporter *wlb_reporter_start(const struct wlb_client_config *config,
                                        const struct wlb_reporter_options *options, struct wlb_error *error)
{
	struct wlb_reporter *r = calloc(1, sizeof(*r));
	if (r == NULL) {
		wlb_fail(error, "reporter: no memory");
		return NULL;
	}
	r->wake_fd = r->cancel_fd = -1;
	r->owner = getpid();
	r->rank = options->rank;
	pthread_mutex_init(&r->lock, NULL);
	if (open_parts(r, config, options, error) == 0 && start_thread(r, error) == 0)
		return r;
	reporter_free(r);
	return NULL;
}

void wlb_reporter_abandon(struct wlb_reporter *reporter)
{
	if (reporter == NULL || reporter->owner != getpid())
		return;
	atomic_store(&reporter->silent, true);
	wlb_reporter_stop(reporter, 0);
}

bool wlb_reporter_unavailable(const struct wlb_reporter *reporter)
{
	return atomic_load(&reporter->unavailable);
}

int64_t wlb_reporter_stop(struct wlb_reporter *reporter, int flush_ms)
{
	if (reporter == NULL || reporter->owner != getpid())
		return 0;
	/* A timerfd set to zero would be disarmed instead of due. */
	struct itimerspec deadline = {
		.it_value = {.tv_sec = flush_ms / 1000, .tv_nsec = flush_ms % 1000 * 1000000L + 1}};
	atomic_store(&reporter->stop_deadline_ms, wlb_clock_ms() + flush_ms);
	timerfd_settime(reporter->cancel_fd, 0, &deadline, NULL);
	atomic_store(&reporter->stopping, true);
	eventfd_write(reporter->wake_fd, 1);
	pthread_join(reporter->thread, NULL);
	int64_t left = reporter->spool != NULL ? wlb_spool_pending(reporter->spool) : 0;
	reporter_free(reporter);
	return left;
}

/* ---- callers -------------------------------------------------------------------------------------------------- */

int wlb_reporter_record(struct wlb_reporter *reporter, const char *type, const char *data, struct wlb_error *error)
{
	return wlb_reporter_record_of(reporter, type, data, wlb_clock_unix_s(), error);
}

int wlb_reporter_record_of(struct wlb_reporter *reporter, const char *type, const char *data, double time_s,
                           struct wlb_error *error)
{
	if (reporter->owner != getpid())
		return wlb_fail(error, "record '%.40s': a forked child cannot record", type);
	if (reporter->spool == NULL)
		return wlb_fail(error, "record '%.40s': this reporter was started without a source", type);
	if (wlb_spool_append_of(reporter->spool, type, data, time_s, error) != 0)
		return -1;
	return take_sync_error(reporter, error);
}

void wlb_reporter_progress(struct wlb_reporter *reporter, int64_t step)
{
	atomic_store(&reporter->step, step);
}

void wlb_reporter_step_id(struct wlb_reporter *reporter, const char *step_id)
{
	pthread_mutex_lock(&reporter->lock);
	snprintf(reporter->step_id, sizeof(reporter->step_id), "%s", step_id);
	pthread_mutex_unlock(&reporter->lock);
}

void wlb_reporter_slurm_end(struct wlb_reporter *reporter, const char *why, double time_s, bool is_certain)
{
	pthread_mutex_lock(&reporter->lock);
	snprintf(reporter->slurm_end, sizeof(reporter->slurm_end), "%s", why);
	reporter->slurm_end_s = time_s;
	reporter->is_slurm_end_certain = is_certain;
	pthread_mutex_unlock(&reporter->lock);
	eventfd_write(reporter->wake_fd, 1);
}

int wlb_reporter_must_end(const struct wlb_reporter *reporter, const char **reason)
{
	if (!atomic_load(&reporter->must_end))
		return 0;
	if (reason != NULL)
		*reason = reporter->end_reason;
	return 1;
}

bool wlb_reporter_survivors_ended(const struct wlb_reporter *reporter)
{
	return atomic_load(&reporter->survivors_ended);
}
