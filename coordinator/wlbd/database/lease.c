#include "coordinator/wlbd/database/lease.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/lease_end.h"
#include "coordinator/wlbd/log.h"

enum {
	PARTS = 4,         /* of a lease: the first renewal, and tries when it fails */
	MARGIN_MS = 1000,  /* for an order that left in the last moment, and for the difference of two clocks' speeds */
	LOOK_MS_MAX = 500, /* between two looks of the one that stands by */
	TAKING_MS = 50,    /* between two looks whether sessions have ended */
	RELEASE_MS = 1000, /* at the end */
};

enum state {
	STANDING_BY,
	TAKING, /* the term has begun, and sessions of the terms before are being ended */
	ACTING,
	RELEASED,
};

TAILQ_HEAD(waiter_list, wlbd_lease_waiter);

struct wlbd_lease {
	struct event_base *base;
	struct wlbd_db_server *server;
	struct wlbd_db *db;
	struct event *timer;
	struct wlbd_lease_hooks hooks;
	int lease_ms;
	char own[600];
	enum state state;
	bool is_asking; /* a statement is under way */
	int64_t term;   /* of its own; 0: none */
	int64_t asked_ms;

	/* STANDING_BY: what was seen last, and since when, of wlbd_lease_clock_ms. */
	bool has_seen;
	int64_t seen_term, seen_beats, seen_ms;
	int seen_lease_ms;
	char address[600];

	struct waiter_list waiting; /* since the statement that is under way was sent */
	struct waiter_list asked;   /* before that */
};

static void ask_in(struct wlbd_lease *lease, int ms)
{
	const struct timeval after = {ms / 1000, ms % 1000 * 1000};
	event_add(lease->timer, &after);
}

static void ask_later(struct wlbd_lease *lease)
{
	int ms = lease->lease_ms / PARTS;
	ask_in(lease, lease->state == STANDING_BY && ms > LOOK_MS_MAX ? LOOK_MS_MAX : ms);
}

/* The hook `unavailable` reports a lost connection. */
static void log_failure(const struct wlbd_lease *lease, const struct wlbd_db_result *result)
{
	if (wlbd_db_ready(lease->db))
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_DATABASE, "lease: %s", result->detail);
}

/* Takes the answer to the statement that is under way. Returns its value; NULL where it failed or is SQL's null. */
static const char *take_answer(struct wlbd_lease *lease, const struct wlbd_db_result *result)
{
	lease->is_asking = false;
	if (result->status != WLBD_DB_OK)
		log_failure(lease, result);
	return result->status == WLBD_DB_OK ? result->value : NULL;
}

/* ---- acting ---------------------------------------------------------------------------------------------- */

static void tell(struct waiter_list *list, bool renewed)
{
	struct wlbd_lease_waiter *waiter;
	while ((waiter = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, waiter, link);
		waiter->done(waiter->context, renewed);
	}
}

/* Without a timer for its end the lease cannot be kept. */
static void extend(struct wlbd_lease *lease)
{
	struct wlb_error error;
	if (wlbd_lease_end_set(lease->asked_ms + lease->lease_ms, &error) == 0)
		return;
	wlbd_log(WLBD_LOG_ERROR, "lease: %s", error.message);
	exit(EXIT_FAILURE);
}

static void begin_acting(struct wlbd_lease *lease)
{
	lease->state = ACTING;
	snprintf(lease->address, sizeof(lease->address), "%s", lease->own);
	wlbd_log(WLBD_LOG_INFO, "lease: this wlbd acts, in term %lld", (long long)lease->term);
	lease->hooks.begin(lease->hooks.context, lease->term);
}

/* `answer`: as wlb_coordinator_renew returns it. */
static void take_renewal(struct wlbd_lease *lease, const char *answer)
{
	bool is_ending = strcmp(answer, "ending") == 0;
	struct waiter_list told;
	TAILQ_INIT(&told);
	if (strcmp(answer, "lost") == 0)
		wlbd_lease_end_now();
	if (!is_ending && strcmp(answer, "renewed") != 0)
		return;
	extend(lease);
	if (lease->state == TAKING && !is_ending)
		begin_acting(lease);
	TAILQ_CONCAT(&told, &lease->asked, link); /* one that comes meanwhile asks anew */
	tell(&told, true);
}

static void on_renewed(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_lease *lease = context;
	const char *answer = take_answer(lease, result);
	if (lease->state == RELEASED)
		return;
	if (answer != NULL)
		take_renewal(lease, answer);
	/* Those who have waited in vain wait for the next answer, before those that came later. */
	TAILQ_CONCAT(&lease->asked, &lease->waiting, link);
	TAILQ_CONCAT(&lease->waiting, &lease->asked, link);
	if (lease->state == TAKING)
		ask_in(lease, TAKING_MS);
	else if (answer != NULL && !TAILQ_EMPTY(&lease->waiting))
		ask_in(lease, 0);
	else
		ask_later(lease);
}

static void renew(struct wlbd_lease *lease)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, lease->term);
	wlbd_params_add_boolean(&params, lease->state == TAKING);
	TAILQ_CONCAT(&lease->asked, &lease->waiting, link);
	wlbd_db_execute(lease->db, "select wlb_coordinator_renew($1, $2)", &params, on_renewed, lease);
}

/* ---- taking the lease ----------------------------------------------------------------------------------------- */

static void on_taken(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_lease *lease = context;
	const char *term = take_answer(lease, result);
	if (lease->state == RELEASED)
		return;
	if (term == NULL) {
		ask_in(lease, TAKING_MS);
		return;
	}
	lease->term = strtoll(term, NULL, 10);
	lease->state = TAKING;
	extend(lease);
	ask_in(lease, 0);
}

static void take(struct wlbd_lease *lease)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, lease->seen_term);
	wlbd_params_add_integer(&params, lease->seen_beats);
	wlbd_params_add_integer(&params, lease->lease_ms);
	wlbd_params_add_text(&params, lease->own);
	wlbd_db_execute(lease->db, "select wlb_coordinator_take($1, $2, $3, $4)", &params, on_taken, lease);
}

/* ---- standing by ---------------------------------------------------------------------------------------------- */

/* What the database says, and for how long it has said so. Returns -1 where that cannot be read. */
static int note_seen(struct wlbd_lease *lease, const char *answer)
{
	json_t *seen = json_loads(answer, 0, NULL);
	json_int_t term, beats;
	const char *address;
	int lease_ms;
	int rc = json_unpack(seen, "{s:I, s:I, s:i, s:s}", "term", &term, "beats", &beats, "lease_ms", &lease_ms,
	                     "address", &address);
	if (rc == 0 && (!lease->has_seen || term != lease->seen_term || beats != lease->seen_beats)) {
		lease->has_seen = true;
		lease->seen_term = term;
		lease->seen_beats = beats;
		lease->seen_lease_ms = lease_ms;
		lease->seen_ms = wlbd_lease_clock_ms();
	}
	if (rc == 0)
		wlb_text_format(lease->address, sizeof(lease->address), "%s", address);
	json_decref(seen);
	return rc;
}

static bool is_over(const struct wlbd_lease *lease)
{
	return lease->seen_lease_ms == 0 ||
	       wlbd_lease_clock_ms() - lease->seen_ms > (int64_t)lease->seen_lease_ms + MARGIN_MS;
}

static void on_seen(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_lease *lease = context;
	const char *answer = take_answer(lease, result);
	if (lease->state == RELEASED)
		return;
	if (answer == NULL || note_seen(lease, answer) != 0 || !is_over(lease)) {
		ask_later(lease);
		return;
	}
	lease->is_asking = true;
	lease->asked_ms = wlbd_lease_clock_ms();
	take(lease);
}

static void look(struct wlbd_lease *lease)
{
	static const struct wlbd_params none;
	wlbd_db_execute(lease->db, "select wlb_coordinator_seen()", &none, on_seen, lease);
}

/* ---- the connection ------------------------------------------------------------------------------------------- */

static void ask(struct wlbd_lease *lease)
{
	if (lease->is_asking || lease->state == RELEASED || !wlbd_db_ready(lease->db))
		return;
	lease->is_asking = true;
	lease->asked_ms = wlbd_lease_clock_ms();
	if (lease->state == STANDING_BY)
		look(lease);
	else
		renew(lease);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	ask(context);
}

/* Another server may answer now, which has other numbers. */
static void on_ready(void *context)
{
	struct wlbd_lease *lease = context;
	lease->has_seen = false;
	if (lease->state == STANDING_BY)
		wlbd_log(WLBD_LOG_INFO, "lease: this wlbd stands by");
	ask(lease);
}

static void on_unavailable(void *context, const char *detail)
{
	(void)context;
	wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_DATABASE, "lease: no connection to the database: %s", detail);
}

static void on_wrong_schema(void *context, const struct wlb_error *error)
{
	struct wlbd_lease *lease = context;
	lease->hooks.wrong_schema(lease->hooks.context, error);
}

static int open_connection(struct wlbd_lease *lease, const struct wlbd_config *config, struct wlb_error *error)
{
	const struct wlbd_db_hooks hooks = {
		.ready = on_ready, .unavailable = on_unavailable, .wrong_schema = on_wrong_schema, .context = lease};
	int timeout_ms = config->lease_ms / PARTS;
	if (timeout_ms > config->database_timeout_ms)
		timeout_ms = config->database_timeout_ms;
	lease->timer = evtimer_new(lease->base, on_timer, lease);
	if (lease->timer == NULL)
		return wlb_fail(error, "out of memory");
	lease->server = wlbd_db_server_new(lease->base, config->database, error);
	if (lease->server != NULL)
		lease->db = wlbd_db_new(lease->base, lease->server, timeout_ms, &hooks, error);
	return lease->db != NULL ? 0 : -1;
}

struct wlbd_lease *wlbd_lease_new(struct event_base *base, const struct wlbd_config *config, const char *address,
                                  const struct wlbd_lease_hooks *hooks, struct wlb_error *error)
{
	struct wlbd_lease *lease = calloc(1, sizeof(*lease));
	if (lease == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	lease->base = base;
	lease->hooks = *hooks;
	lease->lease_ms = config->lease_ms;
	snprintf(lease->own, sizeof(lease->own), "%s", address);
	TAILQ_INIT(&lease->waiting);
	TAILQ_INIT(&lease->asked);
	if (open_connection(lease, config, error) == 0)
		return lease;
	wlbd_lease_free(lease);
	return NULL;
}

static void on_released(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_lease *lease = context;
	(void)result;
	lease->term = 0;
}

/* The event loop makes an event at the end of the time at the latest. */
static void release(struct wlbd_lease *lease)
{
	const struct timeval most = {RELEASE_MS / 1000, RELEASE_MS % 1000 * 1000};
	struct wlbd_params params = {0};
	int64_t end_ms = wlbd_lease_clock_ms() + RELEASE_MS;
	lease->state = RELEASED;
	wlbd_params_add_integer(&params, lease->term);
	wlbd_db_execute(lease->db, "select wlb_coordinator_release($1)", &params, on_released, lease);
	event_base_loopexit(lease->base, &most);
	while (lease->term != 0 && wlbd_lease_clock_ms() < end_ms)
		event_base_loop(lease->base, EVLOOP_ONCE);
}

void wlbd_lease_free(struct wlbd_lease *lease)
{
	if (lease == NULL)
		return;
	wlbd_lease_stop(lease);
	if (lease->term != 0 && wlbd_db_ready(lease->db))
		release(lease);
	wlbd_db_free(lease->db);
	wlbd_db_server_free(lease->server);
	if (lease->timer != NULL)
		event_free(lease->timer);
	free(lease);
}

/* ---- public ---------------------------------------------------------------------------------------------- */

void wlbd_lease_wait(struct wlbd_lease *lease, struct wlbd_lease_waiter *waiter)
{
	TAILQ_INSERT_TAIL(&lease->waiting, waiter, link);
	ask(lease);
}

void wlbd_lease_stop(struct wlbd_lease *lease)
{
	if (lease == NULL)
		return;
	tell(&lease->asked, false);
	tell(&lease->waiting, false);
}

const char *wlbd_lease_address(const struct wlbd_lease *lease)
{
	return lease->address;
}

const char *wlbd_lease_reason(const struct wlbd_lease *lease)
{
	return wlbd_db_reason(lease->db);
}
