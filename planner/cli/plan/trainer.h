/* The options that name the training program that a plan is for, and replace values of its file. */
#ifndef PLANNER_CLI_PLAN_TRAINER_H
#define PLANNER_CLI_PLAN_TRAINER_H

#include "common/options.h"
#include "libwlb/wlb.h"
#include "planner/trainer_file.h"

/* Choices are indices in the order of their rows. */
struct wlb_trainer_request {
	const char *name;                                      /* of the program, or its file */
	const char *attention;                                 /* NULL: as the file has it */
	int tp_halves;                                         /* rows; 0: none */
	double tp_overlap, cp_overlap;                         /* -1: as the file has it */
	int overlap_gradients, overlap_parameters, overlap_pp; /* trainer|no|yes */
	int gradient_type;                                     /* trainer|float32|bfloat16 */
	int fp8;                                               /* enum wlb_fp8 */
	int fp8_parameters;                                    /* trainer|no|yes */
	bool release_activations;
	int full_attention; /* causal|full */
};

/* Rows of a table of options whose values have a struct wlb_trainer_request at `at`; all but the last end with a comma.
 */
#define WLB_TRAINER_FIELD(at, name) ((at) + offsetof(struct wlb_trainer_request, name))
#define WLB_TRAINER_OPTIONS(at)                                                                                        \
	{WLB_TRAINER_OPTION(WLB_TRAINER_FIELD(at, name))},                                                             \
		{WLB_OPTION(INT, "tp-halves", WLB_TRAINER_FIELD(at, tp_halves), "N",                                   \
	                    "with --trainer worker, its --tp-halves"),                                                 \
	         .max = 1 << 26, .initial = "0"},                                                                      \
		{WLB_OPTION(                                                                                           \
			 TEXT, "attention", WLB_TRAINER_FIELD(at, attention), "KERNEL",                                \
			 "the kernel of attention: fa1, fa2, fa3 (FlashAttention), cudnn, te (Transformer Engine), "   \
			 "sdpa (PyTorch) or unfused (default: what the trainer calls)"),                               \
	         .choices = "fa1|fa1-triton|fa2|fa3|cudnn|te|sdpa|unfused", .open = true},                             \
		{WLB_OPTION(REAL, "tp-overlap", WLB_TRAINER_FIELD(at, tp_overlap), "X",                                \
	                    "share of tensor-parallel communication overlapped with GEMMs (matrix products); -1: as "  \
	                    "the trainer has it"),                                                                     \
	         .min = -1, .max = 1, .initial = "-1"},                                                                \
		{WLB_OPTION(REAL, "cp-overlap", WLB_TRAINER_FIELD(at, cp_overlap), "X",                                \
	                    "share of context-parallel communication overlapped with computation; -1: as the trainer " \
	                    "has it"),                                                                                 \
	         .min = -1, .max = 1, .initial = "-1"},                                                                \
		{WLB_OPTION(CHOICE, "overlap-gradients", WLB_TRAINER_FIELD(at, overlap_gradients), NULL,               \
	                    "gradients are reduced beside the last backward pass"),                                    \
	         .choices = "trainer|no|yes", .initial = "trainer"},                                                   \
		{WLB_OPTION(CHOICE, "overlap-parameters", WLB_TRAINER_FIELD(at, overlap_parameters), NULL,             \
	                    "weights are gathered beside the first forward passes"),                                   \
	         .choices = "trainer|no|yes", .initial = "trainer"},                                                   \
		{WLB_OPTION(CHOICE, "overlap-pp", WLB_TRAINER_FIELD(at, overlap_pp), NULL,                             \
	                    "stages compute while they send and receive"),                                             \
	         .choices = "trainer|no|yes", .initial = "trainer"},                                                   \
		{WLB_OPTION(CHOICE, "gradient-type", WLB_TRAINER_FIELD(at, gradient_type), NULL,                       \
	                    "in which gradients are summed and reduced"),                                              \
	         .choices = "trainer|float32|bfloat16", .initial = "trainer"},                                         \
		{WLB_OPTION(CHOICE, "fp8", WLB_TRAINER_FIELD(at, fp8), NULL,                                           \
	                    "matrix products of layers in 8 bits, by what their scales are from: earlier steps "       \
	                    "(delayed), each tensor (tensorwise) or 32 elements (mxfp8); attention, embedding and "    \
	                    "head stay as they are"),                                                                  \
	         .choices = "no|delayed|tensorwise|mxfp8", .initial = "no"},                                           \
		{WLB_OPTION(CHOICE, "fp8-param-gather", WLB_TRAINER_FIELD(at, fp8_parameters), NULL,                   \
	                    "with --fp8, weights are kept and gathered in 8 bits"),                                    \
	         .choices = "trainer|no|yes", .initial = "trainer"},                                                   \
		{WLB_OPTION(FLAG, "release-activations", WLB_TRAINER_FIELD(at, release_activations), NULL,             \
	                    "outputs of norms and the gated product are computed again instead of kept")},             \
	{                                                                                                              \
		WLB_OPTION(CHOICE, "mfu", WLB_TRAINER_FIELD(at, full_attention), NULL,                                 \
		           "which FLOPs of attention count in MFU: causal, those that are needed; full, those to "     \
		           "later tokens too, as Megatron-LM counts them"),                                            \
			.choices = "causal|full", .initial = "causal"                                                  \
	}

/* Reads the trainer's file into *file, sets the options of the cost on that machine, and the rates of the machine to
 * those that the trainer has. Returns -1 with the option, the value and the rule. */
int wlb_trainer_read(const struct wlb_trainer_request *request, struct wlb_trainer_file *file,
                     struct wlb_machine *machine, struct wlb_cost_options *cost, struct wlb_error *error);

#endif
