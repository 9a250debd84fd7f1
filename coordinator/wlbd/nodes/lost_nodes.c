#include "coordinator/wlbd/nodes/lost_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/attempts/names.h"
#include "coordinator/wlbd/http/route.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/nodes/node_probe.h"
#include "coordinator/wlbd/slurm/job_poll.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	PROBE_EVERY_MS = 300,
	ASK_AGAIN_MS = 2000,       /* where slurmctld does not answer, or the job has ended */
	WATCH_MAX_MS = 120000,     /* beyond node_down_after_ms; after that Slurm finds out by itself */
	REQUEUE_WITHIN_MS = 15000, /* how long a job that ended may take until it is requeued */
	WATCHED_MAX = 4096,
};

/* A node that one job lost: it is probed until it is silent for long enough, then Slurm is asked about the job. */
struct lost_watch {
	TAILQ_ENTRY(lost_watch) link;
	struct wlbd_lost_nodes *lost;
	char node[256];
	char run[WLBD_RUN_NAME_SIZE];
	uint32_t job_id;
	uid_t uid;
	bool node_confirmed; /* Slurm has said that the job had it during an attempt */
	int64_t began_ms;
	struct event *timer;
};

/* A node that is or was watched: a loss that is stored is not acted on twice. */
struct past_watch {
	TAILQ_ENTRY(past_watch) link;
	uint32_t job_id;
	char node[256];
};

struct wlbd_lost_nodes {
	struct wlbd *wlbd;
	TAILQ_HEAD(, lost_watch) list;
	int count;
	TAILQ_HEAD(, past_watch) past;
	int past_count;
};

static void watch_free(struct lost_watch *watch)
{
	TAILQ_REMOVE(&watch->lost->list, watch, link);
	watch->lost->count--;
	event_free(watch->timer);
	free(watch);
}

static void cancel_watch(struct lost_watch *watch, const char *why)
{
	wlbd_log(WLBD_LOG_INFO, "run %s: node %s is not set DOWN: %s", watch->run, watch->node, why);
	watch_free(watch);
}

static void retry_in(struct lost_watch *watch, int ms)
{
	struct timeval later = {ms / 1000, ms % 1000 * 1000};
	event_add(watch->timer, &later);
}

static void set_down_now(struct lost_watch *watch)
{
	char reason[384];
	snprintf(reason, sizeof(reason), "wlb: run %s: node %s lost", watch->run, watch->node);
	wlbd_slurm_node_down(watch->lost->wlbd, watch->node, reason);
	wlbd_job_poll_soon(watch->lost->wlbd->job_poll, watch->job_id, true);
	watch_free(watch);
}

static void on_probed_again(void *context, bool alive)
{
	struct lost_watch *watch = context;
	if (alive)
		cancel_watch(watch, "it answers, or the network of this host may be unavailable");
	else
		set_down_now(watch);
}

/* Slurm may have answered so late that the node is back meanwhile. */
static void set_down(struct lost_watch *watch)
{
	struct wlbd *wlbd = watch->lost->wlbd;
	if (wlbd_node_is_silent(wlbd->node_probes, watch->node, watch->uid))
		set_down_now(watch);
	else
		wlbd_node_probe(wlbd->node_probes, watch->node, watch->uid, on_probed_again, watch);
}

static bool has_node(const struct wlb_slurm_job *job, const char *node)
{
	struct wlbd_names names = {0};
	bool has = wlbd_names_from_hostlist(&names, job->nodes) == 0 && wlbd_names_find(&names, node) >= 0;
	wlbd_names_free(&names);
	return has;
}

static void on_nodes(void *context, const struct wlb_error *error)
{
	struct lost_watch *watch = context;
	struct wlbd *wlbd = watch->lost->wlbd;
	if (wlbd->stopping)
		return;
	const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, watch->node);
	if (error != NULL)
		retry_in(watch, ASK_AGAIN_MS);
	else if (node != NULL && node->allocated)
		cancel_watch(watch, "the run's job is requeued, and another job has it");
	else
		set_down(watch);
}

/* A requeued job has no nodes, but would start on a lost one as long as Slurm does not know that it is
 * lost. A user may name any node for a job that has never run, and one that it had may be another user's now. */
static void decide_queued(struct lost_watch *watch)
{
	if (watch->node_confirmed)
		wlbd_nodes_refresh(watch->lost->wlbd, 0, on_nodes, watch);
	else
		cancel_watch(watch, "the run's job is in the queue, and Slurm has not said that it had this node");
}

static void decide(struct lost_watch *watch, const struct wlb_slurm_job *job)
{
	if (!job->finished && !job->running && !job->suspended)
		decide_queued(watch);
	else if (!job->finished && has_node(job, watch->node))
		set_down(watch);
	else if (!job->finished)
		cancel_watch(watch, "the run's job no longer has it");
	else if (wlb_clock_ms() - watch->began_ms < watch->lost->wlbd->config.node_down_after_ms + REQUEUE_WITHIN_MS)
		retry_in(watch, ASK_AGAIN_MS);
	else
		cancel_watch(watch, "the run's job has ended");
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct lost_watch *watch = context;
	if (facts->found < 0)
		retry_in(watch, ASK_AGAIN_MS);
	else if (facts->found == 0 || facts->job.uid != watch->uid)
		cancel_watch(watch, "Slurm does not know such a job of the run's owner");
	else
		decide(watch, &facts->job);
}

static void on_probed(void *context, bool alive)
{
	struct lost_watch *watch = context;
	struct wlbd *wlbd = watch->lost->wlbd;
	if (alive)
		cancel_watch(watch, "it answers, or the network of this host may be unavailable");
	else if (wlb_clock_ms() - watch->began_ms > wlbd->config.node_down_after_ms + WATCH_MAX_MS)
		cancel_watch(watch, "slurmctld did not answer for too long");
	else if (!wlbd_node_is_silent(wlbd->node_probes, watch->node, watch->uid))
		retry_in(watch, PROBE_EVERY_MS);
	else
		wlbd_slurm_job(wlbd, watch->job_id, 0, on_job, watch);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct lost_watch *watch = context;
	(void)fd;
	(void)what;
	wlbd_node_probe(watch->lost->wlbd->node_probes, watch->node, watch->uid, on_probed, watch);
}

/* Returns NULL where there is none. */
static struct lost_watch *find_watch(const struct wlbd_lost_nodes *lost, const struct wlbd_lost_node *node)
{
	struct lost_watch *watch;
	TAILQ_FOREACH(watch, &lost->list, link)
	if (watch->job_id == node->job_id && watch->uid == node->uid && strcmp(watch->node, node->name) == 0)
		return watch;
	return NULL;
}

static bool was_watched(const struct wlbd_lost_nodes *lost, const struct wlbd_lost_node *node)
{
	const struct past_watch *past;
	TAILQ_FOREACH(past, &lost->past, link)
	if (past->job_id == node->job_id && strcmp(past->node, node->name) == 0)
		return true;
	return false;
}

static void remember(struct wlbd_lost_nodes *lost, const struct wlbd_lost_node *node)
{
	struct past_watch *past = TAILQ_FIRST(&lost->past);
	if (was_watched(lost, node))
		return;
	if (lost->past_count < WATCHED_MAX) {
		past = calloc(1, sizeof(*past));
		lost->past_count += past != NULL;
	} else {
		TAILQ_REMOVE(&lost->past, past, link);
	}
	if (past == NULL)
		return;
	past->job_id = node->job_id;
	snprintf(past->node, sizeof(past->node), "%s", node->name);
	TAILQ_INSERT_TAIL(&lost->past, past, link);
}

static void begin_watch(struct wlbd_lost_nodes *lost, const struct wlbd_lost_node *node)
{
	struct lost_watch *watch = lost->count < WATCHED_MAX ? calloc(1, sizeof(*watch)) : NULL;
	if (watch != NULL)
		watch->timer = evtimer_new(lost->wlbd->base, on_timer, watch);
	if (watch == NULL || watch->timer == NULL) {
		wlbd_log(WLBD_LOG_ERROR, "run %s: node %s is not set DOWN: too many lost nodes, or out of memory",
		         node->run, node->name);
		free(watch);
		return;
	}
	watch->lost = lost;
	snprintf(watch->node, sizeof(watch->node), "%s", node->name);
	snprintf(watch->run, sizeof(watch->run), "%s", node->run);
	watch->job_id = node->job_id;
	watch->uid = node->uid;
	watch->node_confirmed = node->node_confirmed;
	watch->began_ms = wlb_clock_ms();
	TAILQ_INSERT_TAIL(&lost->list, watch, link);
	lost->count++;
	retry_in(watch, 0);
	if (node->node_confirmed)
		remember(lost, node);
}

void wlbd_lost_nodes_add(struct wlbd_lost_nodes *lost, const struct wlbd_lost_node *node)
{
	struct lost_watch *watch = find_watch(lost, node);
	if (watch != NULL && node->node_confirmed) {
		watch->node_confirmed = true;
		remember(lost, node);
	}
	if (watch != NULL)
		return;
	if (lost->wlbd->config.node_down)
		begin_watch(lost, node);
}

void wlbd_lost_nodes_add_stored(struct wlbd_lost_nodes *lost, const struct wlbd_lost_node *node)
{
	if (find_watch(lost, node) != NULL || !was_watched(lost, node))
		wlbd_lost_nodes_add(lost, node);
}

struct wlbd_lost_nodes *wlbd_lost_nodes_new(struct wlbd *wlbd)
{
	struct wlbd_lost_nodes *lost = calloc(1, sizeof(*lost));
	if (lost != NULL) {
		lost->wlbd = wlbd;
		TAILQ_INIT(&lost->list);
		TAILQ_INIT(&lost->past);
	}
	return lost;
}

void wlbd_lost_nodes_free(struct wlbd_lost_nodes *lost)
{
	struct past_watch *past;
	while (lost != NULL && !TAILQ_EMPTY(&lost->list))
		watch_free(TAILQ_FIRST(&lost->list));
	while (lost != NULL && (past = TAILQ_FIRST(&lost->past)) != NULL) {
		TAILQ_REMOVE(&lost->past, past, link);
		free(past);
	}
	free(lost);
}
