/* The state of `wlb run`: its options, the job, the attempt, and the run itself. */
#ifndef COORDINATOR_WLB_RUN_STATE_STATE_H
#define COORDINATOR_WLB_RUN_STATE_STATE_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "common/error_line.h"
#include "common/options.h"
#include "coordinator/client/client.h"
#include "coordinator/wlb/run/rules/first_exit.h"
#include "coordinator/wlb/run/rules/grow_rule.h"
#include "coordinator/wlb/run/rules/next_rule.h"
#include "coordinator/wlb/run/rules/rendezvous.h"
#include "libwlb/wlb.h"

struct wlb_reporter;
struct wlb_run_suspects;

/* What the death of a rank does to the others of its attempt. */
enum wlb_on_rank_exit {
	WLB_ON_RANK_EXIT_END,
	WLB_ON_RANK_EXIT_CONTINUE, /* nothing, as long as enough nodes are left */
};

struct wlb_run_options {
	const char *name;   /* by which the run is told from others of the job; NULL: by the command */
	int tasks_per_node; /* 0: as the job was submitted */
	int max_restarts;
	int wait_s;                        /* after a fault: how long to wait for a coordinator that does not answer */
	const char *spool_dir;             /* NULL: the job's */
	const char *stop_before_end;       /* seconds; NULL: as the saves need */
	struct wlb_option_list srun_words; /* values of --srun-args: words separated by blanks */
	char **srun_args;                  /* one word each; owned */
	int srun_arg_count;
	bool keep_command;   /* a launcher's options stay as they are */
	const char *trainer; /* whose options tell the layout, trainer.h; NULL: the environment alone does */
	const char
		*planned_trainer; /* whose step is predicted, planner/trainer_file.h; NULL: `trainer`, else megatron */
	enum wlb_on_rank_exit on_rank_exit;
	const char *follow_tensorboard; /* the folder of event files; NULL: the one that the command names */
	bool no_hook;                   /* no hook of Python in the ranks */
	const char *step_pattern;       /* of a line that tells of a step; NULL: as known trainers print it */
	char **command;                 /* NULL-terminated */
};

/* The Slurm job of this process. */
struct wlb_run_job {
	uint32_t job_id;
	uint32_t restart_count;
	int64_t submit_time;  /* 0: not known */
	int64_t end_time;     /* by its time limit, seconds since 1970 by slurmctld's clock; 0: not known */
	double clock_ahead_s; /* of this host's clock before slurmctld's */
	bool is_preempted;    /* its grace time runs */
	char cluster[64];
	char name[256];
	char this_node[256];
	char spool_dir[PATH_MAX]; /* coordinator/client/spool_dir.h; off: "" */
	char **nodes;             /* of the allocation, as far as we know; wlb_strings_free */
	int node_count;
	int first_node_count; /* that the job was started on */
	int tasks_per_node;
	int tasks; /* off: of all nodes, as the job was submitted; 0: tasks_per_node on each */
	int gpus_per_node;
	json_t *policy;   /* what the user asked for, as the API has it */
	bool shares_cpus; /* the tasks, of which each GPU has one, need more CPUs than the job has */
	bool off;         /* --wlb-layout=off or not given: run the command and nothing else */
};

/* Values beside the layout that the planner chose; micro_batch_size 0: it chose none. */
struct wlb_run_settings {
	int64_t micro_batch_size; /* windows */
	int64_t micro_batches;    /* of a replica in a step */
	int interleave;
	const char *recompute; /* "none", "selective", "full" */
	int recompute_layers;  /* full: of each chunk; 0: all */
	bool shared_head;      /* by all stages */
	bool dynamic;          /* packing */
};

/* What a checkpoint of another trainer depends on. */
struct wlb_run_split {
	int tp, cp, pp, interleave;
};

/* A switch of the topology, with the next `node_count` nodes of an attempt; name "": the nodes are under no switch. */
struct wlb_run_switch {
	char name[256];
	int node_count;
};

/* The longest of the newest times. They are counted in blocks: the block that is being filled, and the block before. */
struct wlb_run_longest {
	double block_s, before_s;
	int count; /* in the block */
};

/* What wlb-worker has recorded of its steps and checkpoints, progress.h. */
struct wlb_run_progress {
	struct wlb_run_longest saves, steps; /* of all attempts, without suspensions; kept in the journal */
	int64_t read_ms;                     /* when the spool was read last; 0: never */
	double stood_still_s; /* the job, and this process with it, in the step that will be recorded next */
	int64_t saved_step;   /* the last checkpoint of the attempt; -1: none */
	int fd;               /* the spool of rank 0 in the attempt; -1: not open */
	char line[4096];
	size_t line_bytes; /* sizeof(line): too long to be the record of a step or a checkpoint */
};

/* Where jobs may be preempted, wlb-worker goes on for so long after SIGTERM: it may be asked to save instead. */
enum { WLB_RUN_TERM_HOLD_S = 2 };

/* When the command is asked to save and stop, time_limit.h. */
struct wlb_run_limit {
	bool is_given; /* by --stop-before-end */
	int64_t given_s;
	bool is_read;             /* the trainer has looked at the file of WLB_STOP_FILE, stop_file.h */
	double first_save_s;      /* for the save of a run that has not saved yet */
	double total_s;           /* that the job had when `wlb run` started, or had its limit changed; 0: not known */
	bool is_bound_printed;    /* that the command is asked later than wanted */
	bool may_be_preempted;    /* the cluster preempts jobs, or it is not known */
	bool preemption_is_known; /* slurmctld has answered */
	int64_t next_query_ms, next_read_ms;
};

/* The journal of the job, journal.h. */
struct wlb_run_journal {
	int fd;                   /* -1: it is not open */
	int number;               /* of this run in it; 0: it has none yet */
	bool is_held;             /* another process has kept the lock for too long, and is not waited for again */
	char path[PATH_MAX + 16]; /* for messages */
};

/* How the run takes in nodes again (--wlb-grow), grow.h. */
struct wlb_run_grow {
	bool is_on;
	bool may_requeue;
	bool are_others_printed;   /* that other runs of the job keep this one from a requeue */
	int64_t least_s;           /* that an attempt runs before it is stopped to grow */
	int first_nodes;           /* nodes that the job began with, before its nodes failed */
	int growths_without_nodes; /* growths in a row that brought no more nodes */
	int nodes_before;          /* of the attempt that was stopped to grow; 0: none was */
	int used, unused;          /* nodes of the attempt under way, and nodes that it could use and does not */
	int64_t query_ms;          /* between two questions to Slurm */
	int64_t next_query_ms;
	enum wlb_grow_way way; /* for which the attempt was asked to stop */
	int nodes;             /* with which the run shall go on then */
	char why[256];
	char outcome[128]; /* of the last growth, known when the next attempt is decided; "": there is none to report */
};

/* A node did not launch its tasks. */
struct wlb_run_launch_failure {
	char node[256]; /* "": every node did, as far as is known */
	char why[128];  /* in Slurm's words */
	double time_s;  /* since 1970 */
};

/* Slurm itself ended the tasks of a step, slurm_end.h. */
struct wlb_run_slurm_end {
	char why[512];   /* "": it did not */
	double time_s;   /* since 1970 */
	bool is_certain; /* no rank can be the reason */
};

/* Who has ended an attempt. */
enum wlb_attempt_ended_by {
	WLB_ENDED_BY_ITSELF, /* its tasks, its nodes, or Slurm */
	WLB_ENDED_BY_ORDER,  /* of the coordinator */
	WLB_ENDED_BY_CANCEL, /* of the run, by its user or by the end of its job */
};

/* One launch. */
struct wlb_attempt {
	char id[37];
	int number;
	char **nodes; /* in the order in which ranks fill them; wlb_strings_free */
	int node_count;
	int unused_count; /* nodes that could be used and are not: spares, and nodes for which no layout has a place */
	char **unresponsive; /* nodes of the job that are excluded since they do not answer; wlb_strings_free */
	int unresponsive_count;
	int64_t checkpoint_step;         /* the newest that the coordinator knows of the run; 0: none */
	char *checkpoint_path;           /* of that step; NULL: not known; owned */
	json_t *suspects;                /* names of nodes that are excluded and can be checked; NULL: none */
	struct wlb_run_switch *switches; /* of the nodes, in their order; NULL: not known; owned */
	int switch_count;
	json_t *gpu_types; /* of the coordinator's reply (docs/api.md); NULL: it sent none */
	int tasks_per_node;
	int fewer_on_last; /* tasks that the last node has fewer than the others */
	struct wlb_layout layout;
	bool has_layout;
	bool is_decided_here; /* the coordinator knows nothing of it yet */
	struct wlb_run_settings settings;
	struct wlb_rendezvous rendezvous;
	char **command;    /* that it runs; NULL: that of the options; wlb_launcher_free */
	json_t *plan;      /* the record of its plan; NULL: nothing was planned */
	char reason[1024]; /* why it has these nodes and this layout; "" for no reason to print */

	/* How it ended. */
	char step_id[32];              /* "12.0"; "" if there was no step */
	int exit_code;                 /* of the task that failed first, else srun's; 128 + signal when it was killed */
	bool no_step;                  /* srun could not create its step, for a temporary reason: no task has run */
	bool is_slurmctld_unavailable; /* that reason is that slurmctld did not answer */
	bool is_refused;               /* srun or Slurm would refuse it again, as end_reason says */
	enum wlb_attempt_ended_by ended_by;
	enum wlb_run_stop stop; /* it was asked to save and stop */
	int64_t next_stop_ms;   /* when it is asked again */
	bool has_saved;         /* wlb-worker has recorded a checkpoint */
	bool stopped;           /* it has saved and stopped before the end of its training */
	struct wlb_first_exit first_exit;
	struct wlb_run_launch_failure launch_failure;
	struct wlb_run_slurm_end slurm_end;
	int srun_signal; /* that killed srun; 0: none did */
	char end_reason[1024];
	struct wlb_error_line error; /* first_error.h */
};

static inline int wlb_attempt_tasks_on(const struct wlb_attempt *attempt, int node)
{
	return attempt->tasks_per_node - (node == attempt->node_count - 1 ? attempt->fewer_on_last : 0);
}

static inline int wlb_attempt_tasks(const struct wlb_attempt *attempt)
{
	return attempt->node_count * attempt->tasks_per_node - attempt->fewer_on_last;
}

enum wlb_run_input_kind { WLB_RUN_INPUT_INHERITED, WLB_RUN_INPUT_FILE, WLB_RUN_INPUT_STREAM };

/* The command's standard input, input.h. */
struct wlb_run_input {
	enum wlb_run_input_kind kind;
	int64_t offset; /* FILE: where every attempt begins to read */
	int fd;         /* STREAM: of the pipe or socket */
	char *bytes;    /* read from it, as long as it may be needed; owned */
	size_t count;
	size_t passed;    /* of these, to the srun under way */
	bool has_ended;   /* nothing follows `bytes` */
	bool is_kept;     /* `bytes` are all of it, for every attempt */
	int ends[2];      /* of the pipe to srun; -1: closed */
	int64_t dropped;  /* bytes that were passed to the srun under way before `bytes` */
	int64_t consumed; /* bytes, by the sruns before */
};

struct wlb_run {
	struct wlb_run_options options;
	struct wlb_run_job job;
	struct wlb_client_config config;
	struct wlb_connection *connection; /* NULL: no coordinator is configured */
	char id[64];                       /* WLB_RUN_ID */
	int launch;                        /* number of this `wlb run` in the job, run_identity.h */
	struct wlb_run_journal journal;
	char launcher_id[37]; /* of its first attempt, by which the coordinator knows this `wlb run` */
	bool announced;
	bool is_distribution_printed;    /* that the user's distribution on a node is not kept */
	bool machine_is_ours;            /* WLB_MACHINE was set here, for one attempt */
	json_t *calibration;             /* that WLB_MACHINE was written from, docs/api.md; NULL: none */
	struct wlb_layout layout_before; /* of the attempt before; tp 0: there is none */
	struct wlb_run_split held;       /* of the attempts before that --for has told; tp 0: there is none */
	int attempts;                    /* number of the last attempt, 0 before the first */
	pid_t killed_srun;       /* the srun of the last attempt that was killed, while its step may run on; 0: none */
	sigset_t signals;        /* blocked here and read from signal_fd */
	sigset_t signals_before; /* the mask that is restored for the command */
	int signal_fd;
	bool cancelled; /* SIGTERM or SIGINT came, or Slurm reports it */
	struct wlb_run_limit limit;
	struct wlb_run_grow grow;
	struct wlb_run_suspects *suspects; /* check/suspects.h; not owned */
	struct wlb_run_progress progress;
	struct wlb_run_input input;
	bool is_unavailable;  /* the coordinator, or its database, did not answer the last request */
	int64_t end_until_ms; /* deadline for the last reports and records */

	/* The script that started this process, parent.h. */
	int parent_fd; /* -1: none, or gone */
	bool parent_gone;
	int parent_poll_ms;
	int64_t parent_next_ms;
	bool abandoned; /* it was killed and the job is over: the run ends and reports nothing */
};

static inline bool wlb_run_must_end(const struct wlb_run *run)
{
	return run->cancelled || run->abandoned;
}

#endif
