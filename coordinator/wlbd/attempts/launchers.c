#include "coordinator/wlbd/attempts/launchers.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	ASKED_MS = 10000, /* a launcher that waits asks again within 5 s */
	ASKED_MAX = 4096, /* the newest are kept */
};

struct asked {
	TAILQ_ENTRY(asked) link;
	uint32_t job_id;
	uid_t uid;
	int64_t at_ms;
};

struct wlbd_launchers {
	TAILQ_HEAD(, asked) list; /* the newest last, one of each job and user */
	int count;
};

struct wlbd_launchers *wlbd_launchers_new(void)
{
	struct wlbd_launchers *launchers = calloc(1, sizeof(*launchers));
	if (launchers != NULL)
		TAILQ_INIT(&launchers->list);
	return launchers;
}

static void drop(struct wlbd_launchers *launchers, struct asked *asked)
{
	TAILQ_REMOVE(&launchers->list, asked, link);
	launchers->count--;
	free(asked);
}

void wlbd_launchers_free(struct wlbd_launchers *launchers)
{
	while (launchers != NULL && !TAILQ_EMPTY(&launchers->list))
		drop(launchers, TAILQ_FIRST(&launchers->list));
	free(launchers);
}

static struct asked *find(const struct wlbd_launchers *launchers, uint32_t job_id, uid_t uid)
{
	struct asked *asked;
	TAILQ_FOREACH(asked, &launchers->list, link)
	if (asked->job_id == job_id && asked->uid == uid)
		return asked;
	return NULL;
}

static void drop_old(struct wlbd_launchers *launchers)
{
	struct asked *oldest;
	while ((oldest = TAILQ_FIRST(&launchers->list)) != NULL &&
	       (launchers->count > ASKED_MAX || wlb_clock_ms() - oldest->at_ms >= ASKED_MS))
		drop(launchers, oldest);
}

void wlbd_launchers_note_request(struct wlbd_launchers *launchers, uint32_t job_id, uid_t uid)
{
	struct asked *asked = find(launchers, job_id, uid);
	if (asked != NULL)
		drop(launchers, asked);
	asked = malloc(sizeof(*asked));
	if (asked == NULL)
		return;
	*asked = (struct asked){.job_id = job_id, .uid = uid, .at_ms = wlb_clock_ms()};
	TAILQ_INSERT_TAIL(&launchers->list, asked, link);
	launchers->count++;
	drop_old(launchers);
}

static bool reports(const struct wlbd_attempt *attempt)
{
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->rank == WLBD_LAUNCHER)
		return reporter->connection != NULL && !reporter->goodbye &&
		       wlb_clock_ms() - reporter->reported_ms < attempt->wlbd->config.silence_ms;
	return false;
}

bool wlbd_launchers_has(const struct wlbd *wlbd, uint32_t job_id, uid_t uid)
{
	const struct asked *asked = find(wlbd->launchers, job_id, uid);
	const struct wlbd_attempt *attempt;
	if (asked != NULL && wlb_clock_ms() - asked->at_ms < ASKED_MS)
		return true;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	if (attempt->job_id == job_id && attempt->uid == uid && reports(attempt))
		return true;
	return false;
}
