/* The one struct that main owns: every part of the service is reached through it. */
#ifndef COORDINATOR_WLBD_WLBD_H
#define COORDINATOR_WLBD_WLBD_H

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>

#include "coordinator/wlbd/config.h"
#include "coordinator/wlbd/counters.h"

struct wlbd {
	struct wlbd_config config;
	struct event_base *base;
	const struct wlbd_routes *routes;
	struct wlbd_http *http;
	struct wlbd_exchanges *exchanges;         /* the requests under way; in http */
	struct wlbd_budget *budget;               /* what users hold: connections, bytes of requests */
	struct wlbd_db *writes;                   /* decisions and what wlbd found out: short statements, in order */
	struct wlbd_db *polls;                    /* which runs are open, for jobs.h */
	struct wlbd_db_pool *deliveries;          /* of records */
	struct wlbd_db_pool *reads;               /* what users ask for; may take longer */
	struct wlbd_outbox *outbox;               /* what wlbd itself found out and PostgreSQL has not stored yet */
	struct wlbd_thread_pool *auth;            /* threads that ask munged */
	struct wlbd_thread_pool *bodies;          /* one thread: hashes and parses what is long */
	struct wlbd_thread_pool *slurm_questions; /* threads that ask Slurm: one that hangs delays no other */
	struct wlbd_thread_pool *resolver;        /* one thread: names of hosts into addresses */
	struct wlbd_thread_pool *slurm_orders;    /* one thread: what Slurm is told, in order */
	struct wlbd_nodes *nodes;                 /* Slurm's node table, cached */
	struct wlbd_node_probes *node_probes;     /* which nodes answer */
	struct wlbd_lost_nodes *lost_nodes;       /* those that may have to be set DOWN */
	struct wlbd_attempts *attempts;           /* the live ones */
	struct wlbd_resolutions *resolutions;     /* requests that wait until their attempt is known */
	struct wlbd_jobs *jobs;                   /* the Slurm jobs of open runs */
	struct wlbd_job_poll *job_poll;           /* when these are looked at; owned by jobs */
	struct wlbd_counters counters;
	_Atomic bool slurm_away; /* the last question to Slurm found no answer; set by the threads that ask */
	bool slurm_tried;        /* one question is under way that finds out whether it answers again */
	uid_t slurm_uid;         /* SlurmUser; (uid_t)-1 until slurmctld has answered */
	char cluster[64];
	bool database_was_up;
	bool stopping; /* nothing new is begun: what is under way is answered that it must be tried again */
	int64_t recording_since_ms; /* since when the database is there; 0: it has not been yet */
	int exit_code;
};

#endif
