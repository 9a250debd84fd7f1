/* Replies to GET /v1/runs/RUN/ranks, as the tests of `wlb top` need them. */
#ifndef TESTS_UNIT_WLB_TOP_REPLY_H
#define TESTS_UNIT_WLB_TOP_REPLY_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* A running run, whose ranks compute in step 41 and are in no call. Ranks fill the nodes n1, n2, ... one after the
 * other. Each has a group of tp of which it has left call 100, and one of dp with call 50. */
json_t *top_reply_new(const struct wlb_layout *layout, int ranks_per_node);

/* Changes the member of a rank's row, which is a column of api.md; takes the value. */
void top_reply_set(json_t *reply, int rank, const char *column, json_t *value);

/* The rank waits for `for_ms` in call `seq` of its group `group`, tp or dp, which it has entered. */
void top_reply_wait(json_t *reply, int rank, const char *group, int seq, int for_ms);

/* A verdict of that kind names the rank, on its node. */
void top_reply_accuse(json_t *reply, int rank, const char *kind, const char *verdict_state, const char *evidence);

/* Nothing was reported of the rank. */
void top_reply_forget(json_t *reply, int rank);

#endif
