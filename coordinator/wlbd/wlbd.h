/* The service: main owns it, and every part of the service is reached through it. */
#ifndef COORDINATOR_WLBD_WLBD_H
#define COORDINATOR_WLBD_WLBD_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/fault_kinds.h"
#include "coordinator/wlbd/config.h"

/* What wlbd has counted since it was started. Only the event loop's thread counts. */
struct wlbd_counters {
	uint64_t requests[6]; /* by the first digit of the status */
	uint64_t records_stored;
	uint64_t reports;
	uint64_t rank_steps;      /* that ranks have ended, in reports */
	uint64_t rank_steps_lost; /* that their nodes could not report */
	uint64_t attempts_started;
	uint64_t stacks_asked;                 /* gatherings of an attempt */
	uint64_t stacks_stored;                /* what nodes have sent for them */
	uint64_t faults[WLB_FAULT_KIND_COUNT]; /* losses alone */
	uint64_t evictions;                    /* attempts that wlbd ended because of a verdict */
	uint64_t statements_dropped;           /* of the outbox, which could not store them */
	uint64_t database_losses;              /* connections lost or not made */
	double request_seconds;                /* from the first line of a request to its reply, summed */
};

struct wlbd {
	struct wlbd_config config;
	struct event_base *base;
	const struct wlbd_routes *routes;
	struct wlbd_http *http;
	struct wlbd_exchanges *exchanges;         /* the requests under way; in http */
	struct wlbd_budget *budget;               /* of what users hold: connections, bytes of requests */
	struct wlbd_budget *reply_budget;         /* of what users have not read: bytes of long replies */
	struct wlbd_budget *question_budget;      /* of users' requests that wait for `writes` or Slurm */
	struct wlbd_budget *activity_budget;      /* of what users' runs hold as activities of ranks: bytes */
	struct wlbd_budget *attempt_budget;       /* of the nodes, ranks and reporters of users' attempts: bytes */
	struct wlbd_lease *lease;                 /* NULL: no other wlbd uses the database */
	struct wlbd_db_server *database;          /* what all connections to PostgreSQL go to */
	struct wlbd_db *writes;                   /* short statements, in order: decisions, and what wlbd found out */
	struct wlbd_db_pool *questions;           /* short statements of requests, over `writes` */
	struct wlbd_sole_use *sole_use;           /* of the database, on `writes`; NULL: there is a lease */
	struct wlbd_db *polls;                    /* the list of open runs, for jobs.h */
	struct wlbd_db_pool *changes;             /* of runs, that requests make (run_change.h) */
	struct wlbd_db_pool *deliveries;          /* of records */
	struct wlbd_db_pool *reads;               /* for GET requests, whose statements may take longer */
	struct wlbd_queries *queries;             /* statements of users, on connections of another login */
	struct wlbd_outbox *outbox;               /* what wlbd found out and PostgreSQL has not stored yet */
	struct wlbd_thread_pool *auth;            /* threads that call munged */
	struct wlbd_thread_pool *bodies;          /* one thread: hashes and parses long bodies */
	int step_questions;                       /* of step_end.h, under way */
	struct wlbd_thread_pool *slurm_questions; /* threads that ask Slurm: a question that hangs delays no other */
	struct wlbd_user_names *user_names;       /* one thread: looks up the names of accounts */
	struct wlbd_thread_pool *resolver;        /* one thread: resolves names of hosts */
	struct wlbd_thread_pool *slurm_orders;    /* one thread: sends orders to Slurm, in order */
	struct wlbd_nodes *nodes;                 /* Slurm's nodes as it last listed them */
	struct wlbd_node_probes *node_probes;     /* whether nodes answer */
	struct wlbd_lost_nodes *lost_nodes;       /* nodes that may have to be set DOWN */
	struct wlbd_attempts *attempts;           /* in memory */
	struct wlbd_attempt_searches *searches;   /* requests whose attempt is being looked for */
	struct wlbd_launchers *launchers;         /* which runs have one */
	struct wlbd_job_orders *job_orders;       /* about jobs, under way */
	struct wlbd_jobs *jobs;                   /* the Slurm jobs of open runs */
	struct wlbd_job_poll *job_poll;           /* when these are looked at; owned by jobs */
	struct wlbd_counters counters;
	_Atomic bool slurm_unavailable; /* Slurm did not answer the last question; set by the threads that ask */
	bool slurm_tried;               /* a question is under way that finds out whether Slurm answers again */
	uid_t slurm_uid;                /* SlurmUser; (uid_t)-1 until slurmctld has answered */
	char cluster[64];
	bool database_was_up;
	int64_t not_stored_ms;      /* when the database last could not store what it was sent; 0: not since it is
	                               connected */
	bool is_acting;             /* else it stands by: what acts has not been made, and requests get 503 */
	bool stopping;              /* nothing is begun any more; requests are answered with 503 */
	int64_t started_unix_ms;    /* which start of wlbd this is */
	int64_t recording_since_ms; /* since when the database stores what it is sent; 0: it never has */
	int exit_code;
};

#endif
