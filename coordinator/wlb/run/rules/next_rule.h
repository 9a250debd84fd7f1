/* Decides what `wlb run` does next: a function of facts, no I/O. */
#ifndef COORDINATOR_WLB_RUN_RULES_NEXT_RULE_H
#define COORDINATOR_WLB_RUN_RULES_NEXT_RULE_H

#include <stdbool.h>

/* What the coordinator has said of the next attempt. */
enum wlb_answer {
	WLB_ANSWER_NONE,        /* it was not asked yet */
	WLB_ANSWER_WAIT,        /* it is asked again and again, and has not decided */
	WLB_ANSWER_START,       /* it has named the nodes of the attempt */
	WLB_ANSWER_STOP,        /* the run is over */
	WLB_ANSWER_UNAVAILABLE, /* it does not answer, or none is configured */
	WLB_ANSWER_REFUSED,     /* it takes no such request */
};

/* Why the command was asked to save and stop. */
enum wlb_run_stop {
	WLB_RUN_STOP_NONE,
	WLB_RUN_STOP_LIMIT,
	WLB_RUN_STOP_PREEMPTED,
	WLB_RUN_STOP_GROW,
	WLB_RUN_STOP_USER, /* SIGUSR1 to `wlb run` */
};

struct wlb_next_facts {
	bool is_abandoned; /* the script was killed and the job is over */
	bool is_cancelled;
	bool has_coordinator;
	enum wlb_answer answer; /* since the last attempt ended */
	bool is_not_started;    /* the attempt that was decided could not be started */

	/* The last attempt of this start of the job. */
	bool has_attempt; /* false: there is none, and all that follows has no meaning */
	int exit_code;
	enum wlb_run_stop stop;
	bool stopped;    /* it has saved and stopped before the end of its training */
	bool has_saved;  /* it has recorded a checkpoint */
	bool is_refused; /* the command would be refused again */

	int failures; /* attempts that have failed, in this start of the job */
	int max_restarts;
	bool has_input;       /* the standard input that a next attempt needs */
	bool is_late;         /* a next attempt would be asked to stop as soon as it starts */
	double left_s;        /* until the job's end; infinite where it is not known */
	bool is_grown_by_job; /* the run can take in nodes only where the job is requeued */
	bool requeue_failed;  /* at the job's end; Slurm has said why */
	bool growth_failed;   /* the job was not requeued so that the run can grow */
};

enum wlb_next_step {
	WLB_NEXT_WAIT,            /* for the coordinator, which is asked for the next attempt */
	WLB_NEXT_START,           /* the attempt that the coordinator has decided on */
	WLB_NEXT_START_ALONE,     /* an attempt on all nodes, on which the coordinator has not decided */
	WLB_NEXT_REQUEUE,         /* since the job has no time for an attempt */
	WLB_NEXT_REQUEUE_TO_GROW, /* where the nodes for it are still there */
	WLB_NEXT_FINISH,
	WLB_NEXT_LEAVE, /* without a report */
};

/* Why the run is finished. */
enum wlb_outcome {
	WLB_OUTCOME_COMPLETE,
	WLB_OUTCOME_CANCELLED,
	WLB_OUTCOME_NOT_STARTED,
	WLB_OUTCOME_NOT_REQUEUED, /* the job has no time for a next attempt, and is not requeued */
	WLB_OUTCOME_COMMAND,      /* the command would be refused again */
	WLB_OUTCOME_RESTARTS,     /* --max-restarts allows no more */
	WLB_OUTCOME_INPUT,        /* the next attempt would lack input */
	WLB_OUTCOME_COORDINATOR,  /* it has decided so, and has named the run's state */
	WLB_OUTCOME_UNAVAILABLE,  /* nobody decides on a next attempt */
};

struct wlb_next {
	enum wlb_next_step step;
	enum wlb_outcome end; /* FINISH */
	const char *state;    /* of the run: FINISH; not owned */
	int exit_code;        /* of `wlb run`: FINISH, REQUEUE, REQUEUE_TO_GROW, LEAVE */
};

struct wlb_next wlb_next_decide(const struct wlb_next_facts *facts);

#endif
