/*
 * The live attempts in memory, and who reports for them. PostgreSQL has the truth; this is what liveness needs each
 * second without asking it. Looked up in O(log n).
 */
#ifndef COORDINATOR_WLBD_LIVENESS_ATTEMPTS_H
#define COORDINATOR_WLBD_LIVENESS_ATTEMPTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "coordinator/wlbd/http/connection.h"
#include "coordinator/wlbd/http/route.h"
#include "coordinator/wlbd/liveness/attempt_nodes.h"
#include "coordinator/wlbd/rules/incident.h"
#include "libwlb/wlb.h"

struct wlb_slurm_job;
struct wlbd_node_question;
struct wlbd;
struct wlbd_attempt;

/* One process that reports: rank 0 of a node, or the launcher. */
struct wlbd_reporter {
	TAILQ_ENTRY(wlbd_reporter) link;
	struct wlbd_attempt *attempt;
	char node[256];
	int rank;                           /* WLBD_LAUNCHER: `wlb run` */
	struct wlbd_connection *connection; /* NULL: closed, or not seen since wlbd started */
	int64_t reported_ms;                /* when it last did */
	int64_t probed_ms;                  /* when its node was last asked about because of silence */
	int64_t step;
	bool goodbye;
	bool agent; /* wlb-agent, which is none of the ranks: that it dies says nothing of them */
	void (*closed)(struct wlbd_reporter *reporter);
};

struct wlbd_attempt {
	TAILQ_ENTRY(wlbd_attempt) link;
	struct wlbd *wlbd;
	char uuid[37]; /* lower case */
	char run[WLBD_RUN_NAME_SIZE];
	int64_t run_pk;
	int64_t attempt_pk;
	int64_t number;
	uint32_t job_id;
	uid_t uid;
	bool confirmed; /* Slurm has said that the run's job exists and that it is of this uid */
	struct wlbd_attempt_nodes nodes;
	char slurm_step[32];                   /* "12.0", from the launcher */
	TAILQ_HEAD(, wlbd_reporter) reporters; /* at most one for each node, and the launcher */
	int reporter_count;
	void *reporter_tree;
	struct wlbd_incident incident;
	struct event *judge_timer;
	TAILQ_HEAD(, wlbd_node_question) questions; /* under way */
	bool order_end;                             /* its processes are told to end */
	bool kill_sent;
	bool exit_noted; /* its exit code is on its way to the database */
	bool outdated;   /* noted that a program of it is older than wlbd */
	int64_t ordered_ms;
	int64_t over_ms;     /* when incident.over became true */
	int64_t expected_ms; /* after a restart of wlbd: until then nodes may be missing; 0: none are */
	char reason[512];    /* of the order */
};

struct wlbd_attempts {
	TAILQ_HEAD(, wlbd_attempt) list;
	void *tree;        /* by UUID */
	void *connections; /* reporters by their connection */
	int count;
	int reporters;
};

struct wlbd_attempts *wlbd_attempts_new(void);
void wlbd_attempts_free(struct wlbd_attempts *attempts);

struct wlbd_attempt *wlbd_attempts_find(const struct wlbd_attempts *attempts, const char *uuid);

/* Whether a user has as many attempts in memory as one can have. */
bool wlbd_attempts_full(const struct wlbd_attempts *attempts, uid_t uid);

/* From the card that wlb_attempt_card() of the schema makes; the one already there is updated. NULL: the card is not
 * readable or memory is out, which is said in the log. */
struct wlbd_attempt *wlbd_attempts_put(struct wlbd *wlbd, const json_t *card);
void wlbd_attempts_remove(struct wlbd *wlbd, struct wlbd_attempt *attempt);

/* What Slurm says of the job of a run, to the run's attempts: whether it is theirs, and which nodes it has. */
void wlbd_attempts_confirm(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job);

/* When a process of the node last reported over a connection that is still open; 0: none does. Only attempts count
 * whose job has that node by Slurm's word, and of users other than `uid` only connections from the node's own address:
 * a user who shares a node could otherwise hide its loss by reporting from elsewhere. */
int64_t wlbd_attempts_node_heard_ms(const struct wlbd_attempts *attempts, const char *node, uid_t uid);

/* Finds or makes; NULL if out of memory, or where the attempt has as many as it can have. An attempt has one launcher,
 * wherever it is. */
struct wlbd_reporter *wlbd_attempt_reporter(struct wlbd_attempt *attempt, const char *node, int rank);

/* The reporter speaks over this connection from now on; another that did no longer has one. `closed` is called with
 * the reporter when the connection ends, the reporter being detached by then. NULL only detaches. */
void wlbd_reporter_attach(struct wlbd_reporter *reporter, struct wlbd_connection *connection,
                          void (*closed)(struct wlbd_reporter *reporter));

#endif
