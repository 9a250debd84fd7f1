/*
 * Asks the agents of an attempt for the stacks of their ranks: the next reply to each agent carries the request, once
 * for each node. What they send is stored in PostgreSQL alone (requests/stacks_request.c).
 */
#ifndef COORDINATOR_WLBD_LIVENESS_STACKS_H
#define COORDINATOR_WLBD_LIVENESS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

struct wlbd_attempt;
struct wlbd_reporter;

enum {
	WLBD_STACKS_PERIOD_MS = 60000, /* between two gatherings of an attempt */
	WLBD_STACKS_ASK_MS = 20000,    /* an agent that does not report for so long is not asked any more */
};

/* Begins a gathering, unless one began less than WLBD_STACKS_PERIOD_MS ago. Returns its id, or that of the earlier one;
 * 0 where the attempt has ended, or no agent reports for it. */
int64_t wlbd_stacks_ask(struct wlbd_attempt *attempt);

/* Whether the reply to a report of this process shall ask for stacks: true once for each gathering. */
bool wlbd_stacks_ask_reporter(struct wlbd_reporter *reporter);

#endif
