/*
 * All calls to Slurm, on every release from 22.05 to 26.05. compat.h holds the differences between releases; no other
 * code calls libslurm. Calls block for as long as libslurm does (up to MessageTimeout and retries if slurmctld does
 * not answer): wlbd makes them on a separate thread.
 */
#ifndef COORDINATOR_SLURM_SLURM_API_H
#define COORDINATOR_SLURM_SLURM_API_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "libwlb/wlb.h"

int wlb_slurm_open(struct wlb_error *error); /* slurm_init; once */
void wlb_slurm_close(void);

struct wlb_slurm_job {
	uint32_t job_id;
	/* As users know it: "15_2" for task 2 of array 15, "15+1" for component 1 of the heterogeneous job 15; "": by
	 * its id. */
	char alias[32];
	uid_t uid;
	char name[256];
	char account[256]; /* to which its time is charged; "" where Slurm has none */
	uint32_t gpus;     /* of its allocation, from gres; 0: none */
	char state[32];    /* "RUNNING", "PENDING", "COMPLETED", ... base state without flags */
	bool running;
	bool configuring; /* its nodes still boot, or its PrologSlurmctld has not ended; Slurm then calls it running */
	bool suspended;
	bool finished;
	time_t submit_time;
	uint32_t restart_count;
	char *nodes; /* hostlist expression of the current allocation; "" when none */
	char batch_host[256];
	bool requeue;       /* --requeue; Slurm does not report --no-kill, see docs/slurm-versions.md */
	bool batch;         /* sbatch: only such a job can be requeued */
	bool is_restricted; /* not every node that is like its own can serve it: it names nodes, counts features, or has
	                       a reservation */
	char partition[256];
	/* Of a pending job that was requeued: how many nodes it had, without the nodes that Slurm took from it. Of
	 * another pending job: how many nodes it asks for. 0 as long as Slurm still ends its processes. */
	uint32_t node_count;
	bool is_limited;     /* it has a time limit; the end of one without is a year after its start */
	time_t end_time;     /* of a running job: by its time limit, or by the grace time of its preemption */
	time_t suspend_time; /* when it was suspended last, or resumed; 0: it never was */
	time_t preempt_time; /* when its grace time began; 0: it is not preempted */
	/* How far the clock of this host is before slurmctld's, by which all these times are; 0: not known. Behind it
	 * by so much, where negative. Correct to a second and the time that the question took. */
	double clock_ahead_s;

	/* Of a finished job. */
	int exit_code;   /* of its script */
	int exit_signal; /* that killed its script; 0: none did */
};
/* Returns 1 if found, 0 if Slurm does not know the job (any more), -1 on error. wlb_slurm_job_free may be called in
 * each of these cases. */
int wlb_slurm_job(uint32_t job_id, struct wlb_slurm_job *job, struct wlb_error *error);
/* Writes the paths of the files of the job's standard output and standard error; "" where Slurm gives none. */
void wlb_slurm_job_output(uint32_t job_id, char *out, char *error, size_t size);
/* Makes a copy of a job that was found; -1 if out of memory, and then there is nothing to free. */
int wlb_slurm_job_copy(struct wlb_slurm_job *copy, const struct wlb_slurm_job *job, struct wlb_error *error);
/* Releases the list of nodes; the other members stay as they are. */
void wlb_slurm_job_free(struct wlb_slurm_job *job);

struct wlb_slurm_node {
	char name[256];
	char address[256]; /* NodeAddr */
	uint16_t port;     /* of its slurmd */
	char state[64];    /* as sinfo prints it */
	bool down;         /* DOWN or without power: cannot run a step */
	bool saves_power;  /* by Slurm's power saving it is off, or boots, and is not DOWN: a job may still get it */
	bool responds;     /* its slurmd has answered the last message of slurmctld */
	bool allocated;    /* a job runs on it, or on a part of it */
	bool drained;      /* drain flag: no new work should go there */
	uint32_t cpus;
	uint32_t gpus;     /* from gres */
	char gpu_type[64]; /* of its first GPUs that have one: "h100"; "" where none has */
	char reason[256];
	time_t reason_time; /* when the reason was set; 0: there is none */
};
/* All nodes; the caller frees *nodes. */
int wlb_slurm_nodes(struct wlb_slurm_node **nodes, int *count, struct wlb_error *error);

/* "n[1-3,5]" -> {"n1","n2","n3","n5"}, in the expression's order; wlb_strings_free releases them. */
int wlb_hostlist_expand(const char *expression, char ***names, int *count, struct wlb_error *error);
/* The names without repeats, in the order that Slurm gives the nodes of a step with an arbitrary distribution. */
int wlb_hostlist_sort(char *const *names, int count, char ***sorted, int *sorted_count, struct wlb_error *error);
/* The reverse of expand; the caller frees the result; NULL on error. */
char *wlb_hostlist_fold(char *const *names, int count, struct wlb_error *error);
void wlb_strings_free(char **names, int count);

/* Needs root or SlurmUser. Sets the state DOWN with a reason; Slurm then breaks the steps on that node at once. */
int wlb_slurm_node_down(const char *node, const char *reason, struct wlb_error *error);
/* Needs the job's owner, root or SlurmUser. A step or a job that is gone is not an error. */
int wlb_slurm_step_kill(uint32_t job_id, uint32_t step_id, int signal, struct wlb_error *error);
/* Finds the step that the srun with this pid on this host runs in the job. Returns 1 if found, 0 if not (yet), -1 on
 * error. */
int wlb_slurm_step_of(uint32_t job_id, pid_t srun_pid, uint32_t *step_id, struct wlb_error *error);
/* Asks the slurmd of every node of the step. Returns 1 if one of them has a slurmstepd of the step, 0 if none has, -1
 * where that is not known. Needs the job's owner, root or SlurmUser. */
int wlb_slurm_step_has_stepd(uint32_t job_id, uint32_t step_id, struct wlb_error *error);
int wlb_slurm_requeue(uint32_t job_id, struct wlb_error *error);
/* Needs the job's owner, root or SlurmUser. Of an array the one task with this number is ended. A job that is gone is
 * not an error. */
int wlb_slurm_job_kill(uint32_t job_id, struct wlb_error *error);
/* Sets how many nodes a *pending* job asks for, and with them its tasks where it was given --ntasks-per-node, so
 * that a requeued job can start on fewer. max_nodes 0: as many at most as before. */
int wlb_slurm_job_resize_pending(uint32_t job_id, uint32_t min_nodes, uint32_t max_nodes, struct wlb_error *error);

/* SlurmUser's uid; (uid_t)-1 if slurmctld does not answer. */
uid_t wlb_slurm_user(void);
/* Value of a parameter of slurm.conf as `scontrol show config` names it, e.g. "AuthInfo", "ClusterName"; false
 * when there is none of that name or slurmctld does not answer. */
bool wlb_slurm_config(const char *key, char *value, size_t size);

#endif
