/*
 * Asks the agents of an attempt for the stacks of their ranks: the next reply to each agent carries the request, once
 * for each node. What they send is stored in PostgreSQL alone (api/reports/stacks_request.c).
 */
#ifndef COORDINATOR_WLBD_VERDICTS_STACKS_H
#define COORDINATOR_WLBD_VERDICTS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

struct wlbd_attempt;
struct wlbd_reporter;

enum {
	WLBD_STACKS_PERIOD_MS = 60000, /* between two gatherings of an attempt */
	WLBD_STACKS_ASK_MS = 20000,    /* an agent that does not report for so long is not asked any more */
	WLBD_STACKS_ANSWER_MS = 15000, /* an agent reports each second, and gives its ranks 12 s then */
};

/* Begins a gathering, unless one began less than WLBD_STACKS_PERIOD_MS ago. Returns its id, or that of the earlier one;
 * 0 where the attempt has ended, or no agent reports for it. */
int64_t wlbd_stacks_ask(struct wlbd_attempt *attempt);

/* Whether the reply to a report of this process shall ask for stacks: true once for each gathering. */
bool wlbd_stacks_ask_reporter(struct wlbd_reporter *reporter);

/* Notes that PostgreSQL has the stacks of a node. */
void wlbd_stacks_note_stored(struct wlbd_attempt *attempt, const char *node, int64_t stacks_id);

/* Whether all agents have sent what was asked for last, or their time is over. */
bool wlbd_stacks_are_complete(const struct wlbd_attempt *attempt, int64_t now_ms);

#endif
