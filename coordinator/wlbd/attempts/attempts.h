/*
 * The attempts in memory, and the processes that report for them: what is needed each second without a question to
 * PostgreSQL, which holds the same for good. Looked up in O(log n).
 */
#ifndef COORDINATOR_WLBD_ATTEMPTS_ATTEMPTS_H
#define COORDINATOR_WLBD_ATTEMPTS_ATTEMPTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "common/on_fault.h"
#include "coordinator/wlbd/attempts/attempt_nodes.h"
#include "coordinator/wlbd/detection/activities.h"
#include "coordinator/wlbd/http/connection.h"
#include "coordinator/wlbd/http/route.h"
#include "coordinator/wlbd/rules/incident.h"
#include "libwlb/wlb.h"

struct wlb_slurm_job;
struct wlbd_detection;
struct wlbd_node_question;
struct wlbd_node_processes;
struct wlbd_outliers;
struct wlbd_process_faults;
struct wlbd;
struct wlbd_attempt;

/* One process that reports: for the ranks of a node, or the launcher. */
struct wlbd_reporter {
	TAILQ_ENTRY(wlbd_reporter) link;
	struct wlbd_attempt *attempt;
	char node[256];
	int rank;                           /* WLBD_LAUNCHER: `wlb run` */
	struct wlbd_connection *connection; /* NULL: closed, or not seen since wlbd started */

	/* What it reports (api/reports/report.c). */
	int64_t step;
	bool agent; /* it is wlb-agent: its end is no symptom of a loss of ranks */

	struct wlbd_node_processes *processes; /* of its ranks; NULL: all run, and it is not reported which */

	/* Whether it is silent (incident/symptoms.c, attempt_end.c). */
	int64_t reported_ms; /* when it last reported */
	int64_t late_ms;     /* when it last did so late; 0: it never has */
	int64_t probed_ms;   /* when its node was last probed because of its silence */
	bool goodbye;        /* it will not report again */
	bool stepd_gone;     /* the slurmstepd there died, so that a goodbye does not say that the node outlived its tasks */
	bool node_is_lost;   /* that was recorded, and it has not reported since */

	/* Its stacks (verdicts/stacks.c). */
	int64_t stacks_id;        /* the newest gathering that it was asked for; 0: none */
	int64_t stacks_stored_id; /* the newest gathering whose stacks it has sent; 0: none */
};

/*
 * The parts of an attempt. Only the source that its comment names changes a part, but for what attempts.c takes from
 * the database; every source may read it.
 */

/* What its run asks for, as the database has it (attempts.c). */
struct wlbd_attempt_policy {
	struct wlb_on_fault on_fault; /* what is done about faults */
	int min_nodes;                /* that the run needs; 0: one is enough */
	int spares;                   /* nodes that the run has besides those of the attempt */
	bool goes_on;                 /* without ranks that die, as long as min_nodes are left */
};

/* What Slurm has said of its job (attempts.c). */
struct wlbd_attempt_job {
	bool is_confirmed; /* the job exists and belongs to the attempt's uid */
	int64_t over_ms;   /* when Slurm said first that it has ended, or is unknown; 0: it has not */
};

/* The processes that report: at most one for each node, and the launcher (attempts.c). */
struct wlbd_reporters {
	TAILQ_HEAD(, wlbd_reporter) list;
	int count;
	void *tree;
};

/* How the attempt ends (incident/attempt_end.c, faults.c). */
struct wlbd_ending {
	struct event *judge_timer;
	char reason[512];      /* of the order to end */
	bool is_exit_recorded; /* its exit code was given to the outbox */
};

/* Nodes that have not reported since wlbd was started again (incident/unreported_nodes.c). */
struct wlbd_unreported {
	int64_t due_ms;          /* when nodes have to have reported; 0: that is past, or wlbd was not started again */
	struct wlbd_names nodes; /* that have not answered yet */
	int left;                /* of these, from the first on, are to be probed in this round */
	int64_t ask_ms;          /* when the round begins, of wlb_clock_ms() */
};

/* Whether its job was requeued (incident/requeued.c). */
struct wlbd_requeue {
	int64_t noted_ms; /* when wlbd learned that it was; 0: it was not */
	int64_t asked_ms; /* when Slurm was last asked; 0: never */
};

/* The step of Slurm (incident/step_end.c). */
struct wlbd_slurm_step {
	int own_nodes; /* it is only recorded, and its agents alone tell its end; 0: it is of `wlb run` or wlb-worker */
	int own_exit_code; /* of the first rank that ended badly; 0: none did */
	char id[32];       /* "12.0", from the launcher */
	bool has_reported; /* a node has, to this wlbd or to one before it */
	struct wlbd_quiet {
		int64_t since_ms; /* no node has reported, of wlb_clock_ms(); 0: not watched yet */
		int64_t ask_ms;   /* when Slurm is asked, at the earliest */
		int64_t pause_ms; /* until it is asked again */
		bool is_asked;    /* a question is under way */
	} quiet;
};

/* The search for faulty ranks (verdicts/detect.c). */
struct wlbd_watch {
	struct wlbd_detection *detection; /* NULL: its ranks are not watched yet, or no more */
	bool is_standstill_suspected;     /* by the newest judgement of its ranks */
	int64_t judged_ms, judging_ms;    /* when that was over, and how long it took */
	int64_t sampled_ms;               /* when its ranks were sampled last (verdicts/rank_samples.h); 0: never */
};

/* The steps that were recorded since wlbd started (verdicts/outliers.c). */
struct wlbd_recorded_steps {
	uint64_t count;
	int64_t last;
};

/* The steps that had ended before (verdicts/detect.c). */
struct wlbd_past_steps {
	bool is_asked;   /* the database was asked for the length */
	double length_s; /* of one; 0: not known */
};

/* Nodes of the job that the attempt excludes, since earlier ones were ended on their account
 * (verdicts/past_evictions.c). */
struct wlbd_excluded {
	bool is_asked, is_known; /* the database was, and has answered */
	int count, max;          /* those nodes, and how many there may be */
	int used;                /* nodes that earlier attempts evicted, and which this one needs */
};

/* How many changes of verdicts were stored since then (verdicts/found_verdicts.c). */
struct wlbd_stored_verdicts {
	int64_t count;
	int64_t since_ms;
};

/* The newest gathering of its stacks (verdicts/stacks.c). */
struct wlbd_stacks {
	int64_t id;       /* 0: none; else seconds since 1970, or one more than the id before */
	int64_t asked_ms; /* of wlb_clock_ms() */
	int nodes;        /* that report through an agent, and so are asked */
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
	int64_t made_ms;  /* when it was taken into memory, of wlb_clock_ms() */
	bool is_run_over; /* api/find_attempt.c took it into memory for a late record: it leaves once that is judged */
	struct wlbd_attempt_policy policy;
	struct wlbd_attempt_job job;
	struct wlb_layout layout; /* all 0: not known yet */
	struct wlbd_attempt_nodes nodes;
	struct wlbd_reporters reporters;
	struct wlbd_activities activities; /* what its ranks do */

	struct wlbd_incident incident; /* with the attempt's state: incident.life */
	struct wlbd_ending ending;
	TAILQ_HEAD(, wlbd_node_question) questions; /* about its nodes, under way */
	struct wlbd_unreported unreported;
	struct wlbd_requeue requeue;
	struct wlbd_slurm_step slurm_step;

	struct wlbd_watch watch;
	struct wlbd_outliers *outliers; /* finds ranks whose stacks differ: one allocation; NULL: as watch.detection */
	struct wlbd_process_faults *process_faults; /* verdicts/process_faults.c: one allocation; NULL: none so far */
	struct wlbd_recorded_steps steps;
	struct wlbd_recorded_steps attempt_steps; /* whose number is that of the attempt alone */
	struct wlbd_past_steps past_steps;
	struct wlbd_excluded excluded;
	struct wlbd_stored_verdicts stored_verdicts;
	struct wlbd_stacks stacks;
};

enum { WLBD_LAST_REPORTS_MS = 15 * 60 * 1000 };

struct wlbd_attempts {
	TAILQ_HEAD(, wlbd_attempt) list;
	void *tree;              /* by UUID */
	void *connections;       /* reporters by their connection */
	event_callback_fn judge; /* of each attempt's judge_timer */
	int count;
	int reporters;
	int64_t making_ms; /* that this tick has taken to begin to watch the ranks of attempts */
};

/* `judge` is called with an attempt whose symptoms are to be judged. Returns NULL if out of memory. */
struct wlbd_attempts *wlbd_attempts_new(event_callback_fn judge);
void wlbd_attempts_free(struct wlbd_attempts *attempts);

struct wlbd_attempt *wlbd_attempts_find(const struct wlbd_attempts *attempts, const char *uuid);

/* The attempt that a question to Slurm, a node or the database is about: it may have been removed when the answer
 * arrives. */
struct wlbd_attempt_ref {
	struct wlbd *wlbd;
	char uuid[37];
};

struct wlbd_attempt_ref wlbd_attempt_ref(const struct wlbd_attempt *attempt);
/* Returns NULL where it was removed, or wlbd ends. */
struct wlbd_attempt *wlbd_attempt_ref_find(const struct wlbd_attempt_ref *ref);

/* Of the nodes, ranks and reporters of attempts. The largest attempt, of 8,192 nodes and 65,536 ranks, holds 5 MiB. */
enum { WLBD_ATTEMPT_USER_BYTES = 64 << 20, WLBD_ATTEMPT_ALL_BYTES = 512 << 20 };

/* Whether a user has as many attempts in memory as a user may have. `is_claim`: a client alone claims the next attempt.
 * Attempts for whose job Slurm has not said the nodes count as claims, and a user may have fewer claims than attempts.
 */
bool wlbd_attempts_full(const struct wlbd_attempts *attempts, uid_t uid, bool is_claim);

/* Adds, or updates, the attempt that the JSON of wlb_attempt_json() of the schema describes. Returns NULL where that
 * cannot be read, or if out of memory, and logs it. */
struct wlbd_attempt *wlbd_attempts_put(struct wlbd *wlbd, const json_t *attempt_json);
/* Takes the degrees of a layout, {"tp":..., ...}; another value, or one of more ranks than are watched, changes
 * nothing.
 */
void wlbd_attempt_set_layout(struct wlbd_attempt *attempt, const json_t *object);
/* The attempt must have no questions under way. */
void wlbd_attempts_remove(struct wlbd *wlbd, struct wlbd_attempt *attempt);

/* A symptom changed, or the step ended: the attempt is judged on the next turn of the event loop, and so never inside a
 * callback of a connection that has just closed. */
void wlbd_attempt_judge_soon(struct wlbd_attempt *attempt);

/* Stores what Slurm reports of a run's job in the run's attempts: whether the job is their user's, which nodes the job
 * has, and whether it is over. */
void wlbd_attempts_confirm(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job);

/* Slurm says that the job of the run is unknown. */
void wlbd_attempts_job_unknown(struct wlbd *wlbd, int64_t run_pk);

/* Whether the last reports of the run may still arrive: a process of it is connected, and Slurm has not said for
 * WLBD_LAST_REPORTS_MS that the job is over. */
bool wlbd_attempts_run_reports(const struct wlbd_attempts *attempts, int64_t run_pk, int64_t now_ms);

/* Sets what is done about the faults of a run's attempts. `text` names what is not as wlbd.conf has it. */
void wlbd_attempts_set_on_fault(struct wlbd *wlbd, int64_t run_pk, const char *text);

/* Returns when a process of the node last reported over a connection that is still open; 0: none does. Only attempts
 * count whose job has that node as Slurm says, and of users other than `uid` only connections from the node's own
 * address: a user who shares a node could otherwise hide its loss by reporting from elsewhere. */
int64_t wlbd_attempts_last_report_ms(const struct wlbd_attempts *attempts, const char *node, uid_t uid);

/* Returns the reporter of the node, which is made where there is none; NULL if out of memory, or where the attempt has
 * as many as it can have. An attempt has one launcher, on whatever node. */
struct wlbd_reporter *wlbd_attempt_reporter(struct wlbd_attempt *attempt, const char *node, int rank);

/* Whether a process of the node has reported, its launcher included, as far as is known to this wlbd. */
bool wlbd_attempt_has_reporter(const struct wlbd_attempt *attempt, const char *node);

/* The reporter reports over this connection from now on; a reporter that did so before has none. Returns -1 if out of
 * memory; the reporter has no connection then, and its silence will be noticed instead. */
int wlbd_reporter_attach(struct wlbd_reporter *reporter, struct wlbd_connection *connection);
/* Takes a copy of what it reports of its processes, NULL: all run. Where there is no memory for it, none are known. */
void wlbd_reporter_set_processes(struct wlbd_reporter *reporter, const struct wlbd_node_processes *processes);
void wlbd_reporter_detach(struct wlbd_reporter *reporter);

#endif
