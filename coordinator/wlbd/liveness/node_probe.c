#include "coordinator/wlbd/liveness/node_probe.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "coordinator/wlbd/liveness/attempts.h"
#include "coordinator/wlbd/liveness/own_network.h"
#include "coordinator/wlbd/liveness/probe.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	SECOND_PROBE_MS = 200,
	TRIES = 2,
	RECENT_REPORT_MS =
		2000, /* a report this recent, over an open connection, proves that the node's programs run */
	SILENCE_BROKEN_MS = 5000, /* failed probes further apart than this prove nothing about the time between them */
	SILENT_PROBES_LEAST = 4,
	UNPROVED_PAUSE_MS = 1000,
	UNPROVED_MOST_MS = 30000, /* then the answer is that nothing is known of the node */
	HOST_SILENT_MS = 60000,   /* longer than a switch or a network takes to start again */
	NETWORK_QUIET_MS = 6000,  /* longer than the 4.2 s from one question about the network to the next */
	NETWORK_BACK_MS = 8000,   /* of two questions: nodes do not all answer at once when a network is back */
};

/* One caller that waits for the answer. */
struct asker {
	TAILQ_ENTRY(asker) link;
	uid_t uid; /* for whom is asked */
	void (*done)(void *context, bool alive);
	void *context;
};

/* A node that was probed at least once. There are at most as many as Slurm has nodes. */
struct watch {
	TAILQ_ENTRY(watch) link;
	struct wlbd_node_probes *probes;
	char name[256];
	TAILQ_HEAD(, asker) askers; /* none: no probe is under way */
	int tries;
	struct event *pause;
	struct wlbd_probe *probe;
	int64_t silent_since_ms;
	int64_t silent_until_ms; /* the last failed probe */
	int silent_probes;
	int64_t host_silent_since_ms; /* since when the node's kernel does not answer either; 0: at the last failed
	                                 probe it did */
	struct wlbd_own_network own_network;
	bool network_works;        /* another node has answered since the askers wait */
	int64_t unproved_since_ms; /* since when no other node answers either; 0: one does */
	int64_t silent_ms;         /* when its own last question about the network brought nothing; 0: never */
	bool is_accepted;          /* the last failed probe was one whose connection the node's kernel accepted */
};

struct wlbd_node_probes {
	struct wlbd *wlbd;
	TAILQ_HEAD(, watch) list;
	void *tree;              /* by name */
	int64_t network_seen_ms; /* when a probe last brought a packet of another host; 0: none did */
	bool was_silent;         /* a question about the network brought nothing since then */
	int64_t network_away_ms; /* when one more brought nothing, long after the last packet; 0: never */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct watch *)a)->name, ((const struct watch *)b)->name);
}

static struct watch *find(const struct wlbd_node_probes *probes, const char *name)
{
	struct watch key;
	snprintf(key.name, sizeof(key.name), "%s", name);
	struct watch **found = tfind(&key, &probes->tree, by_name);
	return found != NULL ? *found : NULL;
}

/* ---- one probe ---------------------------------------------------------------------------------- */

static bool has_recent_report(const struct watch *watch, uid_t uid)
{
	int64_t report_ms = wlbd_attempts_last_report_ms(watch->probes->wlbd->attempts, watch->name, uid);
	return report_ms > 0 && wlb_clock_ms() - report_ms < RECENT_REPORT_MS;
}

/* `done` may ask about the node again, so that the askers are removed first. */
static void answer(struct watch *watch, bool slurmd_answered)
{
	TAILQ_HEAD(, asker) askers = TAILQ_HEAD_INITIALIZER(askers);
	struct asker *asker;
	TAILQ_CONCAT(&askers, &watch->askers, link);
	while ((asker = TAILQ_FIRST(&askers)) != NULL) {
		TAILQ_REMOVE(&askers, asker, link);
		asker->done(asker->context, slurmd_answered || has_recent_report(watch, asker->uid));
		free(asker);
	}
}

static void note_answer(struct watch *watch)
{
	watch->silent_probes = 0;
}

static void note_silence(struct watch *watch, enum wlbd_probe_outcome outcome, int64_t asked_ms)
{
	watch->is_accepted = outcome == WLBD_PROBE_ACCEPTED;
	if (watch->silent_probes == 0 || asked_ms - watch->silent_until_ms > SILENCE_BROKEN_MS) {
		watch->silent_probes = 0;
		watch->silent_since_ms = asked_ms;
		watch->host_silent_since_ms = 0;
	}
	if (outcome != WLBD_PROBE_FAILED)
		watch->host_silent_since_ms = 0;
	else if (watch->host_silent_since_ms == 0)
		watch->host_silent_since_ms = asked_ms;
	watch->silent_probes++;
	watch->silent_until_ms = wlb_clock_ms();
}

static void try_again_in(struct watch *watch, int ms)
{
	struct timeval pause = {ms / 1000, ms % 1000 * 1000};
	wlbd_nodes_resolve_again(watch->probes->wlbd, watch->name);
	event_add(watch->pause, &pause);
}

static void try_probe(evutil_socket_t fd, short what, void *context);

static void note_unproved(struct watch *watch)
{
	if (watch->unproved_since_ms != 0)
		return;
	watch->unproved_since_ms = wlb_clock_ms();
	wlbd_log(WLBD_LOG_WARNING,
	         "node %s is not set to lost: no other node answers the probes either, or one has answered only just "
	         "now, so the network of this host may be down; check its link and its firewall",
	         watch->name);
}

static bool is_just_past(int64_t at_ms)
{
	return at_ms != 0 && wlb_clock_ms() - at_ms < NETWORK_BACK_MS;
}

static bool network_is_just_back(const struct watch *watch)
{
	return is_just_past(watch->silent_ms) || is_just_past(watch->probes->network_away_ms);
}

static void note_packet(struct wlbd_node_probes *probes)
{
	probes->network_seen_ms = wlb_clock_ms();
	probes->was_silent = false;
}

/* Where nodes of one rack have died, those that were asked may be among them while others answer: then one node waits
 * for another question. All nodes wait where two questions bring nothing, and no packet has come for some time. */
static void note_network(struct watch *watch, enum wlbd_own_network_state state)
{
	struct wlbd_node_probes *probes = watch->probes;
	int64_t now_ms = wlb_clock_ms();
	if (state == WLBD_OWN_NETWORK_WORKS)
		note_packet(probes);
	if (state != WLBD_OWN_NETWORK_SILENT)
		return;
	watch->silent_ms = now_ms;
	if (probes->was_silent && (probes->network_seen_ms == 0 || now_ms - probes->network_seen_ms > NETWORK_QUIET_MS))
		probes->network_away_ms = now_ms;
	probes->was_silent = true;
}

/* As long as the network of this host may be away, and just after it, nobody is told that the node is dead. */
static void on_own_network(void *context, enum wlbd_own_network_state state)
{
	struct watch *watch = context;
	note_network(watch, state);
	if (state != WLBD_OWN_NETWORK_SILENT && !network_is_just_back(watch)) {
		watch->network_works = true; /* perhaps only since the last probe */
		watch->unproved_since_ms = 0;
		watch->tries = TRIES - 1;
		try_probe(-1, 0, watch);
		return;
	}
	note_unproved(watch);
	if (wlb_clock_ms() - watch->unproved_since_ms > UNPROVED_MOST_MS) {
		answer(watch, true);
		return;
	}
	watch->tries = 0;
	try_again_in(watch, UNPROVED_PAUSE_MS);
}

static bool is_of_another_host(const struct watch *watch)
{
	const struct wlbd_node *node = wlbd_nodes_find(watch->probes->wlbd->nodes, watch->name);
	return node != NULL && !wlbd_node_is_this_host(node);
}

/* Whether it may be the network of this host, and not the node, that sends nothing. */
static bool may_be_own_network(const struct watch *watch, enum wlbd_probe_outcome outcome)
{
	return outcome == WLBD_PROBE_FAILED && is_of_another_host(watch);
}

static void on_probed(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms)
{
	struct watch *watch = context;
	bool alive = outcome == WLBD_PROBE_ANSWERED;
	watch->probe = NULL;
	if (alive)
		note_answer(watch);
	else
		note_silence(watch, outcome, wlb_clock_ms() - took_ms);
	if (outcome != WLBD_PROBE_FAILED && is_of_another_host(watch))
		note_packet(watch->probes);
	if (!may_be_own_network(watch, outcome))
		watch->unproved_since_ms = 0;
	if (!alive && ++watch->tries < TRIES)
		try_again_in(watch, SECOND_PROBE_MS);
	else if (may_be_own_network(watch, outcome) && !watch->network_works)
		wlbd_own_network_ask(&watch->own_network, watch->probes->wlbd, watch->name, on_own_network, watch);
	else
		answer(watch, alive);
}

static void try_probe(evutil_socket_t fd, short what, void *context)
{
	struct watch *watch = context;
	struct wlbd *wlbd = watch->probes->wlbd;
	const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, watch->name);
	(void)fd;
	(void)what;
	if (node != NULL && node->address_length > 0)
		watch->probe = wlbd_probe_start(wlbd->base, (const struct sockaddr *)&node->address,
		                                node->address_length, on_probed, watch);
	if (watch->probe != NULL)
		return;
	wlbd_log(WLBD_LOG_WARNING, "node %s cannot be probed and counts as alive: %s", watch->name,
	         node == NULL || node->address_length == 0 ? "Slurm gave no address that resolves"
	                                                   : "out of memory or descriptors");
	note_answer(watch);
	answer(watch, true);
}

/* ---- askers -------------------------------------------------------------------------------------- */

static struct watch *watch_new(struct wlbd_node_probes *probes, const char *name)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	if (watch == NULL)
		return NULL;
	watch->probes = probes;
	snprintf(watch->name, sizeof(watch->name), "%s", name);
	watch->pause = evtimer_new(probes->wlbd->base, try_probe, watch);
	TAILQ_INIT(&watch->askers);
	if (watch->pause == NULL || tsearch(watch, &probes->tree, by_name) == NULL) {
		if (watch->pause != NULL)
			event_free(watch->pause);
		free(watch);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&probes->list, watch, link);
	return watch;
}

void wlbd_node_probe(struct wlbd_node_probes *probes, const char *name, uid_t uid,
                     void (*done)(void *context, bool alive), void *context)
{
	struct watch *watch = NULL;
	struct asker *asker = NULL;
	if (wlbd_nodes_find(probes->wlbd->nodes, name) != NULL) {
		watch = find(probes, name);
		watch = watch != NULL ? watch : watch_new(probes, name);
		asker = watch != NULL ? calloc(1, sizeof(*asker)) : NULL;
	}
	if (asker == NULL) {
		done(context, true);
		return;
	}
	bool under_way = !TAILQ_EMPTY(&watch->askers);
	asker->uid = uid;
	asker->done = done;
	asker->context = context;
	TAILQ_INSERT_TAIL(&watch->askers, asker, link);
	if (under_way)
		return;
	watch->tries = 0;
	watch->network_works = false;
	try_probe(-1, 0, watch);
}

struct wlbd_node_silence wlbd_node_silence(const struct wlbd_node_probes *probes, const char *name)
{
	const struct watch *watch = find(probes, name);
	if (watch == NULL || watch->silent_probes == 0)
		return (struct wlbd_node_silence){0};
	return (struct wlbd_node_silence){.lasted_ms = watch->silent_until_ms - watch->silent_since_ms,
	                                  .probes = watch->silent_probes,
	                                  .is_accepted = watch->is_accepted};
}

/* The time in which the network of this host was away does not count. */
static bool is_silent_since(const struct watch *watch, int64_t since_ms, int64_t least_ms, uid_t uid)
{
	int64_t network_away_ms = watch->probes->network_away_ms;
	since_ms = network_away_ms > since_ms ? network_away_ms : since_ms;
	return watch->unproved_since_ms == 0 && !network_is_just_back(watch) &&
	       watch->silent_probes >= SILENT_PROBES_LEAST && watch->silent_until_ms - since_ms >= least_ms &&
	       wlb_clock_ms() - watch->silent_until_ms < SILENCE_BROKEN_MS && !has_recent_report(watch, uid);
}

bool wlbd_node_is_silent(const struct wlbd_node_probes *probes, const char *name, uid_t uid)
{
	const struct watch *watch = find(probes, name);
	return watch != NULL &&
	       is_silent_since(watch, watch->silent_since_ms, probes->wlbd->config.node_down_after_ms, uid);
}

bool wlbd_node_host_is_silent(const struct wlbd_node_probes *probes, const char *name, uid_t uid)
{
	const struct watch *watch = find(probes, name);
	return watch != NULL && watch->host_silent_since_ms != 0 &&
	       is_silent_since(watch, watch->host_silent_since_ms, HOST_SILENT_MS, uid);
}

struct wlbd_node_probes *wlbd_node_probes_new(struct wlbd *wlbd)
{
	struct wlbd_node_probes *probes = calloc(1, sizeof(*probes));
	if (probes != NULL) {
		probes->wlbd = wlbd;
		TAILQ_INIT(&probes->list);
	}
	return probes;
}

static void watch_free(struct watch *watch)
{
	answer(watch, true);
	wlbd_probe_cancel(watch->probe);
	wlbd_own_network_cancel(&watch->own_network);
	event_free(watch->pause);
	tdelete(watch, &watch->probes->tree, by_name);
	free(watch);
}

void wlbd_node_probes_free(struct wlbd_node_probes *probes)
{
	struct watch *watch;
	while (probes != NULL && (watch = TAILQ_FIRST(&probes->list)) != NULL) {
		TAILQ_REMOVE(&probes->list, watch, link);
		watch_free(watch);
	}
	free(probes);
}
