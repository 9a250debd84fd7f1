/*
 * Whether a node of an attempt is lost, asked because of a symptom. The parts of a dying node end one after the other:
 * its slurmd may outlive its tasks by a moment. So a node is alive only if it answers twice, half a second apart.
 */
#ifndef COORDINATOR_WLBD_INCIDENT_NODE_QUESTION_H
#define COORDINATOR_WLBD_INCIDENT_NODE_QUESTION_H

#include "coordinator/wlbd/attempts/attempts.h"

/* Probes the node, stores the answer in every symptom of the attempt that waits for it, and has the attempt judged. A
 * node that is being asked about gets one answer for all questions, later. Returns -1 if out of memory; nothing is
 * asked then. */
int wlbd_node_question_ask(struct wlbd_attempt *attempt, const char *node);

/* Frees the questions of all attempts, before these are freed. NULL is allowed. */
void wlbd_node_questions_free(struct wlbd_attempts *attempts);

#endif
