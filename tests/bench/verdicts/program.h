/*
 * What each rank does in a step, call by call: 1F1B over the stages, with calls of tensor and context parallelism in
 * each pass, then the reduction over replicas and a call of all. A rank that is blocked continues when the call has all
 * its members, so that a rank or a call that stands still blocks those, and only those, that depend on it.
 */
#ifndef TESTS_BENCH_VERDICTS_PROGRAM_H
#define TESTS_BENCH_VERDICTS_PROGRAM_H

#include "tests/bench/verdicts/step_trace.h"

enum operation_kind {
	OPERATION_START,
	OPERATION_LOAD,
	OPERATION_COMPUTE,
	OPERATION_CALL,
	OPERATION_SEND,
	OPERATION_RECEIVE,
	OPERATION_CHECKPOINT,
	OPERATION_EVALUATION,
};

struct operation {
	enum operation_kind kind;
	enum cluster_slot slot; /* of calls, sends and receives */
	double share;           /* of the step's computation */
};

enum { MOST_OPERATIONS = 224, MOST_STAGES = 16, SENT = 64 };

/* The operations of a step that a rank has begun, in turn: it ended each when it began the next. */
struct events {
	double began_s[MOST_OPERATIONS];
	unsigned char operation[MOST_OPERATIONS];
};

/* What goes wrong in the next step. */
struct incident {
	int32_t stuck_rank[MOST_FAULTS]; /* each never ends the operation stuck_at[]; -1: none */
	int32_t stuck_at[MOST_FAULTS];
	int32_t stuck_group; /* its next call, or the message in it, never ends; -1: none */
	double stop_s;       /* from then on nothing crosses the NIC of stop_node, or a rank of it does nothing */
	int32_t stop_node;   /* -1: none */
	int32_t stop_rank;
	int dead;            /* 1: the ranks of stop_node stop too */
	int32_t paused_rank; /* -1: none; it stays in the operation paused_at for paused_s longer */
	int32_t paused_at;
	double paused_s;
	double start_s;      /* start-up before the step, up to so long on each rank; 0: none */
	double checkpoint_s; /* the same after the step, on all ranks or rank 0 alone; 0: none */
	int checkpoint_alone;
	double evaluation_s; /* on all ranks; 0: none */
};

struct incident incident_none(void);

struct program {
	struct step_trace trace;
	const struct cluster *cluster;
	struct operation operations[MOST_STAGES][MOST_OPERATIONS];
	int32_t operation_count[MOST_STAGES];
	struct incident incident;
	unsigned char *concerned; /* [ranks] 1: the incident names the rank, or its node where that is dead */
	double begins_s;          /* of the step */
	double ends_s;            /* INFINITY where it never ends */
	struct events *events;    /* [ranks] */
	int32_t *event_count;     /* [ranks] */
	double *now_s;            /* [ranks] */
	int32_t *at;              /* [ranks] the next operation */
	int32_t *entered;         /* [groups] members that have entered the call under way */
	double *last_s;           /* [groups] when the last of them did */
	uint64_t *sent;           /* [groups] messages of this step */
	uint64_t *received;
	double (*sent_s)[SENT];
	int32_t *ready; /* ranks that can continue */
	int32_t ready_count;
};

void program_init(struct program *program, const struct cluster *cluster, uint64_t seed);
void program_free(struct program *program);

/* Runs a step with `times` the usual work from the end of the one before. Where it stands still, ends_s is INFINITY and
 * the last event of each rank is what it is in for ever. */
void program_step(struct program *program, double times, const struct incident *incident);

/* The operations of a rank's step. */
const struct operation *program_operations(const struct program *program, int32_t rank, int32_t *count);

/* Gives the step, which must have ended, to the detector as the ranks report it. */
void program_report_step(struct program *program, struct wlb_verdict_detector *detector);

#endif
