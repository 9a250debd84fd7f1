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

#ifdef __cplusplus
}
#endif
#endif
