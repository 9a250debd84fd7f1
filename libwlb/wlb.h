/*
 * libwlb: layout, packing, sharding, cost model and simulator of WLB.
 *
 * Pure C: no dependency, no input or output, no global state. Every function is
 * re-entrant; memory that a function allocates says who frees it.
 */
#ifndef WLB_H
#define WLB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is compiled with everything hidden but this. */
#pragma GCC visibility push(default)

/* ---- errors ---------------------------------------------------------------------------- */

/* One message for a person: the value that was wrong, the rule it broke, what to do. */
struct wlb_error {
	char message[1024];
};

/* Formats the message; always returns -1, so that a check reads `return wlb_fail(e, ...)`.
 * `error` may be NULL: then only the -1 is given. */
int wlb_fail(struct wlb_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the message already there; returns -1. */
int wlb_fail_in(struct wlb_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- model ----------------------------------------------------------------------------- */

/* The shape of a Llama-family transformer; field names are those of Hugging Face's config.json. */
struct wlb_model {
	int64_t hidden_size;
	int64_t intermediate_size;
	int64_t num_hidden_layers;
	int64_t num_attention_heads;
	int64_t num_key_value_heads;
	int64_t head_dim;
	int64_t vocab_size;
	int64_t max_position_embeddings;
	double rope_theta;
	double rms_norm_eps;
	int tie_word_embeddings;
};

/* 0 when the shape can be built, -1 with the field, its value and the rule otherwise. */
int wlb_model_check(const struct wlb_model *model, struct wlb_error *error);

/* Number of trained parameters; tied embeddings are counted once. */
int64_t wlb_model_parameters(const struct wlb_model *model);

/* ---- layout ---------------------------------------------------------------------------- */

/* How many ways the work is split: tensor, context, pipeline, data. All >= 1. */
struct wlb_layout {
	int tp;
	int cp;
	int pp;
	int dp;
};

/* What a user may ask for with --wlb-layout. */
enum wlb_policy_kind {
	WLB_POLICY_OFF,   /* "off": WLB leaves the job alone */
	WLB_POLICY_AUTO,  /* "auto": the coordinator chooses */
	WLB_POLICY_FIXED, /* "tp=2,cp=1,pp=2[,dp=4]": dp 0 means "whatever the ranks allow" */
};

struct wlb_policy {
	enum wlb_policy_kind kind;
	struct wlb_layout fixed; /* for WLB_POLICY_FIXED only */
};

/* Parses the value of --wlb-layout. Keys may come in any order, tp, cp and pp default to 1,
 * dp to 0. On -1 the message holds the value, the rule and an example. */
int wlb_policy_parse(const char *text, struct wlb_policy *policy, struct wlb_error *error);

/* Writes the policy as wlb_policy_parse reads it; returns what snprintf returns. */
int wlb_policy_format(const struct wlb_policy *policy, char *buffer, size_t size);

/* Writes "tp=1,cp=1,pp=1,dp=8"; returns what snprintf returns. */
int wlb_layout_format(const struct wlb_layout *layout, char *buffer, size_t size);

/* Ranks the layout needs: tp * cp * pp * dp. */
int wlb_layout_ranks(const struct wlb_layout *layout);

/* Where one rank stands in the layout. */
struct wlb_coordinates {
	int tp;
	int cp;
	int pp;
	int dp;
};

/* Order of places in a layout: tp varies fastest, then cp, then pp, then dp, so that tensor-parallel ranks are
 * neighbours (one node) and data-parallel replicas are farthest apart. wlb_nodes_place gives the place of a rank. */
struct wlb_coordinates wlb_layout_coordinates(const struct wlb_layout *layout, int place);
int wlb_layout_place(const struct wlb_layout *layout, const struct wlb_coordinates *at);

/* The nodes that ranks run on, in the launcher's order (Slurm's SLURM_NODEID), and how many ranks each has. */
struct wlb_nodes {
	int count;
	int ranks_per_node;  /* on every node, where ranks_on is NULL */
	const int *ranks_on; /* [count] ranks on each node, each >= 1; NULL: ranks_per_node on each */
	char *const *names;  /* [count] for messages; NULL: they say "node 1" */
};

/* Ranks on node 0 to count - 1, and on all of them. */
int wlb_nodes_ranks_on(const struct wlb_nodes *nodes, int node);
int64_t wlb_nodes_ranks(const struct wlb_nodes *nodes);

/* The place in the layout of rank `local_rank` (from 0, in rank order) of `node`: ranks take their places node by node,
 * whatever order the launcher numbered them in, so that srun --distribution=cyclic does not put the ranks of a
 * tensor-parallel group on different nodes. -1 when there is no such node or rank. */
int64_t wlb_nodes_place(const struct wlb_nodes *nodes, int node, int local_rank);

/* 0 when the layout can run, -1 with the value, the rule and the remedy: every way is at least 1, their product is the
 * number of ranks, tp divides num_attention_heads and the ranks of each node, one of tp and num_key_value_heads divides
 * the other, pp does not exceed num_hidden_layers. Rules about nodes or model are left out where that is NULL. */
int wlb_layout_check(const struct wlb_layout *layout, const struct wlb_nodes *nodes, const struct wlb_model *model,
                     struct wlb_error *error);

/* Resolves a policy for the ranks on `nodes`: AUTO and OFF give data parallel only (in this version), FIXED what it
 * says, dp filled in where it is 0. 0 when *layout passes wlb_layout_check, -1 with its message otherwise; `model` may
 * be NULL, for unknown. */
int wlb_layout_choose(const struct wlb_policy *policy, const struct wlb_nodes *nodes, const struct wlb_model *model,
                      struct wlb_layout *layout, struct wlb_error *error);

/* ---- cost ------------------------------------------------------------------------------ */

/* Floating-point operations of one forward pass over a document of `tokens` tokens that attends
 * to itself causally: linear part (per token) + attention part (tokens^2), all layers. */
double wlb_cost_document(const struct wlb_model *model, int64_t tokens);

/* ---- packing a stream ------------------------------------------------------------------ */

/* The tokens [start, start + tokens) of a document; `document` is the caller's own number. */
struct wlb_span {
	int64_t document;
	int64_t start;
	int64_t tokens;
};

/* How the documents of a global batch become micro-batches. */
enum wlb_strategy {
	WLB_STRATEGY_BALANCED, /* equal work by exchange and priced delay; the default */
	WLB_STRATEGY_GREEDY,   /* WLB-LLM (Wang et al., OSDI 2025): queues above 1/4 and 1/2 of the window */
	WLB_STRATEGY_FIXED,    /* equal lengths, work assigned greedily; cuts documents, delays none */
	WLB_STRATEGY_PLAIN,    /* concatenate and cut */
};

/* "balanced", "greedy", "fixed", "plain"; parse gives -1 with the value and the choices otherwise. */
const char *wlb_strategy_name(enum wlb_strategy strategy);
int wlb_strategy_parse(const char *text, enum wlb_strategy *strategy, struct wlb_error *error);

/* Everything that decides which documents enter step k, beside the stream itself. All of it belongs to
 * the global batch and the model. None of it may be derived from tp, cp, pp or dp, else a run that goes
 * on under another layout would see other documents in the same step. A layout that needs another number
 * of micro-batches assigns the documents of the step anew with wlb_pack_balanced() or a balancer. */
struct wlb_packer_options {
	enum wlb_strategy strategy;
	int64_t seq_length;        /* the window, tokens: longer documents are cut at its multiples; 1 to 2^30 */
	int32_t micro_batches;     /* N of a global batch, which is at most N * seq_length tokens; 1 to 2^20 */
	double max_length_ratio;   /* a micro-batch holds this times seq_length (balanced, greedy); 1 to 64 */
	int32_t max_delay_steps;   /* balanced: no document waits for more steps than this; 0 to 2^20 */
	double target_delay_steps; /* balanced: the mean wait of a token the price of waiting is steered to */
	/* Predicted work of one document of `tokens` tokens, in any unit: finite, positive, rising with
	 * tokens. For measured kernel times; NULL takes wlb_cost_document of the model. */
	double (*work)(const void *context, int64_t tokens);
	const void *work_context; /* the caller's; must outlive the packer */
};

/* balanced, ratio 1.25, at most 32 steps of delay, 0.45 steps aimed at, work from the model. */
void wlb_packer_options_init(struct wlb_packer_options *options, int64_t seq_length, int32_t micro_batches);

/* One span of a document in a step. Attention stays inside it. */
struct wlb_packed_span {
	struct wlb_span span;
	int32_t micro_batch;  /* 0 to N - 1 */
	int32_t waited_steps; /* 0: packed in the step it came with */
};

/* What a micro-batch holds. */
struct wlb_load {
	double work; /* in the unit of wlb_packer_options.work */
	int64_t tokens;
};

struct wlb_step {
	int64_t index;                       /* 0 for the first step of the stream */
	const struct wlb_packed_span *spans; /* `count`, by micro-batch, in the order they came within one */
	size_t count;
	const struct wlb_load *loads; /* one for each micro-batch; an empty one has no work */
	int32_t micro_batches;
	int64_t tokens;      /* in this step; at most N * max_length_ratio * seq_length */
	int64_t held_tokens; /* that came and wait for a later step */
	int64_t cuts;        /* documents of at most seq_length tokens that were cut in this step */
};

/* Work of the heaviest micro-batch x N / work of all; 1 is perfect, and what a step without work has. */
double wlb_step_imbalance(const struct wlb_step *step);

/* Packs a stream of global batches, one step for each. Not to be shared between threads without a lock;
 * any number can be used side by side. `model` is copied and may be NULL where options->work is given. */
struct wlb_packer;
struct wlb_packer *wlb_packer_new(const struct wlb_model *model, const struct wlb_packer_options *options,
                                  struct wlb_error *error);
void wlb_packer_free(struct wlb_packer *packer);

/* Takes the next global batch, at most N * seq_length tokens, and gives the step it makes; owned by the
 * packer, valid until the next call. NULL with a message on error, the packer being as it was before.
 *
 * Every token leaves in exactly one step. A span without tokens leaves nothing to train and gives no span.
 * balanced: a token leaves at most max_delay_steps after it came, so that at most max_delay_steps * N * seq_length
 * tokens are held. Spans that are due are placed first; where one fits nowhere whole it is cut, which `cuts` counts
 * and no stream of the tested kinds needs. (The bound holds always: those due came with one batch, at most
 * N * seq_length tokens, and cut they fit.) A step aims at no less than a quarter of the tokens that came with it,
 * and is never empty while tokens are held.
 * greedy has no such bound. fixed and plain hold nothing.
 * A batch without tokens ends the data: it brings out all that is held and fits; repeat it until nothing is. */
const struct wlb_step *wlb_packer_next(struct wlb_packer *packer, const struct wlb_span *batch, size_t count,
                                       struct wlb_error *error);

/* Where the packer stands, for a checkpoint: writes wlb_packer_state_bytes() bytes, the same on every machine.
 * Restoring into a packer of equal options and model gives the same future exactly; bytes of another
 * version, other options or with a damage are refused, the packer being as it was before. */
size_t wlb_packer_state_bytes(const struct wlb_packer *packer);
void wlb_packer_save(const struct wlb_packer *packer, void *state);
int wlb_packer_restore(struct wlb_packer *packer, const void *state, size_t bytes, struct wlb_error *error);

/* Deals `count` spans of tokens[] tokens to `bins` micro-batches of at most `max_tokens`: longest first to the
 * lightest with space, then exchanges with the heaviest until none helps. bin_of[i] receives the bin of span
 * i. Work is wlb_cost_document. -1 where a span does not fit. */
int wlb_pack_balanced(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t bins,
                      int64_t max_tokens, int32_t *bin_of, struct wlb_error *error);

/* The same for step after step: with work as wlb_packer_options.work gives it, in memory that is kept and grows to that
 * of the largest step. work_context is the caller's and must outlive it. Not to be shared between threads without a
 * lock. Returns NULL with a message if out of memory; wlb_balancer_free frees it. */
struct wlb_balancer;
struct wlb_balancer *wlb_balancer_new(double (*work)(const void *context, int64_t tokens), const void *work_context,
                                      struct wlb_error *error);
void wlb_balancer_free(struct wlb_balancer *balancer);

/* 1 where a span does not fit, so that who has another way can tell that from an error, which is -1. After either the
 * balancer can be used again. */
int wlb_balancer_pack(struct wlb_balancer *balancer, const int64_t *tokens, size_t count, int32_t bins,
                      int64_t max_tokens, int32_t *bin_of, struct wlb_error *error);

/* ---- dynamic context parallelism --------------------------------------------------------- */

/* Where a document runs: on `ranks` neighbours from `first_rank` on, each of which does an equal part of it (as
 * per-document sharding gives). ranks is 1, 2, 4 ... or all; first_rank is a multiple of it. */
struct wlb_place {
	int32_t micro_batch;
	int32_t first_rank;
	int32_t ranks;
};

/* Spreads `count` documents of tokens[] tokens over `ranks` ranks (cp x dp) in each of `micro_batches` micro-batches,
 * equal work for every rank of every one, at most `max_tokens` on a rank: small documents stay on one rank, long
 * ones take the least power of two of ranks that keeps all equal. After ByteScale (Ge et al., 2025) and FlexSP
 * (Wang et al., ASPLOS 2025). A rank runs its documents of a micro-batch by falling `ranks`, so that no two groups
 * wait for each other. places[i] receives where document i runs, loads[micro_batch * ranks + rank] what a rank
 * then has. -1 where documents do not fit. */
int wlb_dynamic_cp(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t ranks,
                   int32_t micro_batches, int64_t max_tokens, struct wlb_place *places, struct wlb_load *loads,
                   struct wlb_error *error);

/* ---- kernel time ----------------------------------------------------------------------- */

/* Measured seconds of attention: seconds[i * k_count + j] is one layer forward, for all heads of one GPU, of
 * q_tokens[i] queries that are the last of k_tokens[j] keys (causal, aligned at the end). Best measured as one of many
 * equal segments of one launch. Lengths rise, the longest keys are no shorter than the longest queries, seconds are
 * positive; where keys are shorter than queries an entry is not read. The arrays are the caller's. q_count 0: no curve.
 */
struct wlb_attention_curve {
	const double *q_tokens;
	size_t q_count;
	const double *k_tokens;
	size_t k_count;
	const double *seconds;
};

/* Measured seconds of all matrix products of one layer forward on one GPU: seconds[i] for tokens[i] tokens, which
 * rise. The arrays are the caller's. count 0: no curve. */
struct wlb_gemm_curve {
	const double *tokens;
	const double *seconds;
	size_t count;
};

/* What the kernels of one GPU take for one layer forward. Work comes in tiles, and a tile that is filled in part takes
 * as long as a full one: so a short shard costs more than its share (WLB-LLM, Wang et al., OSDI 2025). A time is that
 * of the tiles at a speed: that of a full tile, or where a curve is given the speed measured around these lengths,
 * linear between its points on a scale of logarithms and that of the nearest point outside of them. Only basic
 * arithmetic is used, so that processors of all kinds predict the same. */
struct wlb_kernel_time {
	int32_t q_tile; /* tokens of a tile of queries, of keys, of a matrix product: 1 to 65,536 */
	int32_t k_tile;
	int32_t gemm_tile;
	double attention_pair_s; /* a query against a key; not read where a curve is given */
	double segment_s;        /* of each segment beside its tiles: 0 or more */
	double gemm_token_s;     /* one token through all matrix products; not read where a curve is given */
	struct wlb_attention_curve attention;
	struct wlb_gemm_curve gemm;
};

/* Tiles of 128, no curves, speeds from the model's shape, split `tp` ways, and what the GPU reaches in each kind. */
void wlb_kernel_time_init(struct wlb_kernel_time *time, const struct wlb_model *model, int32_t tp,
                          double attention_flops_per_s, double gemm_flops_per_s);

/* 0, or -1 with the value and the rule it breaks. The functions below expect what passes. */
int wlb_kernel_time_check(const struct wlb_kernel_time *time, struct wlb_error *error);

/* Seconds of `q_tokens` queries, the last of `k_tokens` keys: 1 <= q_tokens <= k_tokens <= 2^30. */
double wlb_attention_seconds(const struct wlb_kernel_time *time, int64_t q_tokens, int64_t k_tokens);

/* Seconds of the matrix products of `tokens` tokens, 0 to 2^30. */
double wlb_gemm_seconds(const struct wlb_kernel_time *time, int64_t tokens);

/* ---- sharding -------------------------------------------------------------------------- */

/* How the tokens of a micro-batch are split over the ranks of context parallelism. */
enum wlb_sharding {
	WLB_SHARDING_SEQUENCE, /* "per-sequence": 2 x ranks chunks of all documents laid end to end, rank r takes
	                        * chunks r and 2 x ranks - 1 - r (Megatron-LM; Llama 3, Dubey et al., 2024) */
	WLB_SHARDING_DOCUMENT, /* "per-document": the same with every document (WLB-LLM), without padding */
	WLB_SHARDING_ADAPTIVE, /* "adaptive": of these two the one whose slowest rank has the shorter attention */
};

/* The names above; parse gives -1 with the value and the choices otherwise. */
const char *wlb_sharding_name(enum wlb_sharding sharding);
int wlb_sharding_parse(const char *text, enum wlb_sharding *sharding, struct wlb_error *error);

/* A span of a document on a rank: one segment of an attention kernel, once the keys and values of all ranks are
 * gathered and in document order. Query q_start + i, of the rank's rows, stands at position q_offset + i of its
 * document and sees the keys k_start to k_start + q_offset + i. k_count is q_offset + q_count, so that kernels that
 * align causal masks at the end (flash attention of variable lengths) need no more than the two lengths. */
struct wlb_shard {
	int32_t document; /* the caller's index */
	int32_t q_start;
	int32_t q_count;
	int32_t k_start;
	int32_t k_count;
	int32_t q_offset;
};

struct wlb_shard_memory;

/* A sharded micro-batch. Zero it before the first use; each use replaces what it held, in memory that is kept and grows
 * to that of the largest micro-batch, and wlb_shards_free frees it. */
struct wlb_shards {
	enum wlb_sharding sharding; /* what was done: where adaptive was asked for, its choice */
	int32_t ranks;
	int64_t tokens;
	struct wlb_shard *shards; /* of rank r: [first_shard[r], first_shard[r + 1]), rows and tokens rising */
	size_t *first_shard;
	int64_t *first_row; /* rank r has the rows [first_row[r], first_row[r + 1]) of all ranks' end to end */
	struct wlb_shard_memory *memory; /* the library's: of these arrays, and of what the next use needs */
};

/* Splits a micro-batch of `count` documents of tokens[] tokens, at most 2^30 in all, over 1 to 65,536 ranks. `time`
 * is read for adaptive only, and may be NULL otherwise. -1 with a message on error, *shards being as it was.
 *
 * Every token is on exactly one rank, and ranks differ by at most one token, per-document in every document too.
 * Per-document chunks of a document differ by at most one token; which are the longer ones is chosen for equal
 * attention, the longest document first. What is left between ranks is about the work of one token, the last of the
 * longest document; on random documents of at least 2 x ranks tokens the tests hold it to 1.1 times that. So it
 * is under 0.1% of a rank's work where that has some thousands of tokens. Where it has few, a rank with one more
 * has that token's work more, which no cut avoids. Per-sequence promises nothing of the work. */
int wlb_shard(enum wlb_sharding sharding, const struct wlb_kernel_time *time, const int64_t *tokens, size_t count,
              int32_t ranks, struct wlb_shards *shards, struct wlb_error *error);

/* The same for one micro-batch of dynamic context parallelism: the documents that places[] has in `micro_batch`, each
 * per document over its own ranks. Ranks have the tokens that the loads of wlb_dynamic_cp say. Keys are those of
 * all documents of the micro-batch, in their order. */
int wlb_shard_places(const int64_t *tokens, const struct wlb_place *places, size_t count, int32_t ranks,
                     int32_t micro_batch, struct wlb_shards *shards, struct wlb_error *error);

void wlb_shards_free(struct wlb_shards *shards); /* NULL and zeroed allowed; leaves it zeroed */

/* Cumulative lengths of a rank's shards, n of them: n + 1 entries each, from 0 on. Those of keys are for kernels that
 * want the keys of each shard copied end to end; one that takes k_start needs no copy. */
void wlb_shards_lengths(const struct wlb_shards *shards, int32_t rank, int32_t *cu_seqlens_q, int32_t *cu_seqlens_k);

/* The position of each of a rank's rows in its document, for rotary embeddings. */
void wlb_shards_positions(const struct wlb_shards *shards, int32_t rank, int32_t *positions);

/* The token, in document order, that each of a rank's rows holds: what to take from a micro-batch. */
void wlb_shards_tokens(const struct wlb_shards *shards, int32_t rank, int32_t *tokens);

/* The row, of all ranks' end to end, that holds each token: brings what is gathered back to document order. */
void wlb_shards_rows(const struct wlb_shards *shards, int32_t *rows);

/* What a rank has: pairs of a query and a key it sees; FLOPs of one forward pass as wlb_cost_document counts them;
 * seconds of its attention in one layer forward. */
int64_t wlb_shards_pairs(const struct wlb_shards *shards, int32_t rank);
double wlb_shards_work(const struct wlb_shards *shards, int32_t rank, const struct wlb_model *model);
double wlb_shards_seconds(const struct wlb_shards *shards, int32_t rank, const struct wlb_kernel_time *time);

/* ---- document lengths to test on ------------------------------------------------------- */

/* A seeded stream of document lengths as skewed as a public corpus read with a window of 131,072 tokens:
 * quantiles 10% 646, 50% 3,227, 90% 5,784, 95% 6,110, 99% 26,070, 99.9% 119,836, all 124,913, mean 3,962,
 * the logarithm of the length linear between them. The same on every machine. */
struct wlb_lengths {
	uint64_t state;
	double tail;
};

/* `tail` multiplies the share of documents above the 99% and 99.9% quantiles' lengths: 1 as measured, 2
 * heavier, 0.5 lighter; it is brought into [0, 4]. */
void wlb_lengths_init(struct wlb_lengths *lengths, uint64_t seed, double tail);
int64_t wlb_lengths_next(struct wlb_lengths *lengths);

/* ---- machine ----------------------------------------------------------------------------- */

/* Seconds to move n bytes = latency_s + n / bytes_per_s. One direction, for one GPU. */
struct wlb_link {
	double bytes_per_s;
	double latency_s;
};

/* A measured curve: value[i] at at[i] > 0, rising in at; between two points linear in log(at), flat outside. */
enum { WLB_CURVE_POINTS = 16 };
struct wlb_curve {
	int32_t points; /* 0: not measured */
	double at[WLB_CURVE_POINTS];
	double value[WLB_CURVE_POINTS];
};

/* One kind of node. The files in libwlb/machines give these fields, by these names, with the source of each. */
struct wlb_machine {
	char name[64];
	int32_t gpus_per_node;
	double peak_flops;                    /* of one GPU, dense bfloat16, FLOP/s */
	double gemm_efficiency;               /* achieved share of the peak, (0, 1] */
	double attention_efficiency;          /* the same of the fused attention kernel, forward, on long documents */
	double attention_backward_efficiency; /* the same, backward */
	struct wlb_curve gemm_curve;          /* if measured, in place of gemm_efficiency: by tokens on a rank */
	int32_t attention_tile_tokens;        /* the kernel pads a shard's queries to a multiple of it */
	double attention_overhead_keys;       /* a tile of queries takes as long as if it saw this many keys more */
	double memory_bytes;                  /* of one GPU */
	double memory_bytes_per_s;
	struct wlb_link node_link;    /* between GPUs of a node */
	struct wlb_link network_link; /* between nodes, the network ports of a node shared out to its GPUs */
	double switch_taper;          /* share of network bandwidth left where traffic leaves a leaf switch, (0, 1] */
	double switch_latency_s;      /* added there */
};

/* 0 when every field is in its range, -1 with the field, its value and the rule. */
int wlb_machine_check(const struct wlb_machine *machine, struct wlb_error *error);

/* The curve's value at `at`; `otherwise` where it has no points. */
double wlb_curve_at(const struct wlb_curve *curve, double at, double otherwise);

/* Collectives of NCCL's ring: `ranks` ranks, `ranks_per_node` of them on each node, each rank holding `bytes` of the
 * result (all-gather) or of the input (reduce-scatter): both take the same time, seconds. A ring that leaves the node
 * has the network ports of all its ranks on a node. crosses_switch: it leaves a leaf switch. An all-reduce is two. */
double wlb_machine_gather_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                            double bytes);

/* ---- topology ---------------------------------------------------------------------------- */

/* A switch of Slurm's topology/tree: what hangs below it, switches or nodes. The arrays are the caller's. */
struct wlb_switch {
	const char *name;
	const int32_t *switches; /* `switch_count` indices into wlb_topology.switches */
	size_t switch_count;
	const int32_t *nodes; /* `node_count` numbers of nodes, 0 to nodes - 1 */
	size_t node_count;
};

struct wlb_topology {
	const struct wlb_switch *switches;
	size_t count;
};

/* Orders `nodes` nodes so that those of a leaf switch, then of a switch above, are neighbours: depth first, switches
 * and nodes in the order given. order[i] is the node at place i, leaf[i] the index of its switch (-1 without one).
 * Nodes of no switch come last. NULL or an empty topology keeps the order. -1 where a node or switch is out of range
 * or under two switches, or the switches form a ring. */
int wlb_topology_order(const struct wlb_topology *topology, int32_t nodes, int32_t *order, int32_t *leaf,
                       struct wlb_error *error);

/* ---- memory ------------------------------------------------------------------------------ */

/* What of the activations is computed again in the backward pass. */
enum wlb_recompute {
	WLB_RECOMPUTE_NONE,      /* nothing: attention's scores are stored, as without a fused kernel */
	WLB_RECOMPUTE_SELECTIVE, /* core attention (Korthikanti et al. 2022), which fused kernels always do */
	WLB_RECOMPUTE_FULL,      /* whole layers, from their input */
};

/* A layout and what else decides about memory and schedule. */
struct wlb_plan {
	struct wlb_layout layout;
	int32_t interleave;    /* v: chunks of layers on each pipeline stage; 1 is plain 1F1B */
	int32_t micro_batches; /* of each data-parallel replica in a step */
	int32_t zero_stage;    /* 0 to 3 (Rajbhandari et al. 2020), over the dp x cp ranks that hold the same weights */
	enum wlb_recompute recompute;
};

/* 0 when the plan can run: its layout passes wlb_layout_check for this model, layers >= pp x interleave, interleave > 1
 * only with pp > 1 and micro_batches a multiple of pp (as Megatron-LM asks), zero_stage 0 to 3 (2 and 3 not with
 * pp > 1). */
int wlb_plan_check(const struct wlb_plan *plan, const struct wlb_model *model, struct wlb_error *error);

/* Bytes on each GPU of one pipeline stage at its fullest. Mixed precision as Megatron-LM keeps it: bfloat16 weights,
 * float32 gradients, and 12 bytes a parameter of optimizer states (master weight and two moments of Adam). */
struct wlb_memory {
	double weights;
	double gradients;
	double optimizer;
	double activations; /* of all micro-batches in flight on this stage */
	double logits;      /* last stage: bfloat16 and their float32 copy */
	double buffers;     /* of communication */
	double margin;      /* `margin` of all above: fragmentation, the runtime's own */
	double total;
};

/* Memory of stage 0 to pp - 1 where the largest micro-batch has `tokens` tokens and its longest document `longest`
 * (that counts only where nothing is recomputed). The plan must have passed wlb_plan_check. */
struct wlb_memory wlb_memory_stage(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                                   int64_t tokens, int64_t longest, double margin);

/* ---- pipeline ---------------------------------------------------------------------------- */

/* What a stage does of one micro-batch: the forward or backward pass of one chunk of its layers. */
struct wlb_pass {
	int32_t chunk; /* 0 to interleave - 1 */
	int32_t micro_batch;
	int32_t backward; /* 0 forward, 1 backward */
};

/* The order of 1F1B (Narayanan et al. 2019) and interleaved 1F1B (Narayanan et al. 2021), as Megatron-LM runs them:
 * pass `n` of a stage, 0 to 2 x interleave x micro_batches - 1. Here and below the plan has passed wlb_plan_check. */
struct wlb_pass wlb_plan_pass(const struct wlb_plan *plan, int32_t stage, int64_t n);

/* Forward passes a stage does before its first backward pass follows a forward one. It never holds the activations of
 * more than this and one pass. */
int64_t wlb_plan_warmup(const struct wlb_plan *plan, int32_t stage);

/* Layers of a chunk of a stage, and the first of them. Chunk c of stage s stands at place c x pp + s of the model; what
 * does not divide goes to the first places, the last has the head. */
int64_t wlb_plan_layers(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk);
int64_t wlb_plan_first_layer(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk);

/* ---- simulator --------------------------------------------------------------------------- */

struct wlb_sim_options {
	struct wlb_plan plan;
	enum wlb_sharding sharding;
	int dynamic;  /* dynamic context parallelism instead: documents on 1, 2, 4 ... cp ranks (wlb_dynamic_cp), none
	               * with  more than 1.25 equal shares of tokens; `sharding` where they find no such space */
	int timeline; /* the bars are wanted */
	double tp_overlap;   /* share of tensor-parallel communication hidden behind computation, 0 to 1 */
	double cp_overlap;   /* the same, context-parallel */
	int overlap_dp;      /* gradients are reduced as soon as the last backward pass has them */
	int overlap_pp;      /* a stage goes on while it sends and receives */
	const int32_t *leaf; /* switch of each node in rank order, as wlb_topology_order gives; NULL: all under one */
	const double *slowdown; /* of each rank of the layout: its computation takes this times longer, >= 1; NULL: 1 */
};

/* adaptive sharding, a timeline, nothing of tp and cp hidden, dp and pp overlapped, one switch, no stragglers. */
void wlb_sim_options_init(struct wlb_sim_options *options, const struct wlb_plan *plan);

/* Where a step's time went: the mean over all GPUs, seconds; the parts sum to step_s. */
struct wlb_sim_time {
	double step_s;
	double compute_s;   /* GEMMs, attention, what moves through memory: the mean context-parallel rank */
	double recompute_s; /* forward work done again */
	double tp_s;        /* communication not hidden */
	double cp_s;
	double pp_s;
	double dp_s;
	double optimizer_s;
	double bubble_s;       /* idle in a pipeline of equal micro-batches of the same total work */
	double cp_imbalance_s; /* waiting for the context-parallel rank with most attention */
	double imbalance_s;    /* what unequal micro-batches and stages add: idle beyond bubble_s */
	double straggler_s;    /* what slow ranks add */
};

/* One bar of the timeline. */
struct wlb_sim_event {
	int32_t replica; /* data-parallel */
	int32_t stage;
	int32_t chunk;       /* 0 to interleave - 1 */
	int32_t micro_batch; /* of the step, as in wlb_packed */
	int32_t backward;    /* 0 forward, 1 backward */
	double start_s;
	double end_s;
};

struct wlb_sim_result {
	struct wlb_sim_time time;
	double flops;       /* of the model, all GPUs: three times the forward pass, nothing recomputed */
	double utilization; /* flops / (step_s x GPUs x peak): MFU */
	double tokens_per_s;
	int64_t tokens;
	int32_t per_document;  /* micro-batches that were sharded per document */
	int32_t worst_replica; /* the data-parallel replica whose pipeline ends last */
};

/* One simulator for one model, machine and options; all are copied but leaf and slowdown, which must outlive it.
 * Frees with wlb_sim_free. NULL with a message where the plan, the machine or an option is refused. */
struct wlb_sim;
struct wlb_sim *wlb_sim_new(const struct wlb_model *model, const struct wlb_machine *machine,
                            const struct wlb_sim_options *options, struct wlb_error *error);
void wlb_sim_free(struct wlb_sim *sim);

/* Simulates one training step. It holds dp x micro_batches micro-batches; micro-batch j runs on replica j mod dp, as
 * Megatron-LM's sampler assigns them. One with r x micro_batches, r < dp, is a sample: the first r replicas stand for
 * all. Discrete events: a pass starts when its stage is free and what it needs has come; 1F1B (Narayanan et al. 2019)
 * and interleaved 1F1B (Narayanan et al. 2021) over unequal micro-batches. -1 where the numbers do not match. */
int wlb_sim_step(struct wlb_sim *sim, const struct wlb_step *step, struct wlb_sim_result *result,
                 struct wlb_error *error);

/* Seconds that a document adds to one layer of a micro-batch, forward and backward, all that grows with its length:
 * for wlb_packer_options.work, `sim` as its context, so that micro-batches become equal in time rather than FLOPs. */
double wlb_sim_document_s(const void *sim, int64_t tokens);

/* The bars of the last simulated step, none without options.timeline: those of each replica's stages in the order they
 * ran. Owned by the simulator, valid until its next step. `count` is 2 x interleave x pp x replicas x
 * micro_batches. */
const struct wlb_sim_event *wlb_sim_timeline(const struct wlb_sim *sim, size_t *count);

/* Failures: useful time over all time of a run that saves every interval_s, after the complete model of Daly (2006):
 * failures are independent, one fails the run, what was done since the last checkpoint is lost. */
struct wlb_failures {
	double mtbf_s; /* of one node */
	int32_t nodes;
	double interval_s;   /* useful time between checkpoints; 0: the best, by golden section */
	double checkpoint_s; /* a checkpoint stops training for this long */
	double restart_s;    /* from the failure to training again */
};

struct wlb_goodput {
	double share;      /* of wall time that is useful, (0, 1] */
	double interval_s; /* given or found */
	double failures_per_day;
	double lost_checkpoint; /* shares of wall time: saving */
	double lost_failures;   /* restarts and work done twice */
};

int wlb_goodput(const struct wlb_failures *failures, struct wlb_goodput *goodput, struct wlb_error *error);

/* ---- search ------------------------------------------------------------------------------ */

struct wlb_search_options {
	int32_t nodes;
	const int32_t *gpus_of_node; /* usable GPUs of each, 0: the node is out; NULL: the machine's gpus_per_node */
	const struct wlb_topology *topology; /* NULL: all under one switch */
	int64_t seq_length;
	int32_t global_batch;    /* windows of seq_length tokens in a step */
	double max_length_ratio; /* a micro-batch holds at most this times its share of the batch, and the window */
	const struct wlb_step
		*sample;      /* packed batches of the stream, `samples` of them; their documents are assigned */
	size_t samples;       /* anew for each number of micro-batches */
	double memory_margin; /* see wlb_memory_stage */
	int32_t max_interleave;
	int32_t zero_stage;            /* 0 to 3, see wlb_plan */
	double tp_overlap, cp_overlap; /* see wlb_sim_options */
	enum wlb_sharding sharding;
	int dynamic;            /* see wlb_sim_options */
	int32_t keep;           /* candidates of each kind in the result */
	int32_t most_simulated; /* no more plans than this are simulated */
};

/* ratio 1.25, margin 0.1, interleave up to 4, ZeRO stage 1, nothing hidden, adaptive sharding, 10 kept,
 * at most 256 simulated; the rest zero. */
void wlb_search_options_init(struct wlb_search_options *options, int32_t nodes, int64_t seq_length,
                             int32_t global_batch);

struct wlb_candidate {
	struct wlb_plan plan;
	int64_t micro_batch_tokens; /* the most that one may hold */
	int32_t gpus;               /* used */
	struct wlb_memory memory;   /* of the stage that needs most */
	int32_t stage;              /* which */
	double missing_bytes;       /* what the GPU lacks; 0 where it fits */
	double bound_s;             /* no step is shorter */
	double step_s;              /* simulated, mean of the samples; 0 where it was not simulated */
	struct wlb_sim_time time;   /* where it went */
};

struct wlb_search_result {
	const struct wlb_candidate
		*ranked; /* simulated, by rising step_s: the first is the answer, the second the next best */
	size_t ranked_count;
	const struct wlb_candidate *misfits; /* by rising missing_bytes */
	size_t misfit_count;
	int64_t tried;     /* plans that the machine and model allow */
	int64_t no_memory; /* of them: did not fit */
	int64_t pruned;    /* of them: their bound was above the best */
	int64_t simulated;
	int64_t unexplored; /* of them: bound under the best, but most_simulated were done; those that looked best were
	                     */
	int32_t gpus;       /* usable */
	/* Of the first candidate: rank r runs on GPU rank_gpu[r] of node rank_node[r]. */
	const int32_t *rank_node, *rank_gpu;
	int32_t ranks;
	/* Usable GPUs it leaves idle. */
	const int32_t *idle_node, *idle_gpu;
	int32_t idle;
};

/* Finds the plan with the least simulated step time among all tp x cp x pp x dp, interleaving, micro-batch numbers (one
 * for each window of the batch, or of two or four windows) and recomputation (none, or full where else it does not
 * fit) that fit the GPUs and their memory. tp divides the heads and stays inside a node; tp x cp divides a node or is
 * made of whole ones, with chunks of at least a tile of attention; then pp; dp, outermost, as large as the GPUs and
 * the batch allow. ZeRO-2 and 3 become 1 where pp is above 1. Nodes follow the topology.
 *
 * A plan whose bound is above the best is not simulated. Of others, at least 64 micro-batches are where there are that
 * many, and at least 4 x pp of a replica; the parts of the time that grow with their number are scaled to all.
 * Free with wlb_search_free. NULL with a message where the input is wrong or nothing fits (the message names the plan
 * that misses least, and by how much). */
struct wlb_search_result *wlb_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                     const struct wlb_search_options *options, struct wlb_error *error);
void wlb_search_free(struct wlb_search_result *result);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
