/* The options that describe the training program that a plan is for: which communication it hides, and its types in
 * memory. */
#ifndef PLANNER_CLI_PLAN_TRAINER_H
#define PLANNER_CLI_PLAN_TRAINER_H

#include "common/options.h"
#include "libwlb/wlb.h"

/* Choices are indices in the order of their rows. */
struct wlb_trainer_request {
	enum wlb_cost_trainer trainer;
	double tp_overlap, cp_overlap;
	int overlap_gradients, overlap_parameters, overlap_pp; /* no|yes */
	int gradient_type;                                     /* float32|bfloat16 */
	bool release_activations;
	int full_attention; /* causal|full */
};

/* Rows of a table of options whose values have a struct wlb_trainer_request at `at`; all but the last end with a comma.
 * The defaults are those of wlb_cost_options_init. */
#define WLB_TRAINER_FIELD(at, name) ((at) + offsetof(struct wlb_trainer_request, name))
#define WLB_TRAINER_OPTIONS(at)                                                                                        \
	{WLB_OPTION(CHOICE, "trainer", WLB_TRAINER_FIELD(at, trainer), NULL,                                           \
	            "the program that trains: megatron, Megatron-LM and similar programs; worker, wlb-worker, whose "  \
	            "overlap and element types are known: --tp-overlap, --cp-overlap, --overlap-*, --gradient-type "   \
	            "and --release-activations are then ignored"),                                                     \
	 .choices = "megatron|worker", .initial = "megatron"},                                                         \
		{WLB_OPTION(REAL, "tp-overlap", WLB_TRAINER_FIELD(at, tp_overlap), "X",                                \
	                    "share of tensor-parallel communication overlapped with GEMMs (matrix products)"),         \
	         .max = 1, .initial = "0.85"},                                                                         \
		{WLB_OPTION(REAL, "cp-overlap", WLB_TRAINER_FIELD(at, cp_overlap), "X",                                \
	                    "share of context-parallel communication overlapped with computation"),                    \
	         .max = 1, .initial = "0"},                                                                            \
		{WLB_OPTION(CHOICE, "overlap-gradients", WLB_TRAINER_FIELD(at, overlap_gradients), NULL,               \
	                    "gradients are reduced beside the last backward pass"),                                    \
	         .choices = "no|yes", .initial = "yes"},                                                               \
		{WLB_OPTION(CHOICE, "overlap-parameters", WLB_TRAINER_FIELD(at, overlap_parameters), NULL,             \
	                    "weights are gathered beside the first forward passes"),                                   \
	         .choices = "no|yes", .initial = "yes"},                                                               \
		{WLB_OPTION(CHOICE, "overlap-pp", WLB_TRAINER_FIELD(at, overlap_pp), NULL,                             \
	                    "stages compute while they send and receive"),                                             \
	         .choices = "no|yes", .initial = "yes"},                                                               \
		{WLB_OPTION(CHOICE, "gradient-type", WLB_TRAINER_FIELD(at, gradient_type), NULL,                       \
	                    "in which gradients are summed and reduced"),                                              \
	         .choices = "float32|bfloat16", .initial = "float32"},                                                 \
		{WLB_OPTION(FLAG, "release-activations", WLB_TRAINER_FIELD(at, release_activations), NULL,             \
	                    "outputs of norms and the gated product are computed again instead of kept")},             \
	{                                                                                                              \
		WLB_OPTION(CHOICE, "mfu", WLB_TRAINER_FIELD(at, full_attention), NULL,                                 \
		           "which FLOPs of attention count in MFU: causal, those that are needed; full, those to "     \
		           "later tokens too, as Megatron-LM counts them"),                                            \
			.choices = "causal|full", .initial = "causal"                                                  \
	}

/* The options of the cost on that machine. */
struct wlb_cost_options wlb_trainer_cost(const struct wlb_trainer_request *request, const struct wlb_machine *machine);

#endif
