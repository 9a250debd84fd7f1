#include "coordinator/wlbd/outbox.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "coordinator/wlbd/log.h"

enum { LETTERS_MOST = 10000 };

struct letter {
	TAILQ_ENTRY(letter) link;
	const char *sql; /* of static lifetime */
	int count;
	char *params[WLBD_DB_PARAMS_MAX];
	struct wlbd_outbox *outbox;
};

struct wlbd_outbox {
	struct wlbd_db *db;
	TAILQ_HEAD(, letter) letters;
	int count;
	bool sending; /* the first letter is under way */
};

static void send_first(struct wlbd_outbox *outbox);

static void letter_free(struct wlbd_outbox *outbox, struct letter *letter)
{
	TAILQ_REMOVE(&outbox->letters, letter, link);
	outbox->count--;
	for (int i = 0; i < letter->count; i++)
		free(letter->params[i]);
	free(letter);
}

static void on_sent(void *context, const struct wlbd_db_result *result)
{
	struct letter *letter = context;
	struct wlbd_outbox *outbox = letter->outbox;
	outbox->sending = false;
	if (result->status == WLBD_DB_AWAY)
		return; /* wlbd_outbox_resume goes on */
	if (result->status == WLBD_DB_REFUSED)
		wlbd_log(WLBD_LOG_ERROR, "not recorded: %s (%s)", letter->sql, result->message);
	letter_free(outbox, letter);
	send_first(outbox);
}

static void send_first(struct wlbd_outbox *outbox)
{
	struct letter *letter = TAILQ_FIRST(&outbox->letters);
	if (letter == NULL || outbox->sending || !wlbd_db_ready(outbox->db))
		return;
	outbox->sending = true;
	wlbd_db_call(outbox->db, letter->sql, letter->count, (const char *const *)letter->params, on_sent, letter);
}

struct wlbd_outbox *wlbd_outbox_new(struct wlbd_db *db)
{
	struct wlbd_outbox *outbox = calloc(1, sizeof(*outbox));
	if (outbox == NULL)
		return NULL;
	outbox->db = db;
	TAILQ_INIT(&outbox->letters);
	return outbox;
}

void wlbd_outbox_free(struct wlbd_outbox *outbox)
{
	while (outbox != NULL && !TAILQ_EMPTY(&outbox->letters))
		letter_free(outbox, TAILQ_FIRST(&outbox->letters));
	free(outbox);
}

void wlbd_outbox_put(struct wlbd_outbox *outbox, const char *sql, int count, const char *const *params)
{
	struct letter *letter = outbox->count < LETTERS_MOST ? calloc(1, sizeof(*letter)) : NULL;
	if (letter == NULL) {
		wlbd_log(WLBD_LOG_ERROR, "too much waits for the database: not recorded: %s", sql);
		return;
	}
	letter->outbox = outbox;
	letter->sql = sql;
	letter->count = count;
	for (int i = 0; i < count; i++)
		letter->params[i] = params[i] != NULL ? strdup(params[i]) : NULL;
	TAILQ_INSERT_TAIL(&outbox->letters, letter, link);
	outbox->count++;
	send_first(outbox);
}

bool wlbd_outbox_empty(const struct wlbd_outbox *outbox)
{
	return outbox->count == 0;
}

void wlbd_outbox_resume(struct wlbd_outbox *outbox)
{
	send_first(outbox);
}
