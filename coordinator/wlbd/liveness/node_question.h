/*
 * Whether a node of an attempt is lost, asked because of a symptom. A dying node does not die all at once: its slurmd
 * may outlive its tasks by a moment, so that it answers is believed only when it still does a little later.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_NODE_QUESTION_H
#define COORDINATOR_WLBD_LIVENESS_NODE_QUESTION_H

#include "coordinator/wlbd/liveness/attempts.h"

/* Calls `done` once for each node that is being asked about, perhaps at once; a node asked about again meanwhile gets
 * one answer, later. -1 if out of memory: `done` is not called. All askers of an attempt give the same `done`. */
int wlbd_node_question_ask(struct wlbd_attempt *attempt, const char *node,
                           void (*done)(struct wlbd_attempt *attempt, const char *node, bool alive));

/* Those of an attempt that is freed. */
void wlbd_node_questions_free(struct wlbd_attempt *attempt);

#endif
