/*
 * libwlb_verdict: names the faulty ranks, links and nodes of a training run from the timings of its collectives.
 *
 * Pure C: no dependency but the C library, no input or output, no thread, no global state; it can be used without
 * libwlb and with any trainer. Whoever watches a run (a coordinator, or one rank) makes a detector from the run's
 * ranks, nodes and communicators (its world), hands it what each rank reports, and asks it about each second for its
 * verdicts. Equal input gives equal verdicts.
 *
 * Units: seconds are `_s`; work has any unit, since only ratios count; shares are parts of 1; costs are percent.
 * Time is the caller's clock (`arrived_s`, `now_s`), best a monotonic one. Clocks of ranks are used for lengths of time
 * only, or aligned by samples of collectives, so that they need not agree.
 *
 * Memory is proportional to the ranks and the members of groups. A detector serves one thread at a time.
 */
#ifndef WLB_VERDICT_H
#define WLB_VERDICT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is compiled with hidden visibility; only the declarations below are exported. */
#pragma GCC visibility push(default)

/* One message: the value that was wrong and the rule that it broke. Functions that take one allow NULL. */
struct wlb_verdict_error {
	char message[256];
};

/* ---- the world ------------------------------------------------------------------------- */

enum wlb_verdict_group_kind {
	WLB_VERDICT_TP,
	WLB_VERDICT_CP,
	WLB_VERDICT_PP, /* an edge of a pipeline: exactly two members, the sender and then the receiver */
	WLB_VERDICT_DP,
	WLB_VERDICT_WORLD,
	WLB_VERDICT_OTHER,
};

/* The members of a communicator. Its calls are numbered from 1 in the order in which its members make them. */
struct wlb_verdict_group {
	enum wlb_verdict_group_kind kind;
	const char *name;       /* for evidence, at most 23 bytes are kept; NULL: its kind and number */
	const int32_t *members; /* [count] ranks, each once */
	int32_t count;          /* at least 2 */
	/* 1: the messages of a call have one time, common to all members, since members cannot time their own: the
	 * shortest time that a member reports is used. Must be 0 for an edge of a pipeline. */
	int32_t has_one_transfer;
	/* The class of groups with which this group is compared, 1 to group_count. All groups of a class have the same
	 * number here, and their messages take equally long per byte where nothing is slow. 0: it is compared with all
	 * groups of the same kind that have 0 here. */
	int32_t alike;
};

struct wlb_verdict_world {
	int32_t ranks;          /* 1 to 2^20 */
	int32_t nodes;          /* 1 to ranks */
	const int32_t *node_of; /* [ranks] from 0 */
	/* [nodes] for evidence, of which at most 63 bytes are kept; NULL: their numbers */
	const char *const *node_names;
	/* [ranks] the set of peers of each rank, from 0: ranks of one set run the same layers, so that their seconds
	 * per predicted work are equal in the mean. NULL: all ranks are peers. A set of one or two ranks is compared
	 * with its own first steps: a rank that is slow from the first step on is then not seen. */
	const int32_t *peers_of;
	const struct wlb_verdict_group *groups;
	int32_t group_count;
	int32_t micro_batches; /* of a step in a pipeline, for what slow stages cost; 0: unknown */
};

/* A tp x cp x pp x dp layout whose ranks are numbered tp fastest, then cp, pp and dp, and fill node after node. */
struct wlb_verdict_layout {
	int32_t tp;
	int32_t cp;
	int32_t pp;
	int32_t dp;
	int32_t ranks_per_node;
};

/* Returns the world of a layout: its tp, cp and dp groups of two ranks and more, an edge in each direction between
 * neighbours of a pipeline, and the group of all ranks; peers are the ranks of a stage. wlb_verdict_world_free frees
 * it. Returns NULL with a message where a degree is below 1, there are more than 2^20 ranks, or if out of memory. */
struct wlb_verdict_world *wlb_verdict_world_of_layout(const struct wlb_verdict_layout *layout,
                                                      struct wlb_verdict_error *error);
void wlb_verdict_world_free(struct wlb_verdict_world *world);

/* ---- the detector ---------------------------------------------------------------------- */

/* Defaults are in brackets. For a process that a signal has stopped while others run, the limits are 0.6 x suspect_s
 * and 0.625 x confirm_s. */
struct wlb_verdict_options {
	/* A wait is suspected after this or times_longest x the longest healthy wait, whichever is longer [5], */
	double suspect_s;
	double confirm_s;      /* and confirmed after this, in the same way [8] */
	double times_longest;  /* at least 1 [3] */
	double patience_s;     /* the least bound for both during start-up and first steps, and during checkpoints and
	                        * evaluation outside calls that all members have entered [1,800] */
	int32_t warm_up_steps; /* first steps of a run, which are not judged: they compile and touch memory first [3] */
	double slow_share;     /* a rank is slow if it takes this share longer than its peers; 0.01 to 10 [0.1] */
	double slow_link;      /* a link is slow if its messages take this share longer per byte; 0.02 to 10 [0.3] */
	double false_alarms;   /* false alarms accepted in run_steps steps, over all ranks [0.01] */
	double run_steps;      /* [10,000] */
	/* How long the steps were that the run had ended before this detector was made: a healthy wait is no longer,
	 * and the warm-up is over. 0: it had ended none, or that is not known [0]. */
	double known_step_s;
};

void wlb_verdict_options_init(struct wlb_verdict_options *options);

/* Makes a detector; `world` is copied and may be freed, and so may `options` (NULL: the defaults). wlb_verdict_free
 * frees the detector. Returns NULL with a message where the world or an option breaks a rule above, or if out of
 * memory.
 */
struct wlb_verdict_detector;
struct wlb_verdict_detector *wlb_verdict_new(const struct wlb_verdict_world *world,
                                             const struct wlb_verdict_options *options,
                                             struct wlb_verdict_error *error);
void wlb_verdict_free(struct wlb_verdict_detector *detector);

/* ---- what ranks report ----------------------------------------------------------------- */

enum wlb_verdict_activity {
	WLB_VERDICT_STARTING,
	WLB_VERDICT_COMPUTING,
	WLB_VERDICT_LOADING, /* waits for its loader */
	WLB_VERDICT_CALLING, /* is blocked in a collective, a send or a receive */
	WLB_VERDICT_CHECKPOINT,
	WLB_VERDICT_EVALUATION,
	WLB_VERDICT_ENDED, /* has ended as it should */
};

/* What the operating system says of the process: on Linux the state in /proc/PID/stat. */
enum wlb_verdict_process {
	WLB_VERDICT_UNKNOWN,
	WLB_VERDICT_RUNNING,
	WLB_VERDICT_STOPPED, /* T: by a signal */
	WLB_VERDICT_TRACED,  /* t: by a debugger */
	WLB_VERDICT_GONE,
};

/* How far a rank has come in the calls of one of its groups. */
struct wlb_verdict_call {
	int32_t group;
	uint64_t entered; /* the last call that it has entered; 0: none */
	uint64_t left;    /* the last call that it has left */
};

/* The state of a rank, about each second and after each change that its reporter notices. It may be reported of some
 * ranks of each node alone, or of the ranks of some nodes. Where most nodes report, a node none of whose ranks ever
 * does is lost once the other nodes stand still from the start and have ended no step since. */
struct wlb_verdict_state {
	int32_t rank;
	uint64_t report;  /* rises with each report of this rank; late and repeated reports are thus known */
	double arrived_s; /* the caller's clock */
	enum wlb_verdict_activity activity;
	/* How long the rank has been in it, or has been gone, by a monotonic clock of its node. 0: unknown. Where it is
	 * clearly less than the time since the last report, the rank has begun something in between. */
	double activity_s;
	enum wlb_verdict_process process;
	int64_t step;          /* under way; -1: none yet */
	double work;           /* predicted for the step under way, as in wlb_verdict_step; 0: unknown */
	int32_t group;         /* of the call that it is blocked in; -1: none */
	uint64_t sequence;     /* of that call; the rank counts as having entered it, whatever `calls` has */
	double received_bytes; /* of that call until now; negative: unknown */
	const struct wlb_verdict_call *calls; /* [call_count] of a group that it leaves out nothing is changed */
	int32_t call_count;
};

/* What a rank spent on the calls of one group in a step. */
struct wlb_verdict_transfer {
	int32_t group;
	int64_t calls;
	double transfer_s; /* in which the rank's own messages of these calls were under way, after the last member
	                      arrived; of an edge of a pipeline: the receiver's time; of a group that has_one_transfer:
	                      the time of all members */
	double bytes;      /* that moved in them */
};

/* A step that a rank has ended. A value that is unknown is negative. Ranks report their steps in order. They may omit
 * steps, if all ranks omit the same ones, and may report several at once: up to 8 before the other ranks report the
 * first of these. */
struct wlb_verdict_step {
	int32_t rank;
	int64_t step;
	double seconds; /* from the end of the step before to the end of this one */
	double aside_s; /* of them the time outside steps: checkpoints, evaluation and other work that is not the step's
	                 */
	double computed_s; /* of them computing: neither blocked in calls nor waiting for the loader */
	double work;       /* predicted for this rank and step; without a prediction give 1, since a step whose work
	                    * is unknown is not compared */
	double loader_s;   /* of them waiting for the loader */
	double storage_s;  /* of loader_s, while the loader itself waited for the file system */
	int has_loss;
	double loss;
	int has_gradient_norm;
	double gradient_norm; /* of this rank's own gradients, before they are reduced */
	const struct wlb_verdict_transfer *transfers;
	int32_t transfer_count;
};

/* One call of a group, as every member saw it by its own clock; of collectives, edges of pipelines are not used. */
struct wlb_verdict_sample {
	int32_t group;
	uint64_t sequence;
	double bytes;
	const double *entered_s; /* [members of the group], in their order; NaN: not reported */
	const double *left_s;
	int32_t count;
};

/* What a check for silent corruption has found, in which ranks compute the same and compare it bit for bit: that a rank
 * may have computed wrongly. Each rank that is suspected has a report of its own; it may be repeated. */
struct wlb_verdict_corruption {
	int32_t rank;
	int64_t step;     /* of the check */
	int32_t suspects; /* suspected ranks, of which one is at fault, with this rank; at least 1 */
	int32_t first;    /* the first of them */
	int32_t other;    /* a rank that computed other bits; the rank itself: it did so the second time */
};

/* Each takes one report. Returns 0 where the report was used, was late or was repeated; -1 with a message where it
 * makes no sense (no such rank or group, a length of time that is not a number): such a report changes nothing. */
int wlb_verdict_take_state(struct wlb_verdict_detector *detector, const struct wlb_verdict_state *state,
                           struct wlb_verdict_error *error);
int wlb_verdict_take_step(struct wlb_verdict_detector *detector, const struct wlb_verdict_step *step,
                          struct wlb_verdict_error *error);
int wlb_verdict_take_sample(struct wlb_verdict_detector *detector, const struct wlb_verdict_sample *sample,
                            struct wlb_verdict_error *error);

int wlb_verdict_take_corruption(struct wlb_verdict_detector *detector, const struct wlb_verdict_corruption *corruption,
                                struct wlb_verdict_error *error);

/* How much the clock of a rank is ahead of the mean of all, and how much later than the other members of its groups it
 * enters calls, in seconds and from samples of collectives, which members leave at nearly the same time. NaN where no
 * sample had the rank. */
double wlb_verdict_clock_ahead_s(const struct wlb_verdict_detector *detector, int32_t rank);
double wlb_verdict_lateness_s(const struct wlb_verdict_detector *detector, int32_t rank);

/* ---- the matrix of delays ------------------------------------------------------------- */

/* A cell of the matrix of delays: how long the messages from a source to a destination take in the last 16 steps
 * against others of their kind (the kind of their group, and whether it is on one node or on several). A stream of
 * messages is an edge of a pipeline, or of a collective each rank's own messages, or the messages of all ranks where
 * the group has_one_transfer. A stream of a collective has the rank, and its node, as source and as destination. */
struct wlb_verdict_delay {
	int32_t streams;       /* from the source to the destination that were measured, at least 1 */
	double measured_s;     /* for a gigabyte (10^9 bytes), median of the streams */
	double expected_s;     /* for a gigabyte, of others of their kind */
	double longer_percent; /* measured over expected */
	double row_percent;    /* the same of all that the source sends between nodes, their median; NaN: nothing */
	double column_percent; /* of all that the destination receives between nodes */
	char evidence[256];
};

/* Each sets `delay` to the cell of a pair of nodes or ranks. Returns -1 with a message where there is no such node or
 * rank, or no message between them was measured; `delay` is then unchanged. */
int wlb_verdict_delay_of_nodes(const struct wlb_verdict_detector *detector, int32_t source, int32_t destination,
                               struct wlb_verdict_delay *delay, struct wlb_verdict_error *error);
int wlb_verdict_delay_of_ranks(const struct wlb_verdict_detector *detector, int32_t source, int32_t destination,
                               struct wlb_verdict_delay *delay, struct wlb_verdict_error *error);

/* ---- verdicts -------------------------------------------------------------------------- */

enum wlb_verdict_kind {
	WLB_VERDICT_CRASH,              /* a rank is gone, or a node reports no more */
	WLB_VERDICT_HANG,               /* a rank outside communication, for which the others wait, makes no progress */
	WLB_VERDICT_HANG_COMMUNICATION, /* all members have entered a call, and none or not all leave */
	WLB_VERDICT_DEADLOCK,           /* ranks wait for each other in calls of different groups */
	WLB_VERDICT_SLOW_COMPUTE,       /* a rank computes longer than its predicted work explains */
	WLB_VERDICT_SLOW_NODE,          /* nearly all ranks of a node do */
	WLB_VERDICT_SLOW_LINK,          /* messages of a rank or between a pair of ranks take longer than others */
	WLB_VERDICT_SLOW_NIC,           /* nearly all messages from and to a node do */
	WLB_VERDICT_SLOW_LOADER,        /* ranks wait for their loader, which does not wait for the file system */
	WLB_VERDICT_SLOW_STORAGE,       /* ranks wait for their loader, which waits for the file system */
	WLB_VERDICT_BAD_VALUES,         /* the loss or gradient of a rank is not finite or far off its peers', or it
	                                 * computed other bits than they did */
	WLB_VERDICT_OUTLIERS,           /* stacks of ranks differ from those of most (wlb_verdict_of_clusters) */
};

/* Lower-case words, such as "slow compute". */
const char *wlb_verdict_kind_name(enum wlb_verdict_kind kind);

/* How far a verdict has come (called state in the API). */
enum wlb_verdict_stage {
	WLB_VERDICT_SUSPECTED,
	WLB_VERDICT_CONFIRMED,
	WLB_VERDICT_OVER, /* what was wrong has ended; reported once */
};

enum { WLB_VERDICT_RANKS = 16 };

struct wlb_verdict {
	uint64_t id; /* the same while the verdict lasts */
	enum wlb_verdict_kind kind;
	enum wlb_verdict_stage stage;
	int32_t node;                     /* -1: no node is named */
	int32_t ranks[WLB_VERDICT_RANKS]; /* the first of them; of a pair: source, destination */
	int32_t rank_count;               /* in all */
	int32_t group;                    /* -1: none */
	uint64_t sequence;                /* of the call, 0: none */
	double since_s;                   /* the caller's clock: when it began, as far as reports show */
	int64_t since_step;               /* -1: not in terms of steps */
	/* What the run loses by it: 100 where it hangs; of what slows steps, by how much they are longer than
	 * without it, together with all other verdicts of this sort of fault that are open; negative: not known. */
	double cost_percent;
	double certainty; /* 0 to 1 */
	char evidence[512];
};

/* Judges at `now_s`. Writes up to `most` verdicts: hangs first, then other open verdicts, then verdicts that have just
 * ended, and returns the number of all. The end of a verdict is reported later where there is no space for it now. Call
 * it about each second. */
int32_t wlb_verdict_judge(struct wlb_verdict_detector *detector, double now_s, struct wlb_verdict *verdicts,
                          int32_t most);

/* ---- stacks of a run that hangs -------------------------------------------------------- */

/* The stack of the thread of a rank that trains. Frames are texts such as "PMPI_Allreduce+0x1c (libmpi.so.40)", of
 * which numbers do not count, or "0x1f2 (libm.so.6)" where a function has no name. */
struct wlb_verdict_stack {
	int32_t rank;
	const char *const *frames; /* [frame_count] the innermost first */
	int32_t frame_count;
};

/* Ranks whose stacks are alike. */
struct wlb_verdict_cluster {
	const int32_t *ranks; /* [count] ascending */
	int32_t count;
	int32_t stack;     /* of the cluster's first rank: an index into the stacks that were given */
	int32_t innermost; /* of that stack: all ranks of the cluster have the frames from this one on */
	int is_suspect;
};

struct wlb_verdict_clusters {
	struct wlb_verdict_cluster *list; /* [count] the largest first */
	int32_t count;
	int32_t group; /* an index into the groups given; -1: none is named */
};

/* Clusters the stacks of ranks, as in Wan et al., "ByteRobust", SOSP 2025: where ranks wait for each other, most stand
 * at the same place, and a rank elsewhere is likely to be the one for which they wait.
 *
 * Stacks are alike where they have the same functions from the outermost frame to the first that is inside a
 * communication library (MPI, NCCL, UCX, ...) or a library of the device; where the innermost frames are all in the C
 * library, as the frames of a system call are, the outermost of these counts. Where one cluster has more than half of
 * the ranks, the clusters with the fewest ranks are suspect; otherwise none is. Then `group` is the smallest of
 * `groups` that holds all ranks outside the largest cluster, where these are at least two and the group has not all
 * ranks. Groups may be any sets, such as the ranks of a stage or of a node; they may be NULL.
 *
 * wlb_verdict_clusters_free frees the clusters, which outlive the stacks. Returns NULL with a message where a rank is
 * negative or listed twice, or if out of memory. */
struct wlb_verdict_clusters *wlb_verdict_clusters_new(const struct wlb_verdict_stack *stacks, int32_t count,
                                                      const struct wlb_verdict_group *groups, int32_t group_count,
                                                      struct wlb_verdict_error *error);
void wlb_verdict_clusters_free(struct wlb_verdict_clusters *clusters);

/* Makes a verdict of clusters, to be reported where nothing moves and the detector names nobody: a confirmed one of the
 * suspects, or, where `group` is named, of all ranks outside the largest cluster. Its node and times are not set, its
 * certainty is 0.5, and its group is an index into `groups`. `stacks` and `groups` are those that were given to
 * wlb_verdict_clusters_new, the groups with names. Returns 0, and leaves the verdict as it is, where none is suspect;
 * else 1. */
int wlb_verdict_of_clusters(const struct wlb_verdict_clusters *clusters, const struct wlb_verdict_stack *stacks,
                            const struct wlb_verdict_group *groups, struct wlb_verdict *verdict);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
