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

/* ---- errors ---------------------------------------------------------------------------- */

/* One message for a person: the value that was wrong, the rule it broke, what to do. */
struct wlb_error {
	char message[1024];
};

/* Formats the message; always returns -1, so that a check reads `return wlb_fail(e, ...)`.
 * `error` may be NULL: then only the -1 is given. */
int wlb_fail(struct wlb_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Puts "context: " before the message already there; returns -1. */
int wlb_fail_in(struct wlb_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

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

/* Rank order: tp varies fastest, then cp, then pp, then dp, so that tensor-parallel ranks are
 * neighbours (one node) and data-parallel replicas are farthest apart. */
struct wlb_coordinates wlb_layout_coordinates(const struct wlb_layout *layout, int rank);
int wlb_layout_rank(const struct wlb_layout *layout, const struct wlb_coordinates *at);

/* Resolves a policy for `ranks` ranks of `ranks_per_node` each. AUTO gives the layout with the
 * least predicted step time among those that the worker supports (data parallel in this version);
 * FIXED is checked: the product must be `ranks`, tp must divide the heads and the ranks of a node,
 * pp must not exceed the layers. */
int wlb_layout_choose(const struct wlb_policy *policy, const struct wlb_model *model, int ranks,
                      int ranks_per_node, struct wlb_layout *layout, struct wlb_error *error);

/* ---- cost ------------------------------------------------------------------------------ */

/* Floating-point operations of one forward pass over a document of `tokens` tokens that attends
 * to itself causally: linear part (per token) + attention part (tokens^2), all layers. */
double wlb_cost_document(const struct wlb_model *model, int64_t tokens);

/* ---- packing --------------------------------------------------------------------------- */

/* Deals `count` documents of `lengths` tokens to `bins` micro-batches so that their predicted work
 * is as equal as greedy longest-processing-time gives (Graham 1969), none longer than
 * `max_tokens`. bin_of[i] receives the bin of document i. Work is wlb_cost_document.
 * Equal inputs give equal outputs. -1 when no placement under max_tokens was found. */
int wlb_pack_greedy(const struct wlb_model *model, const int32_t *lengths, int count, int bins,
                    int64_t max_tokens, int32_t *bin_of, struct wlb_error *error);

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
	WLB_STRATEGY_FIXED,    /* equal lengths, work dealt greedily; cuts documents, delays none */
	WLB_STRATEGY_PLAIN,    /* concatenate and cut */
};

/* "balanced", "greedy", "fixed", "plain"; parse gives -1 with the value and the choices otherwise. */
const char *wlb_strategy_name(enum wlb_strategy strategy);
int wlb_strategy_parse(const char *text, enum wlb_strategy *strategy, struct wlb_error *error);

/* Everything that decides which documents enter step k, beside the stream itself. All of it belongs to
 * the global batch and the model. None of it may be derived from tp, cp, pp or dp, else a run that goes
 * on under another layout would see other documents in the same step. A layout that needs another number
 * of micro-batches deals the documents of the step anew with wlb_pack_balanced(). */
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

/* One piece of a document in a step. Attention stays inside it. */
struct wlb_packed {
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
	int64_t index;                   /* 0 for the first step of the stream */
	const struct wlb_packed *pieces; /* `count`, by micro-batch, in the order they came within one */
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
 * Every token leaves in exactly one step. A span without tokens leaves nothing to train and gives no piece.
 * balanced: a token leaves at most max_delay_steps after it came, so that at most max_delay_steps * N * seq_length
 * tokens are held. Pieces that are due are placed first; where one fits nowhere whole it is cut, which `cuts` counts
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

/* Deals `count` pieces of tokens[] tokens to `bins` micro-batches of at most `max_tokens`: longest first to the
 * lightest with room, then exchanges with the heaviest until none helps. bin_of[i] receives the bin of piece
 * i. Work is wlb_cost_document. -1 where a piece finds no room. */
int wlb_pack_balanced(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t bins,
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
 * then has. -1 where documents find no room. */
int wlb_spread(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t ranks, int32_t micro_batches,
               int64_t max_tokens, struct wlb_place *places, struct wlb_load *loads, struct wlb_error *error);

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

#ifdef __cplusplus
}
#endif
#endif
