#include "coordinator/wlbd/database/db_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "coordinator/wlbd/budget.h"

enum {
	OWNER_MAX = WLBD_DB_POOL_CONNECTIONS - 1, /* under way */
	WAITING_MAX = 1024,
	WAITING_OWNER_MAX = WAITING_MAX / 8 * 7,
	WAITING_BYTES_MAX = 32 * 1024 * 1024,
	WAITING_OWNER_BYTES_MAX = WAITING_BYTES_MAX / 8 * 7,
	LARGE_BYTES = 1024 * 1024, /* of an answer, after which its connection is made again */
	WAIT_MAX_MS = 10000,       /* checked when a statement ends, which its own limit bounds */
};

struct waiting_statement {
	TAILQ_ENTRY(waiting_statement) link;
	uid_t owner;
	uint64_t key;
	const char *sql;            /* of static lifetime */
	struct wlbd_params *params; /* owned */
	size_t bytes;               /* of its parameters */
	int64_t since_ms;
	wlbd_db_done *done;
	void *context;
};

struct slot {
	struct wlbd_db_pool *pool;
	struct wlbd_db *db;
	bool large; /* an answer was large */
	bool busy;  /* a statement is under way, to which what follows belongs */
	uid_t owner;
	uint64_t key;
	wlbd_db_done *done;
	void *context;
};

struct wlbd_db_pool {
	struct slot slots[WLBD_DB_POOL_CONNECTIONS];
	bool is_over_one; /* all slots have the same connection, which is not the pool's */
	struct wlbd_db_hooks hooks;
	TAILQ_HEAD(waiting_list, waiting_statement) waiting; /* the oldest first */
	struct wlbd_budget *places;                          /* of the owners of statements that wait */
	int count;
};

static void waiting_statement_free(struct waiting_statement *entry)
{
	free(entry->params);
	free(entry);
}

/* Whatever one owner sends, places stay for others, and bytes. */
static bool take_place(struct wlbd_db_pool *pool, uid_t owner, size_t bytes)
{
	if (wlbd_budget_enter(pool->places, owner) != WLBD_BUDGET_TAKEN)
		return false;
	if (wlbd_budget_take(pool->places, owner, bytes) == WLBD_BUDGET_TAKEN)
		return true;
	wlbd_budget_leave(pool->places, owner);
	return false;
}

static void remove_waiting(struct wlbd_db_pool *pool, struct waiting_statement *entry)
{
	TAILQ_REMOVE(&pool->waiting, entry, link);
	pool->count--;
	wlbd_budget_leave(pool->places, entry->owner);
	wlbd_budget_give(pool->places, entry->owner, entry->bytes);
}

/* ---- statements that wait too long, or are too many -------------------------------------------------- */

static void refuse(int waiting, wlbd_db_done *done, void *context)
{
	char message[128];
	snprintf(message, sizeof(message), "%d requests wait for the database; try again", waiting);
	struct wlbd_db_result result = {
		.status = WLBD_DB_BUSY, .http_status = 503, .message = message, .detail = message};
	if (done != NULL)
		done(context, &result);
}

static void refuse_waiting(struct wlbd_db_pool *pool, struct waiting_statement *entry)
{
	int waiting = pool->count;
	remove_waiting(pool, entry);
	refuse(waiting, entry->done, entry->context);
	waiting_statement_free(entry);
}

static void refuse_overdue(struct wlbd_db_pool *pool)
{
	int64_t now_ms = wlb_clock_ms();
	struct waiting_statement *oldest;
	while ((oldest = TAILQ_FIRST(&pool->waiting)) != NULL && now_ms - oldest->since_ms > WAIT_MAX_MS)
		refuse_waiting(pool, oldest);
}

/* ---- which statement is next ---------------------------------------------------------------------- */

static int running_count(const struct wlbd_db_pool *pool, uid_t owner)
{
	int count = 0;
	for (int i = 0; i < WLBD_DB_POOL_CONNECTIONS; i++)
		count += pool->slots[i].busy && pool->slots[i].owner == owner;
	return count;
}

static bool key_is_busy(const struct wlbd_db_pool *pool, uint64_t key)
{
	for (int i = 0; i < WLBD_DB_POOL_CONNECTIONS; i++)
		if (key != 0 && pool->slots[i].busy && pool->slots[i].key == key)
			return true;
	return false;
}

/* Returns whether an older statement with the same key waits. */
static bool key_waits_before(const struct wlbd_db_pool *pool, const struct waiting_statement *entry)
{
	const struct waiting_statement *older;
	TAILQ_FOREACH(older, &pool->waiting, link)
	{
		if (older == entry)
			return false;
		if (entry->key != 0 && older->key == entry->key)
			return true;
	}
	return false;
}

static struct waiting_statement *next_waiting(struct wlbd_db_pool *pool)
{
	struct waiting_statement *entry, *best = NULL;
	int fewest = OWNER_MAX;
	TAILQ_FOREACH(entry, &pool->waiting, link)
	{
		int count = running_count(pool, entry->owner);
		if (count < fewest && !key_is_busy(pool, entry->key) && !key_waits_before(pool, entry)) {
			best = entry;
			fewest = count;
		}
		if (fewest == 0)
			break;
	}
	return best;
}

static struct slot *free_slot(struct wlbd_db_pool *pool)
{
	for (int i = 0; i < WLBD_DB_POOL_CONNECTIONS; i++)
		if (!pool->slots[i].busy && wlbd_db_ready(pool->slots[i].db))
			return &pool->slots[i];
	return NULL;
}

/* ---- sending ----------------------------------------------------------------------------------- */

static void dispatch(struct wlbd_db_pool *pool);

static void on_done(void *context, const struct wlbd_db_result *result)
{
	struct slot *slot = context;
	wlbd_db_done *done = slot->done;
	slot->busy = false;
	slot->large = slot->large || (result->value != NULL && strlen(result->value) > LARGE_BYTES);
	if (done != NULL)
		done(slot->context, result);
	dispatch(slot->pool);
}

static void start(struct slot *slot, struct waiting_statement *entry)
{
	slot->busy = true;
	slot->owner = entry->owner;
	slot->key = entry->key;
	slot->done = entry->done;
	slot->context = entry->context;
	wlbd_db_execute(slot->db, entry->sql, entry->params, on_done, slot);
	waiting_statement_free(entry);
}

/* Without a connection the answer of the first one says why. */
static void answer_unavailable(struct wlbd_db_pool *pool)
{
	while (!TAILQ_EMPTY(&pool->waiting) && !wlbd_db_pool_ready(pool)) {
		struct waiting_statement *entry = TAILQ_FIRST(&pool->waiting);
		remove_waiting(pool, entry);
		wlbd_db_execute(pool->slots[0].db, entry->sql, entry->params, entry->done, entry->context);
		waiting_statement_free(entry);
	}
}

/* libpq keeps the memory of the largest answer until the connection is closed. Another connection must be ready. */
static void renew_one(struct wlbd_db_pool *pool)
{
	struct slot *large = NULL;
	int ready = 0;
	for (int i = 0; i < WLBD_DB_POOL_CONNECTIONS; i++) {
		struct slot *slot = &pool->slots[i];
		ready += wlbd_db_ready(slot->db);
		if (slot->large && !slot->busy && wlbd_db_ready(slot->db))
			large = slot;
	}
	if (large == NULL || ready < 2 || pool->is_over_one || !TAILQ_EMPTY(&pool->waiting))
		return;
	large->large = false;
	wlbd_db_renew(large->db);
}

static void dispatch(struct wlbd_db_pool *pool)
{
	struct slot *slot;
	struct waiting_statement *entry;
	answer_unavailable(pool);
	refuse_overdue(pool);
	while ((slot = free_slot(pool)) != NULL && (entry = next_waiting(pool)) != NULL) {
		remove_waiting(pool, entry);
		start(slot, entry);
	}
	renew_one(pool);
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* Returns NULL if out of memory. */
static struct waiting_statement *waiting_statement_new(const char *sql, const struct wlbd_params *params)
{
	struct waiting_statement *entry = calloc(1, sizeof(*entry));
	if (entry == NULL)
		return NULL;
	entry->sql = sql;
	entry->params = wlbd_params_copy(params, &entry->bytes);
	if (entry->params == NULL) {
		free(entry);
		return NULL;
	}
	return entry;
}

void wlbd_db_pool_execute(struct wlbd_db_pool *pool, uid_t owner, uint64_t key, const char *sql,
                          const struct wlbd_params *params, wlbd_db_done *done, void *context)
{
	struct waiting_statement *entry = waiting_statement_new(sql, params);
	if (entry == NULL || !take_place(pool, owner, entry->bytes)) {
		if (entry != NULL)
			waiting_statement_free(entry);
		refuse(pool->count, done, context);
		return;
	}
	entry->owner = owner;
	entry->key = key;
	entry->since_ms = wlb_clock_ms();
	entry->done = done;
	entry->context = context;
	TAILQ_INSERT_TAIL(&pool->waiting, entry, link);
	pool->count++;
	dispatch(pool);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void on_ready(void *context)
{
	dispatch(context);
}

static void on_unavailable(void *context, const char *detail)
{
	(void)detail; /* wlbd->writes logs it */
	struct wlbd_db_pool *pool = context;
	answer_unavailable(pool);
	if (pool->hooks.not_stored != NULL && !wlbd_db_pool_ready(pool))
		pool->hooks.not_stored(pool->hooks.context);
}

static void on_not_stored(void *context)
{
	struct wlbd_db_pool *pool = context;
	if (pool->hooks.not_stored != NULL)
		pool->hooks.not_stored(pool->hooks.context);
}

static void on_wrong_schema(void *context, const struct wlb_error *error)
{
	struct wlbd_db_pool *pool = context;
	pool->hooks.wrong_schema(pool->hooks.context, error);
}

static struct wlbd_db_pool *pool_new(struct wlb_error *error)
{
	static const struct wlbd_budget_limits limits = {.user_count = WAITING_OWNER_MAX,
	                                                 .all_count = WAITING_MAX,
	                                                 .user_bytes = WAITING_OWNER_BYTES_MAX,
	                                                 .all_bytes = WAITING_BYTES_MAX};
	struct wlbd_db_pool *pool = calloc(1, sizeof(*pool));
	if (pool != NULL)
		pool->places = wlbd_budget_new(&limits);
	if (pool == NULL || pool->places == NULL) {
		wlb_fail(error, "out of memory");
		free(pool);
		return NULL;
	}
	TAILQ_INIT(&pool->waiting);
	return pool;
}

struct wlbd_db_pool *wlbd_db_pool_new(struct event_base *base, struct wlbd_db_server *server, int timeout_ms,
                                      const struct wlbd_db_hooks *hooks, struct wlb_error *error)
{
	struct wlbd_db_pool *pool = pool_new(error);
	if (pool == NULL)
		return NULL;
	struct wlbd_db_hooks own = {.ready = on_ready,
	                            .unavailable = on_unavailable,
	                            .wrong_schema = on_wrong_schema,
	                            .not_stored = on_not_stored,
	                            .context = pool};
	pool->hooks = *hooks;
	for (int i = 0; i < WLBD_DB_POOL_CONNECTIONS; i++) {
		pool->slots[i].pool = pool;
		pool->slots[i].db = wlbd_db_new(base, server, timeout_ms, &own, error);
		if (pool->slots[i].db == NULL) {
			wlbd_db_pool_free(pool);
			return NULL;
		}
	}
	return pool;
}

struct wlbd_db_pool *wlbd_db_pool_new_over(struct wlbd_db *db, struct wlb_error *error)
{
	struct wlbd_db_pool *pool = pool_new(error);
	if (pool == NULL)
		return NULL;
	pool->is_over_one = true;
	for (int i = 0; i < WLBD_DB_POOL_CONNECTIONS; i++)
		pool->slots[i] = (struct slot){.pool = pool, .db = db};
	return pool;
}

void wlbd_db_pool_stop(struct wlbd_db_pool *pool)
{
	for (int i = 0; pool != NULL && !pool->is_over_one && i < WLBD_DB_POOL_CONNECTIONS; i++)
		wlbd_db_stop(pool->slots[i].db);
}

void wlbd_db_pool_free(struct wlbd_db_pool *pool)
{
	if (pool == NULL)
		return;
	for (int i = 0; !pool->is_over_one && i < WLBD_DB_POOL_CONNECTIONS; i++)
		wlbd_db_free(pool->slots[i].db);
	while (!TAILQ_EMPTY(&pool->waiting)) {
		struct waiting_statement *entry = TAILQ_FIRST(&pool->waiting);
		remove_waiting(pool, entry);
		waiting_statement_free(entry);
	}
	wlbd_budget_free(pool->places);
	free(pool);
}

bool wlbd_db_pool_ready(const struct wlbd_db_pool *pool)
{
	for (int i = 0; i < WLBD_DB_POOL_CONNECTIONS; i++)
		if (wlbd_db_ready(pool->slots[i].db))
			return true;
	return false;
}
