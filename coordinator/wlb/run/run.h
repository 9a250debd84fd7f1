/* The parts of `wlb run`: where it is (run_job.c), what the coordinator says (run_ask.c), one attempt
 * (run_launch.c, run_watch.c), and the loop over attempts (run.c). */
#ifndef COORDINATOR_WLB_RUN_RUN_H
#define COORDINATOR_WLB_RUN_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "coordinator/client/client.h"
#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/first_exit.h"

struct wlb_run_options {
	int tasks_per_node; /* 0: as the job was submitted */
	int max_restarts;
	int wait_s;            /* how long a fault may wait for a coordinator that is away */
	const char *spool_dir; /* NULL: the job's */
	char **srun_args;      /* one word each */
	int srun_arg_count;
	char **command; /* NULL-terminated */
};

/* The Slurm job we are in. */
struct wlb_run_job {
	uint32_t job_id;
	uint32_t restart_count;
	int64_t submit_time; /* 0: Slurm did not say */
	char cluster[64];
	char name[256];
	char this_node[256];
	char spool_dir[4096];
	char **nodes; /* of the allocation, as far as we know; wlb_strings_free */
	int node_count;
	int tasks_per_node;
	int gpus_per_node;
	json_t *policy; /* what the user asked for, as the API has it */
	bool off;       /* --wlb-layout=off or not given: start it and nothing else */
};

/* One launch. */
struct wlb_attempt {
	char id[37];
	int number;
	char **nodes; /* wlb_strings_free */
	int node_count;
	int tasks_per_node;
	struct wlb_layout layout;
	bool has_layout;
	char reason[1024]; /* why it is as it is; "" for nothing to say */

	/* How it went. */
	char step_id[32]; /* "12.0"; "" when it never got one */
	int exit_code;    /* of the task that failed first, else srun's; 128 + signal when it was killed */
	bool no_step;     /* srun could not create its step, for a reason that passes: no task has run */
	bool ended_by_order;
	bool cancelled;
	char end_reason[512];
};

struct wlb_run {
	struct wlb_run_options options;
	struct wlb_run_job job;
	struct wlb_client_config config;
	struct wlb_connection *connection; /* NULL: no coordinator is configured */
	char id[64];                       /* WLB_RUN_ID */
	int launch;                        /* the how-manieth `wlb run` of the job */
	bool announced;
	char attempt_id[37];              /* of the last attempt, "" before the first */
	struct wlb_first_exit first_exit; /* of the last attempt */
	int srun_signal;                  /* that killed the srun of the last attempt; 0: none did */
	pid_t killed_srun;                /* the same srun, while its step may run on; 0: there is none */
	sigset_t signals;                 /* blocked here and read from signal_fd */
	sigset_t signals_before;          /* what the command gets back */
	int signal_fd;
	bool cancelled;       /* SIGTERM or SIGINT came, or Slurm says so */
	bool away;            /* the coordinator, or its database, did not answer a moment ago */
	int64_t end_until_ms; /* what is left to be told is told until then */

	/* The script that started us, run_parent.c. */
	int parent_fd; /* -1: none, or gone */
	bool parent_gone;
	int parent_look_ms;
	int64_t parent_next_ms;
	bool abandoned; /* it was killed and the job is over: we end and tell nothing */
};

/* Sleeps; false at once when the run is to end (run->cancelled or run->abandoned is then set). */
bool wlb_run_pause(struct wlb_run *run, int ms);

/* Prints "wlb: ..." as one line on stderr. */
void wlb_run_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- run_job.c */
int wlb_run_job_load(struct wlb_run_job *job, const struct wlb_run_options *options, struct wlb_error *error);
void wlb_run_job_free(struct wlb_run_job *job);
/* Asks Slurm again for the nodes that are left; keeps the old ones where it does not answer. */
void wlb_run_job_refresh(struct wlb_run_job *job);
/* The how-manieth `wlb run` of this start of the job this is, counted in the spool folder. */
int wlb_run_job_launch(const struct wlb_run_job *job, int *launch, struct wlb_error *error);

/* ---- run_ask.c */
enum wlb_decision { WLB_DECISION_START, WLB_DECISION_STOP, WLB_DECISION_AWAY };

/* Announces the run and learns its name; -1 when the coordinator is away or refuses. */
int wlb_run_announce(struct wlb_run *run, struct wlb_error *error);
/* Asks for the next attempt until there is a decision; a coordinator that does not answer is given `away_s`. `attempt`
 * holds the id already and receives the rest; `previous` is NULL for the first. On STOP, attempt->reason and *state are
 * the coordinator's; on AWAY the message says what failed. */
enum wlb_decision wlb_run_ask(struct wlb_run *run, const struct wlb_attempt *previous, int away_s,
                              struct wlb_attempt *attempt, char state[32], struct wlb_error *error);
/* The attempt on all nodes of the job with a layout worked out here. */
int wlb_run_decide_alone(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error);
/* Tells that the run is over, until run->end_until_ms; a coordinator that is away learns it from the spool. */
void wlb_run_end(struct wlb_run *run, const char *state, int exit_code, const char *reason);

/* Adds to `object` what ended the last attempt, as far as it is known: "first_exit" {"rank":5,"node":"n3","signal":9}
 * when a task was killed, "srun_signal" when srun was. */
void wlb_run_put_first_exit(const struct wlb_run *run, json_t *object);

/* ---- run_deliver.c */
/* This run's records, for at most so long, and not at all where nobody answers; how many are left. */
int64_t wlb_run_deliver(struct wlb_run *run, int limit_ms, struct wlb_error *error);
/* Starts the delivery of what other runs left, in a process that ends with us. */
void wlb_run_deliver_others(const struct wlb_run *run);
/* This run's records until run->end_until_ms; says what is left, and what was refused. */
void wlb_run_deliver_last(struct wlb_run *run);

/* ---- run_parent.c */
void wlb_run_parent_open(struct wlb_run *run);
void wlb_run_parent_close(struct wlb_run *run);
/* Whether the run is to end, since the script is gone and the job is no longer running: cancelled or abandoned. Slurm
 * is asked in intervals, or `at_once`. */
bool wlb_run_look_at_parent(struct wlb_run *run, bool at_once);
/* SIGTERM came: sets cancelled, or abandoned where Slurm ends a job whose script was killed. */
void wlb_run_note_term(struct wlb_run *run);

/* ---- run_launch.c: starts srun; its pid, or -1. *srun_stderr is the end to read from, and the caller closes it. */
pid_t wlb_run_launch(const struct wlb_run *run, const struct wlb_attempt *attempt, int *srun_stderr,
                     struct wlb_error *error);

/* ---- run_watch.c: until srun has ended; obeys orders and signals, and passes srun's stderr on; closes it. Fills in
 * how the attempt went, and run->first_exit. */
void wlb_run_watch(struct wlb_run *run, struct wlb_attempt *attempt, pid_t srun, int srun_stderr,
                   struct wlb_reporter *reporter);
/* Ends the step of an srun that was killed, and waits until Slurm says that it is gone, 15 s at most: Slurm lets its
 * ranks run on, beside those of the next attempt. The coordinator is told of the kill before, so that it does not take
 * the ranks that end here for the cause. */
void wlb_run_end_orphaned_step(struct wlb_run *run);

#endif
