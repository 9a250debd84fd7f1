/* The state of a detector, which its parts share; internal. */
#ifndef LIBVERDICT_DETECTOR_STATE_H
#define LIBVERDICT_DETECTOR_STATE_H

#include "libverdict/shift.h"
#include "libverdict/step_model.h"
#include "libverdict/wlb_verdict.h"
#include "libverdict/world.h"

enum {
	VERDICT_ACTIVITIES = WLB_VERDICT_ENDED + 1,
	VERDICT_SLOTS = 16,      /* steps that are collected at a time */
	VERDICT_HISTORY = 256,   /* steps whose length is remembered */
	VERDICT_WAITS = 16,      /* ranks of each step whose wait for the loader is remembered */
	VERDICT_COST_STEPS = 64, /* steps that the cost of slow ranks is found from */
	VERDICT_OPEN_MAX = 256,  /* verdicts that are open at a time */
};

/* What is known of a rank from its states. Times of the job are explained in job_time.h. */
struct verdict_rank {
	int seen;
	uint64_t report;
	double seen_job_s;          /* when its last report arrived, in the job's time */
	double seen_s;              /* the same by the caller's clock */
	double progress_job_s;      /* when it was last seen to begin something, in the job's time */
	double progress_s;          /* the same by the caller's clock */
	double stopped_job_s;       /* when its process was first reported as stopped */
	double gap_s, gap_to_job_s; /* the longest time between two reports of the last minute or so, and its end */
	double gone_s;              /* when its process was gone, by the caller's clock */
	double gone_seen_s;         /* when that was reported first, by the caller's clock */
	enum wlb_verdict_activity activity;
	enum wlb_verdict_process process;
	int64_t step;
	double steps_job_s[2]; /* when the last two reports of steps arrived that came at different times */
	int64_t first_step;    /* that was reported; -1: none */
	double work;           /* of the step under way; 0: unknown */
	double usual_work;     /* 0: unknown */
	int32_t group;         /* of the call that it is blocked in; -1: none */
	uint64_t sequence;
	double received_bytes;
};

/* How far a rank has come in the calls of a group: one for each membership. */
struct verdict_come {
	uint64_t entered;
	uint64_t left;
};

struct verdict_job_time {
	int begun;
	double now_s; /* the caller's clock */
	double job_s;
	double silent_s;       /* since the last report of any rank, while time was counted */
	double progress_job_s; /* of any rank, the last */
	double running_job_s;  /* of any rank whose process was reported as not stopped, the last */
	int32_t seen;          /* ranks that have reported */
	int32_t stopped;       /* of them: stopped by a signal */
	int32_t traced;        /* by a debugger */
	double traced_s;       /* when one of these was reported last, by the caller's clock */
	int32_t over;          /* ended or gone */
};

/* Who waits for whom at the moment; see wait_for.h. */
struct verdict_waits {
	uint64_t *wanted;       /* [groups] the latest call that a member is blocked in; 0: none */
	int32_t *waiter;        /* [groups] the member that has waited for it longest; -1: none */
	int32_t *behind;        /* [groups] members that have not entered it */
	uint64_t *oldest;       /* [groups] the earliest call that a member is blocked in; 0: none */
	int32_t *oldest_waiter; /* [groups] the member that has waited for it longest; -1: none */
	int32_t *oldest_behind; /* [groups] members that have not entered it */
	uint64_t *complete;     /* [groups] the oldest call, where all members were seen to have entered it; else 0 */
	double *complete_job_s; /* [groups] since when, in the job's time */
	int32_t *for_call; /* [ranks] of the groups whose calls lack this rank, the one that has waited longest; -1:
	                      none */
};

/* A step that is being collected. */
struct verdict_slot {
	int64_t step;             /* -1: none */
	int32_t reported;         /* ranks */
	unsigned char *has;       /* [ranks] */
	double *seconds;          /* [ranks] without those that are not the step's */
	double *computed_s;       /* [ranks] */
	double *work;             /* [ranks] */
	double *loader_s;         /* [ranks] */
	double *storage_s;        /* [ranks] */
	double *value[2];         /* [ranks] loss and gradient norm; NaN where there is none: see has_value */
	unsigned char *has_value; /* [ranks] bit 0: loss, bit 1: gradient norm */
	double *transfer;         /* [memberships] logarithm of seconds per byte; NaN: none */
	int has_transfers;        /* 1: one of them at least is not NaN */
};

struct verdict_steps {
	int64_t last;      /* the newest step that has ended; -1: none yet */
	int64_t count;     /* steps that were judged or belonged to the warm-up */
	int32_t elsewhere; /* successive reports of steps that are not collected */
	int32_t collected; /* slots in use */
	int32_t filled;    /* the slot of the last report */
	struct verdict_slot slot[VERDICT_SLOTS];
};

/* How long a rank waited for its loader in a step. */
struct verdict_wait {
	int32_t rank; /* -1: no further rank waited */
	float seconds;
};

/* The length of a step, and that over what the computation of its ranks explains. */
struct verdict_past {
	int64_t step;
	double ended_s; /* the caller's clock */
	double seconds;
	double ratio;                            /* logarithm */
	int disturbed;                           /* a verdict of something slow was open */
	struct verdict_wait wait[VERDICT_WAITS]; /* the longest first */
};

struct verdict_history {
	struct verdict_past past[VERDICT_HISTORY];
	int64_t count; /* of all that were ever added */
};

/* By set of peers, the share of the time of computation that does not grow with the work; see fixed_time.h. */
struct verdict_fixed_time {
	double *share;   /* [sets] */
	double *product; /* [sets] sum over ranks and steps of what work a rank lacks times the time it took longer */
	double *square;  /* [sets] sum of the square of the former */
	double *scratch; /* [ranks] */
};

/* What ranks computed in the last steps; see cost.h. */
struct verdict_cost {
	float *computed_s;                  /* [VERDICT_COST_STEPS][ranks] 0: unknown */
	double *replica_s;                  /* [VERDICT_COST_STEPS][replicas] how long each is by the model */
	int modelled[VERDICT_COST_STEPS];   /* 1: replica_s of the step is known */
	int64_t step[VERDICT_COST_STEPS];   /* which steps these are */
	double seconds[VERDICT_COST_STEPS]; /* their length */
	int64_t *slow_since;                /* [replicas] the first step in which a rank of it is slow */
	int64_t count;                      /* of all that were ever added */
	int64_t told;                       /* the count for which `percent` is */
	double percent;
};

/* The values of one kind that ranks report, loss or gradient norm. */
struct verdict_values {
	double scale;      /* of the differences between peers, in the mean of the last steps; 0: unknown */
	int32_t *off;      /* [ranks] successive steps in which it was far off */
	int32_t *fine;     /* [ranks] successive steps in which it was not, after it was bad */
	int64_t *bad_step; /* [ranks] the first step in which it was bad; -1: it is not */
	double *bad_value; /* [ranks] */
	double *peers;     /* [ranks] the median of its peers then */
	int32_t bad_count;
};

enum verdict_nic_state { VERDICT_NIC_FINE, VERDICT_NIC_CANDIDATE, VERDICT_NIC_SLOW };

/* The NIC of a node; see nics.c. */
struct verdict_nic {
	enum verdict_nic_state state;
	int32_t carried;     /* streams of messages that go through it */
	int32_t slow;        /* of them */
	int32_t unexplained; /* of the slow ones: by another NIC */
};

/* The matrix of delays by stream; see delays.h. */
struct verdict_delays {
	double *longer;  /* [memberships] logarithm, against others of its kind, mean of the last steps */
	int32_t *steps;  /* [memberships] that it is the mean of */
	double *usual;   /* [sets of the test of links] logarithm of seconds for a byte, mean of the last steps */
	double *scratch; /* [memberships] */
};

struct verdict_clock {
	double ahead_s; /* NaN: unknown */
	double late_s;  /* mean of the last samples; NaN: unknown */
};

struct verdict_found {
	struct wlb_verdict verdict[VERDICT_OPEN_MAX];
	int32_t count;
};

struct verdict_long_call {
	double seconds;     /* of a call that was suspected until it ended, once; 0 if none */
	double ended_job_s; /* the last call of that length or of those at the same time */
};

struct wlb_verdict_detector {
	struct wlb_verdict_options options;
	struct verdict_world world;
	struct verdict_job_time time;
	struct verdict_rank *rank;
	struct verdict_come *come;
	double longest_s[VERDICT_ACTIVITIES]; /* healthy, of the job's time */
	double longest_transfer_s;            /* of a call */
	struct verdict_long_call long_call;
	double longest_silence_s; /* between two reports of a rank */
	int standstill;           /* a verdict that nothing moves is confirmed */
	double standstill_job_s;  /* when such a verdict was open last */
	struct verdict_waits waits;
	struct verdict_steps steps;
	struct verdict_history history;
	struct verdict_fixed_time fixed_time;
	struct verdict_shift compute; /* by rank */
	struct verdict_shift link;    /* by membership */
	struct verdict_shift loader;  /* by rank */
	struct verdict_nic *nic;      /* [nodes] */
	struct verdict_delays delays;
	double *storage_share; /* [ranks] of the loader's waits that was for the file system */
	struct verdict_step_model model;
	struct verdict_cost cost;
	struct verdict_values values[2];
	struct wlb_verdict_corruption *corruption; /* [ranks] suspects 0: none was found */
	struct verdict_clock *clock;
	double *scratch;            /* [ranks] */
	double *scratch_more;       /* [ranks] */
	struct verdict_found found; /* by this judgement */
	struct verdict_found open;
	uint64_t last_id;
};

#endif
