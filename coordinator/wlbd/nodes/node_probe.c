#include "coordinator/wlbd/nodes/node_probe.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/nodes/own_network.h"
#include "coordinator/wlbd/nodes/program_probe.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	SECOND_PROBE_MS = 200,
	TRIES = 2,
	RECENT_REPORT_MS =
		2000, /* a report this recent, over an open connection, proves that the node's programs run */
	SILENCE_BROKEN_MS = 5000, /* failed probes further apart than this prove nothing about the time between them */
	SILENT_PROBES_MIN = 4,
	UNPROVED_PAUSE_MS = 1000,
	UNPROVED_MAX_MS = 30000, /* then the answer is that nothing is known of the node */
	HOST_SILENT_MS = 60000,  /* longer than a switch or a network takes to start again */
	NETWORK_QUIET_MS = 6000, /* longer than the 4.2 s from one question about the network to the next */
	NETWORK_BACK_MS = 8000,  /* of two questions: nodes do not all answer at once when a network is back */
};

/* One caller that waits for the answer. */
struct asker {
	TAILQ_ENTRY(asker) link;
	uid_t uid; /* for whom is asked */
	void (*done)(void *context, bool alive);
	void *context;
};

/* A node that was probed at least once. There are at most as many as Slurm has nodes. */
struct probed_node {
	TAILQ_ENTRY(probed_node) link;
	struct wlbd_node_probes *probes;
	char name[256];
	TAILQ_HEAD(, asker) askers; /* none: no probe is under way */
	int tries;
	struct event *pause;
	struct wlbd_program_probe *probe;
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
	TAILQ_HEAD(, probed_node) list;
	void *tree;                     /* by name */
	int64_t network_seen_ms;        /* when a probe last brought a packet of another host; 0: none did */
	bool was_silent;                /* a question about the network brought nothing since then */
	int64_t network_unavailable_ms; /* when one more brought nothing, long after the last packet; 0: never */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct probed_node *)a)->name, ((const struct probed_node *)b)->name);
}

static struct probed_node *find(const struct wlbd_node_probes *probes, const char *name)
{
	struct probed_node key;
	snprintf(key.name, sizeof(key.name), "%s", name);
	struct probed_node **found = tfind(&key, &probes->tree, by_name);
	return found != NULL ? *found : NULL;
}

/* ---- one probe ---------------------------------------------------------------------------------- */

static bool has_recent_report(const struct probed_node *probed, uid_t uid)
{
	int64_t report_ms = wlbd_attempts_last_report_ms(probed->probes->wlbd->attempts, probed->name, uid);
	return report_ms > 0 && wlb_clock_ms() - report_ms < RECENT_REPORT_MS;
}

/* `done` may ask about the node again, so that the askers are removed first. */
static void answer(struct probed_node *probed, bool slurmd_answered)
{
	TAILQ_HEAD(, asker) askers = TAILQ_HEAD_INITIALIZER(askers);
	struct asker *asker;
	TAILQ_CONCAT(&askers, &probed->askers, link);
	while ((asker = TAILQ_FIRST(&askers)) != NULL) {
		TAILQ_REMOVE(&askers, asker, link);
		asker->done(asker->context, slurmd_answered || has_recent_report(probed, asker->uid));
		free(asker);
	}
}

static void note_answer(struct probed_node *probed)
{
	probed->silent_probes = 0;
}

static void note_silence(struct probed_node *probed, enum wlbd_probe_outcome outcome, int64_t asked_ms)
{
	probed->is_accepted = outcome == WLBD_PROBE_ACCEPTED;
	if (probed->silent_probes == 0 || asked_ms - probed->silent_until_ms > SILENCE_BROKEN_MS) {
		probed->silent_probes = 0;
		probed->silent_since_ms = asked_ms;
		probed->host_silent_since_ms = 0;
	}
	if (outcome != WLBD_PROBE_FAILED)
		probed->host_silent_since_ms = 0;
	else if (probed->host_silent_since_ms == 0)
		probed->host_silent_since_ms = asked_ms;
	probed->silent_probes++;
	probed->silent_until_ms = wlb_clock_ms();
}

static void try_again_in(struct probed_node *probed, int ms)
{
	struct timeval pause = {ms / 1000, ms % 1000 * 1000};
	wlbd_nodes_resolve_again(probed->probes->wlbd, probed->name);
	event_add(probed->pause, &pause);
}

static void try_probe(evutil_socket_t fd, short what, void *context);

static void note_unproved(struct probed_node *probed)
{
	if (probed->unproved_since_ms != 0)
		return;
	probed->unproved_since_ms = wlb_clock_ms();
	wlbd_log(WLBD_LOG_WARNING,
	         "node %s is not set to lost: no other node answers the probes either, or one has answered only just "
	         "now, so the network of this host may be down; check its link and its firewall",
	         probed->name);
}

static bool is_just_past(int64_t at_ms)
{
	return at_ms != 0 && wlb_clock_ms() - at_ms < NETWORK_BACK_MS;
}

static bool network_is_just_back(const struct probed_node *probed)
{
	return is_just_past(probed->silent_ms) || is_just_past(probed->probes->network_unavailable_ms);
}

static void note_packet(struct wlbd_node_probes *probes)
{
	probes->network_seen_ms = wlb_clock_ms();
	probes->was_silent = false;
}

/* Where the nodes of a rack have died, the question about this host's network may have asked dead nodes alone: after
 * one question without a packet only this node waits for another question. After two such questions, and no packet for
 * some time, all nodes wait. */
static void note_network(struct probed_node *probed, enum wlbd_own_network_state state)
{
	struct wlbd_node_probes *probes = probed->probes;
	int64_t now_ms = wlb_clock_ms();
	if (state == WLBD_OWN_NETWORK_WORKS)
		note_packet(probes);
	if (state != WLBD_OWN_NETWORK_SILENT)
		return;
	probed->silent_ms = now_ms;
	if (probes->was_silent && (probes->network_seen_ms == 0 || now_ms - probes->network_seen_ms > NETWORK_QUIET_MS))
		probes->network_unavailable_ms = now_ms;
	probes->was_silent = true;
}

/* As long as the network of this host may be unavailable, and just after it, nobody is told that the node is dead. */
static void on_own_network(void *context, enum wlbd_own_network_state state)
{
	struct probed_node *probed = context;
	note_network(probed, state);
	if (state != WLBD_OWN_NETWORK_SILENT && !network_is_just_back(probed)) {
		probed->network_works = true; /* perhaps only since the last probe */
		probed->unproved_since_ms = 0;
		probed->tries = TRIES - 1;
		try_probe(-1, 0, probed);
		return;
	}
	note_unproved(probed);
	if (wlb_clock_ms() - probed->unproved_since_ms > UNPROVED_MAX_MS) {
		answer(probed, true);
		return;
	}
	probed->tries = 0;
	try_again_in(probed, UNPROVED_PAUSE_MS);
}

static bool is_of_another_host(const struct probed_node *probed)
{
	const struct wlbd_node *node = wlbd_nodes_find(probed->probes->wlbd->nodes, probed->name);
	return node != NULL && !wlbd_node_is_this_host(node);
}

/* Whether it may be the network of this host, and not the node, that sends nothing. */
static bool may_be_own_network(const struct probed_node *probed, enum wlbd_probe_outcome outcome)
{
	return outcome == WLBD_PROBE_FAILED && is_of_another_host(probed);
}

static void on_probed(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms)
{
	struct probed_node *probed = context;
	bool alive = outcome == WLBD_PROBE_ANSWERED;
	probed->probe = NULL;
	if (alive)
		note_answer(probed);
	else
		note_silence(probed, outcome, wlb_clock_ms() - took_ms);
	if (outcome != WLBD_PROBE_FAILED && is_of_another_host(probed))
		note_packet(probed->probes);
	if (!may_be_own_network(probed, outcome))
		probed->unproved_since_ms = 0;
	if (!alive && ++probed->tries < TRIES)
		try_again_in(probed, SECOND_PROBE_MS);
	else if (may_be_own_network(probed, outcome) && !probed->network_works)
		wlbd_own_network_ask(&probed->own_network, probed->probes->wlbd, probed->name, on_own_network, probed);
	else
		answer(probed, alive);
}

static void try_probe(evutil_socket_t fd, short what, void *context)
{
	struct probed_node *probed = context;
	struct wlbd *wlbd = probed->probes->wlbd;
	const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, probed->name);
	(void)fd;
	(void)what;
	if (node != NULL && node->address_length > 0)
		probed->probe = wlbd_program_probe_start(wlbd->base, (const struct sockaddr *)&node->address,
		                                         node->address_length, on_probed, probed);
	if (probed->probe != NULL)
		return;
	wlbd_log(WLBD_LOG_WARNING, "node %s cannot be probed and counts as alive: %s", probed->name,
	         node == NULL || node->address_length == 0 ? "Slurm gave no address that resolves"
	                                                   : "out of memory or descriptors");
	note_answer(probed);
	answer(probed, true);
}

/* ---- askers -------------------------------------------------------------------------------------- */

static struct probed_node *probed_node_new(struct wlbd_node_probes *probes, const char *name)
{
	struct probed_node *probed = calloc(1, sizeof(*probed));
	if (probed == NULL)
		return NULL;
	probed->probes = probes;
	snprintf(probed->name, sizeof(probed->name), "%s", name);
	probed->pause = evtimer_new(probes->wlbd->base, try_probe, probed);
	TAILQ_INIT(&probed->askers);
	if (probed->pause == NULL || tsearch(probed, &probes->tree, by_name) == NULL) {
		if (probed->pause != NULL)
			event_free(probed->pause);
		free(probed);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&probes->list, probed, link);
	return probed;
}

void wlbd_node_probe(struct wlbd_node_probes *probes, const char *name, uid_t uid,
                     void (*done)(void *context, bool alive), void *context)
{
	struct probed_node *probed = NULL;
	struct asker *asker = NULL;
	if (wlbd_nodes_find(probes->wlbd->nodes, name) != NULL) {
		probed = find(probes, name);
		probed = probed != NULL ? probed : probed_node_new(probes, name);
		asker = probed != NULL ? calloc(1, sizeof(*asker)) : NULL;
	}
	if (asker == NULL) {
		done(context, true);
		return;
	}
	bool under_way = !TAILQ_EMPTY(&probed->askers);
	asker->uid = uid;
	asker->done = done;
	asker->context = context;
	TAILQ_INSERT_TAIL(&probed->askers, asker, link);
	if (under_way)
		return;
	probed->tries = 0;
	probed->network_works = false;
	try_probe(-1, 0, probed);
}

struct wlbd_node_silence wlbd_node_silence(const struct wlbd_node_probes *probes, const char *name)
{
	const struct probed_node *probed = find(probes, name);
	if (probed == NULL || probed->silent_probes == 0)
		return (struct wlbd_node_silence){0};
	return (struct wlbd_node_silence){.lasted_ms = probed->silent_until_ms - probed->silent_since_ms,
	                                  .probes = probed->silent_probes,
	                                  .is_accepted = probed->is_accepted};
}

/* The time in which the network of this host was unavailable does not count. */
static bool is_silent_since(const struct probed_node *probed, int64_t since_ms, int64_t min_ms, uid_t uid)
{
	int64_t network_unavailable_ms = probed->probes->network_unavailable_ms;
	since_ms = network_unavailable_ms > since_ms ? network_unavailable_ms : since_ms;
	return probed->unproved_since_ms == 0 && !network_is_just_back(probed) &&
	       probed->silent_probes >= SILENT_PROBES_MIN && probed->silent_until_ms - since_ms >= min_ms &&
	       wlb_clock_ms() - probed->silent_until_ms < SILENCE_BROKEN_MS && !has_recent_report(probed, uid);
}

bool wlbd_node_is_silent(const struct wlbd_node_probes *probes, const char *name, uid_t uid)
{
	const struct probed_node *probed = find(probes, name);
	return probed != NULL &&
	       is_silent_since(probed, probed->silent_since_ms, probes->wlbd->config.node_down_after_ms, uid);
}

bool wlbd_node_host_is_silent(const struct wlbd_node_probes *probes, const char *name, uid_t uid)
{
	const struct probed_node *probed = find(probes, name);
	return probed != NULL && probed->host_silent_since_ms != 0 &&
	       is_silent_since(probed, probed->host_silent_since_ms, HOST_SILENT_MS, uid);
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

static void probed_node_free(struct probed_node *probed)
{
	answer(probed, true);
	wlbd_program_probe_cancel(probed->probe);
	wlbd_own_network_cancel(&probed->own_network);
	event_free(probed->pause);
	tdelete(probed, &probed->probes->tree, by_name);
	free(probed);
}

void wlbd_node_probes_free(struct wlbd_node_probes *probes)
{
	struct probed_node *probed;
	while (probes != NULL && (probed = TAILQ_FIRST(&probes->list)) != NULL) {
		TAILQ_REMOVE(&probes->list, probed, link);
		probed_node_free(probed);
	}
	free(probes);
}
