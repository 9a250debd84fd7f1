/*
 * libwlb: layout, packing, sharding, cost model and simulator of WLB.
 *
 * Pure C: no dependency, no input or output, no global state. Every function is re-entrant; the comment of a function
 * that allocates memory says which function frees it.
 *
 * Some functions are for other trainers and planners; no program of WLB calls them: wlb_pack_balanced,
 * wlb_gemm_seconds, wlb_shards_lengths, wlb_shards_tokens, wlb_shards_rows, wlb_shards_pairs, wlb_machine_gather_s,
 * wlb_machine_reduce_s, wlb_machine_root_s, wlb_machine_node_send_s, wlb_machine_stream_s, wlb_memory_stage. Each has a
 * unit test in tests/unit/libwlb.
 */
#ifndef WLB_H
#define WLB_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is compiled with hidden visibility; only the declarations below are exported. */
#pragma GCC visibility push(default)

/* ---- texts ----------------------------------------------------------------------------- */

/* Names, paths and messages come from users, Slurm and files as any bytes. What is opened, compared or executed stays
 * as it is; what is stored or shown is made UTF-8 (RFC 3629) by these functions. */

#define WLB_TEXT_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, in the place of each byte that is not UTF-8 */
#define WLB_TEXT_INVALID UINT32_MAX         /* no character */

/* Returns the bytes of the first character of `length` > 0 bytes, and sets *code to its number in Unicode; 1 and
 * WLB_TEXT_INVALID where the first byte begins none. */
size_t wlb_text_first(const char *text, size_t length, uint32_t *code);

/* Whether a terminal would act on the character, or it changes how others are drawn: control characters (C0, DEL, C1),
 * U+2028 and U+2029, characters of direction and characters without a width, U+FFFE and U+FFFF. */
int wlb_text_is_control(uint32_t code);

/* Copies a text that will be stored: as many characters as fit into `size` > 0 bytes with the NUL, with
 * WLB_TEXT_REPLACEMENT for each byte that is not UTF-8. Returns the bytes before the NUL. */
size_t wlb_text_store(char *to, size_t size, const char *from);

/* The same for a text that will be shown, as a line or a part of one: with a space for each control character, and
 * without those at the end. */
size_t wlb_text_show(char *to, size_t size, const char *from);

/* Like snprintf, for a text that will be shown; of at most 4,095 bytes, whatever `size` is. */
size_t wlb_text_format(char *to, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t wlb_text_vformat(char *to, size_t size, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

/* Returns the bytes of the whole characters at the beginning of `text` that `most` bytes have room for. */
size_t wlb_text_cut(const char *text, size_t most);

/* ---- errors ---------------------------------------------------------------------------- */

/* One message: the value that was wrong, the rule that it broke, the remedy. */
struct wlb_error {
	char message[1024];
};

/* Formats the message as wlb_text_format does; always returns -1, so that a check reads `return wlb_fail(e, ...)`.
 * `error` may be NULL. */
int wlb_fail(struct wlb_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the message already there; returns -1. */
int wlb_fail_in(struct wlb_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- model ----------------------------------------------------------------------------- */

/* The families of models whose layers are known. A family is Llama but for what its row of wlb_family says. */
enum wlb_family {
	WLB_FAMILY_LLAMA, /* Llama 1 to 3.3, SmolLM 1 and 2 */
	WLB_FAMILY_MISTRAL,
	WLB_FAMILY_QWEN2, /* and 2.5 */
	WLB_FAMILY_QWEN3,
	WLB_FAMILY_OLMO2,
	WLB_FAMILY_PHI3,
	WLB_FAMILY_SMOLLM3,
	WLB_FAMILY_MIXTRAL,
	WLB_FAMILY_QWEN3_MOE,
	WLB_FAMILY_OLMOE,
	WLB_FAMILY_NEMOTRON,
	WLB_FAMILY_GEMMA2,
	WLB_FAMILY_GEMMA3, /* of text alone */
	WLB_FAMILY_QWEN2_MOE,
	WLB_FAMILY_DEEPSEEK_V2,
	WLB_FAMILY_DEEPSEEK_V3,
	WLB_FAMILY_GPT_OSS,
	WLB_FAMILIES
};

/* The RMSNorms of queries and keys, before their rotation. */
enum wlb_qk_norm {
	WLB_QK_NORM_NONE,
	WLB_QK_NORM_HEAD, /* of each head, with one weight of head_dim for all heads */
	WLB_QK_NORM_ALL,  /* of all heads together */
};

/* Where a layer has RMSNorms of the residual stream's width. */
enum wlb_norms {
	WLB_NORMS_BEFORE, /* x + attention(norm(x)), then x + mlp(norm(x)) */
	WLB_NORMS_AFTER,  /* x + norm(attention(x)), then x + norm(mlp(x)) */
	WLB_NORMS_BOTH,   /* x + norm(attention(norm(x))), then x + norm(mlp(norm(x))) */
};

struct wlb_family_row {
	const char *model_type, *architecture; /* of Hugging Face's config.json */
	int qkv_biases;                        /* queries, keys and values have a bias */
	enum wlb_qk_norm qk_norm;
	enum wlb_norms norms;
	int norms_add_one; /* norms multiply by 1 + weight, which is 0 at first */
	int gelu_gate;     /* the gate of the MLP passes GELU, by its form with tanh, and not SiLU */
	/* Rows of the embedding are multiplied by the square root of hidden_size. Families that do so, Gemma's, have
	 * query_pre_attn_scalar and final_logit_softcapping, too. */
	int scales_embedding;
	int score_softcap; /* attn_logit_softcapping may be given */
	int local_rope;    /* layers with a window have angles of their own, of rope_local_base_freq */
	/* Hugging Face's files have queries, keys and values in one tensor, and gate and up in one. */
	int fused_tensors;
	int experts;     /* layers have num_experts MLPs, to num_experts_per_tok of which a token is sent */
	int shared_gate; /* the output of the shared expert is weighted by a product with a vector */
	int latent;      /* attention is multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434) */
	int all_biases;  /* all matrices of a layer have biases, and each head of attention has a sink, a parameter */
	int ungated;     /* the MLP is down(f(up(x))), for down(silu(gate(x)) * up(x)) */
	int norm_biases; /* each norm has a bias beside its weight */
	/* Why wlb-worker does not train the family, such as "it has experts"; such a family is planned for other
	 * trainers. NULL: it does. */
	const char *not_trained;
};

/* Static memory; NULL for a value that is no family. */
const struct wlb_family_row *wlb_family(enum wlb_family family);

/* How the frequencies of rotary embeddings are made from rope_theta, as Transformers' modeling_rope_utils.py does. */
enum wlb_rope_type {
	WLB_ROPE_DEFAULT,
	WLB_ROPE_LINEAR, /* all divided by `factor` (Chen et al. 2023) */
	WLB_ROPE_LLAMA3, /* the low ones divided by it (Llama 3.1) */
	WLB_ROPE_YARN,   /* the low ones divided by it, and cosines and sines scaled (Peng et al. 2023) */
	WLB_ROPE_TYPES
};

/* "default", "linear", "llama3", "yarn": rope_type of config.json; "unknown" for another value. */
const char *wlb_rope_type_name(enum wlb_rope_type type);

/* The fields of rope_scaling in config.json; those that the type does not use are 0. */
struct wlb_rope_scaling {
	enum wlb_rope_type type;
	int truncate; /* YARN: the limits of low and high frequencies are whole numbers */
	double factor;
	double original_max_position_embeddings;  /* LLAMA3, YARN */
	double low_freq_factor, high_freq_factor; /* LLAMA3 */
	double beta_fast, beta_slow;              /* YARN */
	double attention_factor;                  /* YARN: of cosines and sines */
};

enum { WLB_LAYERS_MAX = 1 << 12 };

/* The shape of a transformer; field names are those of Hugging Face's config.json. */
struct wlb_model {
	int64_t hidden_size;
	int64_t intermediate_size; /* of each expert, where there are experts */
	int64_t num_hidden_layers;
	int64_t num_attention_heads;
	int64_t num_key_value_heads;
	int64_t head_dim;
	int64_t vocab_size;
	int64_t max_position_embeddings;
	double rope_theta;
	double rms_norm_eps;
	int tie_word_embeddings;
	double initializer_range; /* the standard deviation of initial weights; 0: not known */
	enum wlb_family family;
	struct wlb_rope_scaling rope_scaling;
	int64_t rotary_dim;             /* the first elements of a head, which are rotated; 0: all */
	int64_t no_rope_layer_interval; /* the last of so many layers rotates nothing; 0: all layers rotate */
	/* Keys that a query attends to at most, its own among them, in layers that have a window; 0: no layer has one.
	 */
	int64_t sliding_window;
	/* Bit l % 64 of full_layers[l / 64] is set where layer l has no window although sliding_window is not 0. */
	uint64_t full_layers[WLB_LAYERS_MAX / 64];
	int64_t num_experts;              /* of each layer after dense_layers; 0: the family has none */
	int64_t num_experts_per_tok;      /* of them, by which a token is computed */
	double query_pre_attn_scalar;     /* scores are divided by its square root; 0: by that of head_dim */
	double attn_logit_softcapping;    /* c: a score s becomes c tanh(s / c); 0: it stays */
	double final_logit_softcapping;   /* the same of logits */
	double rope_local_base_freq;      /* rope_theta of the layers with a window; 0: that of all layers */
	int64_t shared_intermediate_size; /* of an MLP beside the experts that computes every token; 0: there is none */
	int64_t dense_layers;             /* the first layers, which have one MLP and no experts */
	int64_t dense_intermediate_size;  /* of that MLP; 0 where dense_layers is 0 */
	/* Of a family with latent attention, else 0. Queries are made of q_lora_rank elements (0: of hidden_size), keys
	 * and values of kv_lora_rank and of qk_rope_head_dim elements that all heads share. Each head has a key and a
	 * value of its own, so num_key_value_heads is num_attention_heads; head_dim is that of queries and keys. */
	int64_t q_lora_rank, kv_lora_rank, qk_rope_head_dim, v_head_dim;
};

/* Returns 0 when the shape can be built, -1 with the field, its value and the rule otherwise. */
int wlb_model_check(const struct wlb_model *model, struct wlb_error *error);

/* Number of trained parameters; tied embeddings are counted once. */
int64_t wlb_model_parameters(const struct wlb_model *model);

/* Of these, the ones that compute a token: without the experts that it is not sent to. */
int64_t wlb_model_active_parameters(const struct wlb_model *model);

/* The parameters of the matrices of a layer after dense_layers, and of one of these. The matrix that chooses experts is
 * one of them. */
int64_t wlb_model_layer_matrix_parameters(const struct wlb_model *model);
int64_t wlb_model_dense_layer_parameters(const struct wlb_model *model);

/* The parameters of matrices that a token is multiplied by: of all layers together, and of the mean layer. */
int64_t wlb_model_active_matrices(const struct wlb_model *model);
double wlb_model_layer_active_parameters(const struct wlb_model *model);

/* The parameters of the matrices of one expert, and of the biases of all experts of a layer. */
int64_t wlb_model_expert_parameters(const struct wlb_model *model);
int64_t wlb_model_expert_biases(const struct wlb_model *model);

/* The share of the layers that have experts, 0 to 1. */
double wlb_model_expert_layers_share(const struct wlb_model *model);

/* The parameters of matrices of a layer, with experts or without, that tensor parallelism does not cut: of the one that
 * chooses experts, and of those that make what latent attention makes queries, keys and values of. */
int64_t wlb_model_layer_whole_parameters(const struct wlb_model *model, int has_experts);

/* The mean elements of a key and of a value of a head, rounded down, which are as many but in latent attention:
 * attention computes 4 x this FLOPs for each head and pair of a query and a key. */
int64_t wlb_model_head_width(const struct wlb_model *model);

/* The parameters of one norm of rows of hidden_size: weights, and biases where the family has them. */
int64_t wlb_model_norm_parameters(const struct wlb_model *model);

/* The parameters of one layer that are no matrices: norms, biases and sinks. */
int64_t wlb_model_layer_vector_parameters(const struct wlb_model *model);

/* Elements of a head that are rotated. */
int64_t wlb_model_rotary_dim(const struct wlb_model *model);

/* Whether a layer, counted from 0, rotates its queries and keys. */
int wlb_model_layer_rotates(const struct wlb_model *model, int64_t layer);

/* Which angles rotate the queries and keys of a layer. */
enum wlb_angles {
	WLB_ANGLES_GLOBAL, /* of rope_theta and rope_scaling */
	WLB_ANGLES_LOCAL,  /* of rope_local_base_freq */
	WLB_ANGLES_KINDS,
};

/* The kinds of angles that the model has: 1, or 2. */
int wlb_model_angle_kinds(const struct wlb_model *model);

/* Those of a layer, counted from 0. */
enum wlb_angles wlb_model_layer_angles(const struct wlb_model *model, int64_t layer);

/* Sets frequencies[rotary_dim / 2], in radians for each position, and returns what cosines and sines are multiplied by.
 * Attention divides scores by the square root of head_dim; where the model has query_pre_attn_scalar, the rest of the
 * factor is in the cosines and sines, as it is in YaRN: its square root is that of queries, and that of keys. */
double wlb_rope_frequencies(const struct wlb_model *model, enum wlb_angles kind, double *frequencies);

/* The keys that a query attends to at most in a layer, counted from 0; 0: no limit. */
int64_t wlb_model_layer_window(const struct wlb_model *model, int64_t layer);

/* The share of the layers that have a window, 0 to 1. */
double wlb_model_window_share(const struct wlb_model *model);

/* ---- layout ---------------------------------------------------------------------------- */

/* The degrees of tensor, context, pipeline and data parallelism. All >= 1. */
struct wlb_layout {
	int tp;
	int cp;
	int pp;
	int dp;
};

/* The values of --wlb-layout. */
enum wlb_policy_kind {
	WLB_POLICY_OFF,   /* "off": WLB does not change the job */
	WLB_POLICY_AUTO,  /* "auto": the layout with the least predicted step time */
	WLB_POLICY_FIXED, /* "tp=2,cp=1,pp=2[,dp=4]"; dp 0: as many replicas as the ranks allow */
};

struct wlb_policy {
	enum wlb_policy_kind kind;
	struct wlb_layout fixed; /* for WLB_POLICY_FIXED only */
};

/* Parses the value of --wlb-layout. Keys may come in any order, tp, cp and pp default to 1,
 * dp to 0. Returns -1 with the value, the rule and an example on error. */
int wlb_policy_parse(const char *text, struct wlb_policy *policy, struct wlb_error *error);

/* Writes the policy in the form that wlb_policy_parse reads; returns what snprintf returns. */
int wlb_policy_format(const struct wlb_policy *policy, char *buffer, size_t size);

/* Writes "tp=1,cp=1,pp=1,dp=8"; returns what snprintf returns. */
int wlb_layout_format(const struct wlb_layout *layout, char *buffer, size_t size);

/* Ranks the layout needs: tp * cp * pp * dp. */
int wlb_layout_ranks(const struct wlb_layout *layout);

/* The coordinates of one rank in the layout. */
struct wlb_coordinates {
	int tp;
	int cp;
	int pp;
	int dp;
};

/* Order of the logical ranks of a layout, from 0: tp varies fastest, then cp, then pp, then dp, so that tensor-parallel
 * ranks are neighbours (one node) and data-parallel replicas are farthest apart. `place` is a logical rank;
 * wlb_nodes_place returns that of a rank. */
struct wlb_coordinates wlb_layout_coordinates(const struct wlb_layout *layout, int place);
int wlb_layout_place(const struct wlb_layout *layout, const struct wlb_coordinates *coords);

/* The nodes that ranks run on, in the launcher's order (Slurm's SLURM_NODEID), and the number of ranks on each. */
struct wlb_nodes {
	int count;
	int ranks_per_node;  /* on every node, where ranks_on is NULL */
	const int *ranks_on; /* [count] ranks on each node, each >= 1; NULL: ranks_per_node on each */
	char *const *names;  /* [count] for messages; NULL: messages use "node 1" */
	const int *order;    /* [count] the nodes in the order in which ranks fill them; NULL: as they are numbered */
};

/* The number of ranks on one node, 0 to count - 1, and on all nodes. */
int wlb_nodes_ranks_on(const struct wlb_nodes *nodes, int node);
int64_t wlb_nodes_ranks(const struct wlb_nodes *nodes);

/* The logical rank of rank `local_rank` (from 0, in rank order) of `node`: logical ranks are numbered node by node, in
 * the order of the nodes, independent of how the launcher numbered ranks, so that srun --distribution=cyclic does not
 * put the ranks of a tensor-parallel group on different nodes. Returns -1 where the node or rank does not exist. */
int64_t wlb_nodes_place(const struct wlb_nodes *nodes, int node, int local_rank);

/* Returns 0 when the layout can run, -1 with the value, the rule and the remedy otherwise. The rules: tp, cp, pp and dp
 * are at least 1, their product is the number of ranks, tp divides num_attention_heads and the ranks of each node, one
 * of tp and num_key_value_heads divides the other, pp does not exceed num_hidden_layers. Rules about the nodes or the
 * model are not checked where that argument is NULL. */
int wlb_layout_check(const struct wlb_layout *layout, const struct wlb_nodes *nodes, const struct wlb_model *model,
                     struct wlb_error *error);

/* Resolves a policy for the ranks on `nodes`: AUTO and OFF become pure data parallelism (the search of AUTO is
 * wlb_search), FIXED becomes its layout, with dp computed where it is 0. Returns 0 when *layout passes
 * wlb_layout_check, -1 with its message otherwise; `model` may be NULL where it is unknown. */
int wlb_layout_choose(const struct wlb_policy *policy, const struct wlb_nodes *nodes, const struct wlb_model *model,
                      struct wlb_layout *layout, struct wlb_error *error);

/* ---- cost ------------------------------------------------------------------------------ */

/* Floating-point operations of one forward pass over a document of `tokens` tokens that attends
 * to itself causally, within the windows of the layers: linear part (per token, by the experts that compute it) +
 * attention part, all layers. */
double wlb_cost_document(const struct wlb_model *model, int64_t tokens);

/* ---- packing a stream ------------------------------------------------------------------ */

/* The tokens [start, start + tokens) of a document; `document` is a number that the caller chooses. */
struct wlb_span {
	int64_t document;
	int64_t start;
	int64_t tokens;
};

/* The methods that make micro-batches of the documents of a global batch. */
enum wlb_strategy {
	WLB_STRATEGY_BALANCED, /* equal work by exchange and priced delay; the default */
	WLB_STRATEGY_GREEDY,   /* WLB-LLM (Wang et al., OSDI 2025): queues above 1/4 and 1/2 of the window */
	WLB_STRATEGY_FIXED,    /* equal lengths, work assigned greedily; cuts documents, delays none */
	WLB_STRATEGY_PLAIN,    /* concatenate and cut */
	WLB_STRATEGY_DYNAMIC, /* all documents of the batch, none delayed, none cut to equal lengths: for wlb_dynamic_cp
	                       */
};

/* "balanced", "greedy", "fixed", "plain", "dynamic"; parse returns -1 with the value and the choices for any other
 * text. */
const char *wlb_strategy_name(enum wlb_strategy strategy);
int wlb_strategy_parse(const char *text, enum wlb_strategy *strategy, struct wlb_error *error);

/* The values that, with the stream itself, decide which documents enter step k. All of them are derived from the global
 * batch and the model. None of them may be derived from tp, cp, pp or dp; otherwise a run that continues under another
 * layout would train other documents in the same step. A layout that needs another number of micro-batches assigns the
 * documents of the step again with wlb_pack_balanced() or a balancer. */
struct wlb_packer_options {
	enum wlb_strategy strategy;
	int64_t seq_length;        /* the window, tokens; 1 to 2^30. Longer documents are cut at its multiples (plain:
	                              where one micro-batch ends and the next begins) */
	int32_t micro_batches;     /* N of a global batch, which has at most N * seq_length tokens; 1 to 2^20 */
	double max_length_ratio;   /* a micro-batch holds this times seq_length (balanced, greedy); 1 to 64 */
	int32_t max_delay_steps;   /* balanced: no document waits for more steps than this; 0 to 2^20 */
	double target_delay_steps; /* balanced: the mean wait of a token that the price of waiting is adjusted to */
	/* Predicted work of one document of `tokens` tokens, in any unit: finite and above 0, else the batch is
	 * refused. It should rise with tokens. For measured kernel times; NULL: wlb_cost_document of the model. */
	double (*work)(const void *context, int64_t tokens);
	const void *work_context; /* owned by the caller; must outlive the packer */
};

/* Sets the defaults: balanced, ratio 1.25, at most 32 steps of delay, a target of 0.45 steps, work from the model. */
void wlb_packer_options_init(struct wlb_packer_options *options, int64_t seq_length, int32_t micro_batches);

/* One span of a document in a step. Attention stays inside it. */
struct wlb_packed_span {
	struct wlb_span span;
	int32_t micro_batch;  /* 0 to N - 1 */
	int32_t waited_steps; /* 0: packed in the step in which it arrived */
};

/* The load of a micro-batch. */
struct wlb_load {
	double work; /* in the unit of wlb_packer_options.work */
	int64_t tokens;
};

/* One packed training step: the spans of its micro-batches. */
struct wlb_step {
	int64_t index;                       /* 0 for the first step of the stream */
	const struct wlb_packed_span *spans; /* `count`, by micro-batch; within one in order of arrival, but a part that
	                                        was cut off the front of a span comes after the uncut ones */
	size_t count;
	const struct wlb_load *loads; /* one for each micro-batch; the work of an empty one is 0 */
	int32_t micro_batches;
	int64_t tokens;      /* in this step; at most N * max_length_ratio * seq_length */
	int64_t held_tokens; /* that have arrived and wait for a later step */
	int64_t cuts;        /* documents of at most seq_length tokens that were cut in this step */
	double held_work;    /* of the held tokens, in the unit of the loads */
};

/* Work of the heaviest micro-batch x N / work of all; 1 is perfect; a step without work also has 1. NaN where the work
 * of all is not finite. */
double wlb_step_imbalance(const struct wlb_step *step);

/* Packs a stream of global batches, one step for each. Threads that share a packer must use a lock; any number of
 * packers can be used at the same time. `model` is copied and may be NULL where options->work is set. */
struct wlb_packer;
struct wlb_packer *wlb_packer_new(const struct wlb_model *model, const struct wlb_packer_options *options,
                                  struct wlb_error *error);
void wlb_packer_free(struct wlb_packer *packer);

/* The steps from the next one on have `micro_batches` micro-batches, 1 to those of the options, which are those of the
 * first step: for a global batch that grows in training. Of fewer than before, a span may wait for more than
 * max_delay_steps. It is no part of the packer's state. */
void wlb_packer_set_micro_batches(struct wlb_packer *packer, int32_t micro_batches);

/* Takes the next global batch, at most N * seq_length tokens, and returns the next step, which is owned by the packer
 * and valid until the next call. Returns NULL with a message on error; the packer is unchanged.
 *
 * Every token is packed in exactly one step. A span without tokens is dropped.
 * balanced: a token is packed at most max_delay_steps after it arrived, so that at most max_delay_steps * N *
 * seq_length tokens are held. Spans that are due are placed first; a span that fits in no bin as a whole is cut, which
 * `cuts` counts; no stream of the tested kinds needs it. (The bound always holds: the spans that are due arrived in one
 * batch, at most N * seq_length tokens, and fit when they are cut.) A step targets at least a quarter of the tokens
 * that arrived with it, and is never empty while tokens are held.
 * greedy has no such bound. fixed, plain and dynamic hold nothing; a micro-batch of dynamic may have all tokens of the
 * step.
 * A batch without tokens marks the end of the data: the step takes all held tokens that fit; repeat it until none are
 * held. */
const struct wlb_step *wlb_packer_next(struct wlb_packer *packer, const struct wlb_span *batch, size_t count,
                                       struct wlb_error *error);

/* The state of the packer, for a checkpoint: writes wlb_packer_state_bytes() bytes, the same on every machine. A packer
 * with equal options and model that restores them returns exactly the same later steps. Damaged bytes and bytes of
 * another version or of other options are refused; the packer is then unchanged. */
size_t wlb_packer_state_bytes(const struct wlb_packer *packer);
void wlb_packer_save(const struct wlb_packer *packer, void *state);
int wlb_packer_restore(struct wlb_packer *packer, const void *state, size_t bytes, struct wlb_error *error);

/* Assigns `count` spans of tokens[] tokens to `bins` micro-batches, 1 to 2^24, of at most `max_tokens`, 0 to 2^60: the
 * longest first, to the lightest with space. Then the heaviest exchanges spans with the lightest, or, where that does
 * not lower its work, with one of the 64 next lightest. This ends where no such exchange lowers its work by about 1e-5
 * of the mean, where the heaviest has at most 1.0001 times the mean, after 8 exchanges for each micro-batch, or after a
 * number of operations proportional to spans and micro-batches. bin_of[i] receives the bin of span i. Work is
 * wlb_cost_document. Returns -1 where a span does not fit. */
int wlb_pack_balanced(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t bins,
                      int64_t max_tokens, int32_t *bin_of, struct wlb_error *error);

/* The same for a sequence of steps, with work as wlb_packer_options.work returns it. Memory is kept between steps and
 * grows to the size of the largest step. The caller owns work_context, which must outlive the balancer. Threads that
 * share a balancer must use a lock. Returns NULL with a message if out of memory; wlb_balancer_free frees it. */
struct wlb_balancer;
struct wlb_balancer *wlb_balancer_new(double (*work)(const void *context, int64_t tokens), const void *work_context,
                                      struct wlb_error *error);
void wlb_balancer_free(struct wlb_balancer *balancer);

/* Returns 0, 1 where a span does not fit, so that a caller with an alternative can distinguish that from an error, or
 * -1 on an error. Work that is not finite, or not above 0 for a span with tokens, is an error. The balancer can
 * be used again after 1 and -1. */
int wlb_balancer_pack(struct wlb_balancer *balancer, const int64_t *tokens, size_t count, int32_t bins,
                      int64_t max_tokens, int32_t *bin_of, struct wlb_error *error);

/* ---- dynamic context parallelism --------------------------------------------------------- */

/* The place of a document: it runs on `ranks` consecutive ranks from `first_rank` on, each with an equal part of its
 * work (as per-document sharding cuts it). ranks is 1, 2, 4 ... or all; first_rank is a multiple of it. */
struct wlb_place {
	int32_t micro_batch;
	int32_t first_rank;
	int32_t ranks;
};

/* Assigns `count` documents of tokens[] tokens to `ranks` ranks (cp x dp) in each of `micro_batches` micro-batches,
 * with equal work on every rank in every micro-batch and at most `max_tokens`, 0 to 2^60, on a rank: short documents
 * run on one rank, long ones on the least power of two of ranks that keeps the work equal. After ByteScale (Ge et al.,
 * 2025) and FlexSP (Wang et al., ASPLOS 2025). A rank must run its documents of a micro-batch in descending order of
 * `ranks`, so that no two groups wait for each other. places[i] receives where document i runs, loads[micro_batch *
 * ranks + rank] the load of a rank. Returns -1 where documents do not fit. */
int wlb_dynamic_cp(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t ranks,
                   int32_t micro_batches, int64_t max_tokens, struct wlb_place *places, struct wlb_load *loads,
                   struct wlb_error *error);

/* Returns the next smaller number of ranks that a document may be on: the greatest power of two below `ranks`, which is
 * above 1. From all ranks down to 1 there are at most WLB_DYNAMIC_CP_SIZES. */
enum { WLB_DYNAMIC_CP_SIZES = 22 };
int32_t wlb_dynamic_cp_smaller(int32_t ranks);

/* What ranks have memory for in a micro-batch, and what keys cost them. */
struct wlb_rank_space {
	int32_t ranks;       /* cp x dp */
	int32_t key_ranks;   /* a rank exchanges keys of at most so many times rank_tokens; 1 to ranks */
	int64_t rank_tokens; /* most tokens on a rank, 0 to 2^60 / key_ranks */
	double key_work;     /* that a rank of a document has with the keys and values of each of its tokens that other
	                        ranks have, in the unit of `work`, at least 0 */
};

/* Steps of at most `windows` x seq_length tokens, in documents of at most seq_length, over dp replicas of cp ranks. The
 * limit of a micro-batch is that of one replica's share, cp x rank_tokens; a micro-batch is one of all replicas.
 *
 * Returns the least number of micro-batches that hold every such step where that limit is max_tokens, at least
 * seq_length. Where a document of t tokens fits in none of M micro-batches of at most K = dp x max_tokens, each holds
 * more than K - t: more than K - seq_length. Where the longest are assigned first, each also holds a document of at
 * least t, so that it holds more than K / 2 whatever t is. */
int64_t wlb_dynamic_cp_micro_batches_min(int32_t dp, int64_t max_tokens, int64_t seq_length, int64_t windows);

/* Returns the least limit with which micro-batches of `windows` for each replica hold every step: all replicas together
 * have space for one window more. */
int64_t wlb_dynamic_cp_max_tokens(int32_t dp, int64_t seq_length, int64_t windows);

/* Returns key_ranks: the least number, of those that a document may be on and at least cp, on whose groups all
 * documents of every step fit in micro_batches, and whose ranks have space for four windows. */
int32_t wlb_dynamic_cp_key_ranks(const struct wlb_layout *layout, int64_t rank_tokens, int32_t micro_batches,
                                 int64_t seq_length, int64_t windows);

struct wlb_placement {
	const struct wlb_place *places; /* of each document */
	const struct wlb_load *loads;   /* as those of wlb_dynamic_cp */
	/* 1: each document is on a group of key_ranks ranks, over which all documents of the group together are to be
	 * divided: each by itself could leave a rank with more tokens than it has space for. */
	int in_groups;
};

/* Places the documents of steps as wlb_dynamic_cp does, with work as wlb_packer_options.work returns it, and so that
 * ranks have equal tokens too; ranks that are more equal must be worth the keys that they exchange for it. Where it
 * finds no place for one within the space, as happens with few tokens on many ranks, each is on one of the groups of
 * key_ranks ranks. Equal inputs give equal places. The caller owns work_context, which must outlive the placer. Threads
 * that share a placer must use a lock. Returns NULL with a message if out of memory; wlb_placer_free frees it. */
struct wlb_placer;
struct wlb_placer *wlb_placer_new(const struct wlb_rank_space *space,
                                  double (*work)(const void *context, int64_t tokens), const void *work_context,
                                  struct wlb_error *error);
void wlb_placer_free(struct wlb_placer *placer);

/* Returns 0, 1 where the documents do not fit, or -1 on an error. The placement is the placer's until its next call. */
int wlb_placer_place(struct wlb_placer *placer, const int64_t *tokens, size_t count, int32_t micro_batches,
                     struct wlb_placement *placement, struct wlb_error *error);

/* The same with the rule of Megatron Core's hybrid context parallelism (BalancedCPScheduler,
 * megatron/core/pipeline_parallel/hybrid_cp_schedule.py): a document runs on the least power of two of ranks, or all,
 * of which none has more than `longest_part`, 1 to 2^60, of its tokens, whatever the others have; the longest first, on
 * the ranks of which the most loaded has the least sum of tokens^2 / ranks, the unit of loads[].work. The tokens of a
 * rank have no other limit. Returns -1 where all ranks are too few for a document. */
int wlb_hybrid_cp(const int64_t *tokens, size_t count, int32_t ranks, int32_t micro_batches, int64_t longest_part,
                  struct wlb_place *places, struct wlb_load *loads, struct wlb_error *error);

/* ---- kernel time ----------------------------------------------------------------------- */

/* Measured seconds of attention: seconds[i * k_count + j] is one layer forward, for all heads of one GPU, of
 * q_tokens[i] queries that are the last of k_tokens[j] keys (causal, aligned at the end). It should be measured as one
 * of many equal segments of one launch. Lengths are ascending, the greatest k_tokens is at least the greatest q_tokens,
 * seconds are positive; an entry with fewer keys than queries is not read. The caller owns the arrays. q_count 0: no
 * curve.
 */
struct wlb_attention_curve {
	const double *q_tokens;
	size_t q_count;
	const double *k_tokens;
	size_t k_count;
	const double *seconds;
};

/* Measured seconds of all matrix products of one layer forward on one GPU: seconds[i] for tokens[i] tokens, which are
 * ascending. The caller owns the arrays. count 0: no curve. */
struct wlb_gemm_curve {
	const double *tokens;
	const double *seconds;
	size_t count;
};

/* Time of the kernels of one GPU for one layer forward. Kernels work in tiles, and a tile that is filled in part takes
 * as long as a full one: a short shard therefore costs more than its share (WLB-LLM, Wang et al., OSDI 2025). A time is
 * the number of tiles at a speed: the speed of a full tile, or, where there is a curve, the speed of the curve at these
 * lengths. Between two points a curve is linear in the logarithm of the length; outside of its points it has the speed
 * of the nearest point. Only basic arithmetic is used, so that all kinds of processors predict the same time. */
struct wlb_kernel_time {
	int32_t q_tile; /* tokens of a tile of queries, of keys, of a matrix product: 1 to 65,536 */
	int32_t k_tile;
	int32_t gemm_tile;
	double attention_pair_s; /* a query against a key; not read where there is a curve */
	double segment_s;        /* of each segment in addition to its tiles; >= 0 */
	double gemm_token_s;     /* one token through all matrix products; not read where there is a curve */
	int64_t window;          /* sliding_window of the model; 0: none */
	double window_share;     /* of the layers, that have it: attention takes the time of the mean layer */
	struct wlb_attention_curve attention;
	struct wlb_gemm_curve gemm;
};

/* Sets tiles of 128, no curves, the model's windows, and speeds from its shape, split `tp` ways, and the FLOP/s that
 * the GPU achieves in each kind of kernel. */
void wlb_kernel_time_init(struct wlb_kernel_time *time, const struct wlb_model *model, int32_t tp,
                          double attention_flops_per_s, double gemm_flops_per_s);

/* Returns 0, or -1 with the value and the rule that it breaks. The functions below require a time that passes. */
int wlb_kernel_time_check(const struct wlb_kernel_time *time, struct wlb_error *error);

/* Seconds of `q_tokens` queries, the last of `k_tokens` keys: 1 <= q_tokens <= k_tokens <= 2^30. */
double wlb_attention_seconds(const struct wlb_kernel_time *time, int64_t q_tokens, int64_t k_tokens);

/* Seconds of the matrix products of `tokens` tokens, 0 to 2^30. */
double wlb_gemm_seconds(const struct wlb_kernel_time *time, int64_t tokens);

/* ---- sharding -------------------------------------------------------------------------- */

/* The methods that split the tokens of a micro-batch over the ranks of context parallelism. */
enum wlb_sharding {
	WLB_SHARDING_SEQUENCE, /* "per-sequence": 2 x ranks chunks of all documents end to end; rank r takes chunks r
	                          and 2 x ranks - 1 - r (Megatron-LM; Llama 3, Dubey et al., 2024) */
	WLB_SHARDING_DOCUMENT, /* "per-document": the same for each document by itself (WLB-LLM), without padding */
	WLB_SHARDING_ADAPTIVE, /* "adaptive": whichever of the two has the shorter attention time on its slowest rank */
};

/* The names above, and "unknown" for any other value; parse returns -1 with the value and the choices for any other
 * text. */
const char *wlb_sharding_name(enum wlb_sharding sharding);
int wlb_sharding_parse(const char *text, enum wlb_sharding *sharding, struct wlb_error *error);

/* A span of a document on a rank: one segment of an attention kernel, after the keys and values of all ranks were
 * gathered and put in document order. Query q_start + i, of the rank's rows, has position q_offset + i in its document
 * and attends to the keys k_start to k_start + q_offset + i. k_count is q_offset + q_count, so that kernels that align
 * causal masks at the end (flash attention of variable lengths) need only the two lengths. */
struct wlb_shard {
	int32_t document; /* the caller's index */
	int32_t q_start;
	int32_t q_count;
	int32_t k_start;
	int32_t k_count;
	int32_t q_offset;
};

struct wlb_shard_memory;

/* A sharded micro-batch. Zero it before the first use; each use replaces its contents, in memory that is kept and grows
 * to the size of the largest micro-batch; wlb_shards_free frees it. */
struct wlb_shards {
	enum wlb_sharding sharding; /* the sharding that was used: for adaptive, its choice */
	int32_t ranks;
	int64_t tokens;
	struct wlb_shard *shards; /* of rank r: [first_shard[r], first_shard[r + 1]), rows and tokens ascending */
	size_t *first_shard;
	int64_t *first_row; /* rank r has the rows [first_row[r], first_row[r + 1]) of the rows of all ranks, end to end
	                     */
	struct wlb_shard_memory *memory; /* private: owns these arrays and the memory for the next use */
};

/* Splits a micro-batch of `count` documents of tokens[] tokens, at most 2^30 in all, over 1 to 65,536 ranks. `time`
 * is read for adaptive only, and may be NULL otherwise. Returns -1 with a message on error; *shards is unchanged.
 *
 * Every token is on exactly one rank, and ranks differ by at most one token, per-document in every document too.
 * Per-document chunks of a document differ by at most one token; the longer chunks are chosen so that ranks have equal
 * attention, the longest document first. The difference that remains between ranks is about the work of one token, the
 * last of the longest document; the tests check that it is at most 1.1 times that on random documents of at least 2 x
 * ranks tokens. It is below 0.1% of the work of a rank that has some thousands of tokens. With few tokens, a rank with
 * one token more has the work of that token more, which no cut avoids. Per-sequence does not bound the difference in
 * work. */
int wlb_shard(enum wlb_sharding sharding, const struct wlb_kernel_time *time, const int64_t *tokens, size_t count,
              int32_t ranks, struct wlb_shards *shards, struct wlb_error *error);

/* The same for one micro-batch of dynamic context parallelism: each document that places[] puts in `micro_batch` is
 * sharded per document over its own ranks. Each rank has the number of tokens in the loads of wlb_dynamic_cp. Keys are
 * those of all documents of the micro-batch, in document order. */
int wlb_shard_places(const int64_t *tokens, const struct wlb_place *places, size_t count, int32_t ranks,
                     int32_t micro_batch, struct wlb_shards *shards, struct wlb_error *error);

void wlb_shards_free(struct wlb_shards *shards); /* NULL and zeroed allowed; leaves it zeroed */

/* Cumulative lengths of the n shards of a rank: n + 1 entries each, starting with 0. cu_seqlens_k is for kernels that
 * require the keys of each shard copied end to end; a kernel that takes k_start needs no copy. */
void wlb_shards_lengths(const struct wlb_shards *shards, int32_t rank, int32_t *cu_seqlens_q, int32_t *cu_seqlens_k);

/* The position of each of a rank's rows in its document, for rotary embeddings. */
void wlb_shards_positions(const struct wlb_shards *shards, int32_t rank, int32_t *positions);

/* The index, in document order, of the token that each of a rank's rows holds. */
void wlb_shards_tokens(const struct wlb_shards *shards, int32_t rank, int32_t *tokens);

/* The row, of the rows of all ranks end to end, that holds each token; puts gathered rows back in document order. */
void wlb_shards_rows(const struct wlb_shards *shards, int32_t *rows);

/* The work of a rank: pairs of a query and a key that it attends to in a layer without a window; FLOPs of one forward
 * pass as wlb_cost_document counts them; seconds of its attention in one layer forward. */
int64_t wlb_shards_pairs(const struct wlb_shards *shards, int32_t rank);
double wlb_shards_work(const struct wlb_shards *shards, int32_t rank, const struct wlb_model *model);
double wlb_shards_seconds(const struct wlb_shards *shards, int32_t rank, const struct wlb_kernel_time *time);

/* ---- document lengths to test on ------------------------------------------------------- */

/* A seeded stream of document lengths with the skew of a public corpus that is read with a window of 131,072 tokens:
 * quantiles 10% 646, 50% 3,227, 90% 5,784, 95% 6,110, 99% 26,070, 99.9% 119,836, all 124,913, mean 3,962, the logarithm
 * of the length linear between them. The same on every machine. */
struct wlb_lengths {
	uint64_t state;
	double tail;
};

/* `tail` multiplies the share of documents longer than the 99% and 99.9% quantiles: 1 as measured, 2 heavier, 0.5
 * lighter; it is clamped to [0, 4]. */
void wlb_lengths_init(struct wlb_lengths *lengths, uint64_t seed, double tail);
int64_t wlb_lengths_next(struct wlb_lengths *lengths);

/* ---- machine ----------------------------------------------------------------------------- */

/* Seconds to move n bytes = latency_s + n / bytes_per_s. One direction, for one GPU. */
struct wlb_link {
	double bytes_per_s;
	double latency_s;
};

/* Measured seconds of calls of two ranks of a node, by the bytes that each sends, which are ascending: all-gather,
 * reduce-scatter, and a message in one direction. Between points the logarithm of the seconds is linear in that of the
 * bytes; smaller calls take as long as the smallest, larger ones have the bandwidth of the largest. count 0: not
 * measured. */
enum { WLB_LINK_POINTS = 8 };
struct wlb_link_calls {
	int32_t count;
	double bytes[WLB_LINK_POINTS];
	double gather_s[WLB_LINK_POINTS], reduce_s[WLB_LINK_POINTS], send_s[WLB_LINK_POINTS];
};

/* Achieved FLOP/s of matrix products [rows x depth] x [depth x columns] on a grid of shapes, each axis ascending. A
 * rate contains the fixed time of a call. Between points a rate is linear in the logarithms of the three lengths,
 * and outside of the grid it is the rate of the nearest point. rows_count 0: not measured; else each count is at
 * least 1. */
enum { WLB_GEMM_ROWS = 16, WLB_GEMM_POINTS = 8 };
struct wlb_gemm_rates {
	int32_t rows_count, depth_count, columns_count;
	double rows[WLB_GEMM_ROWS], depth[WLB_GEMM_POINTS], columns[WLB_GEMM_POINTS];
	/* [(r * depth_count + d) * columns_count + c] */
	double flops_per_s[WLB_GEMM_ROWS * WLB_GEMM_POINTS * WLB_GEMM_POINTS];
};

/* Achieved FLOP/s of causal attention of `q` queries, the last of `k` keys, on a grid: 4 x head_dim FLOPs for each head
 * and each pair of a query and a key that it attends to; 2.5 times that backward. [q_index * k_count + k_index]; an
 * entry with fewer keys than queries is not read. Interpolation as above. q_count 0: not measured. */
enum { WLB_ATTENTION_POINTS = 8 };
struct wlb_attention_rates {
	int32_t q_count, k_count;
	double q_tokens[WLB_ATTENTION_POINTS], k_tokens[WLB_ATTENTION_POINTS];
	double forward_flops_per_s[WLB_ATTENTION_POINTS * WLB_ATTENTION_POINTS];
	double backward_flops_per_s[WLB_ATTENTION_POINTS * WLB_ATTENTION_POINTS];
};

/* Operations of a device (kernels/ops.h) beside matrix products and attention, in wlb-worker. Elements are those of the
 * result; of cross-entropy the logits, of sum_squares those of the vector, of rope_angles the angles. */
enum wlb_op {
	WLB_OP_EMBEDDING_FORWARD,
	WLB_OP_EMBEDDING_BACKWARD,
	WLB_OP_RMSNORM_FORWARD,
	WLB_OP_RMSNORM_BACKWARD,
	WLB_OP_ROPE,
	WLB_OP_ROPE_ANGLES,
	WLB_OP_SWIGLU_FORWARD,
	WLB_OP_SWIGLU_BACKWARD,
	WLB_OP_CROSS_ENTROPY_STATISTICS,
	WLB_OP_CROSS_ENTROPY_GRADIENT,
	WLB_OP_GATHER_ROWS,
	WLB_OP_ADD,
	WLB_OP_SUM_SQUARES,
	WLB_OP_ADAMW,
	WLB_OP_ZERO,
	WLB_OP_COPY,
	WLB_OPERATIONS, /* how many there are */
};

/* Measured seconds of an operation: call_s + elements x element_s. element_s 0: not measured; it then takes
 * operation_s, and the time of its memory traffic at memory_bytes_per_s. */
struct wlb_op_time {
	double call_s, element_s;
};

/* As in kernels/ops.h and in machine files: "rmsnorm_forward"; "unknown" for what is no operation. */
const char *wlb_op_name(enum wlb_op op);

/* Reals that the operation reads and writes for each element; 0 for what is no operation. */
double wlb_op_traffic(enum wlb_op op);

/* Returns 0 when all values of times[WLB_OPERATIONS] are in their range, -1 with the operation, the value and the rule
 * otherwise. */
int wlb_operations_check(const struct wlb_op_time *times, struct wlb_error *error);

/* A kernel of attention on a kind of GPU: the fields of struct wlb_machine that describe attention, of this one. */
struct wlb_attention_kernel {
	char name[16]; /* as a trainer calls it: fa2, fa3, cudnn, te, sdpa */
	double efficiency, backward_efficiency;
	int32_t tile_tokens;
	double overhead_keys;
};

enum { WLB_ATTENTION_KERNELS = 8 };

/* One kind of node. The files in libwlb/machines have these fields, with these names, and the source of each value.
 * A file may omit the fields after the first blank line; they are then 0, and each field's comment says what 0 means.
 */
struct wlb_machine {
	char name[64];
	int32_t gpus_per_node;
	double peak_flops;                    /* of one GPU, dense bfloat16, FLOP/s */
	double gemm_efficiency;               /* share of the peak that large matrix products achieve, (0, 1] */
	double attention_efficiency;          /* the same of the fused attention kernel, forward, on long documents */
	double attention_backward_efficiency; /* the same, backward */
	int32_t attention_tile_tokens;        /* the kernel pads a shard's queries to a multiple of it */
	double attention_overhead_keys;       /* the fixed time of a tile of queries, as a number of additional keys */
	double memory_bytes;                  /* of one GPU */
	double memory_bytes_per_s;            /* that norms, elementwise operations and the optimizer achieve */
	struct wlb_link node_link;            /* between GPUs of a node */
	struct wlb_link network_link; /* between nodes; the network ports of a node are divided among its GPUs */
	double switch_taper; /* share of the network bandwidth that traffic which leaves a leaf switch has, (0, 1] */
	double switch_latency_s; /* added to the latency of that traffic */

	struct wlb_link switch_link; /* between leaf switches where measured; bytes_per_s 0: from taper and latency */
	int32_t element_bytes;       /* of weights in use and of activations; 0: 2, bfloat16 */
	double operation_s;          /* fixed time of one operation (its launch, the start of its threads) */
	int32_t blocking_messages;   /* 1: the processors that compute also move messages, and only while the program
	                                waits for them: nothing of it is hidden behind computation (the CPU device) */
	struct wlb_op_time operations[WLB_OPERATIONS]; /* of those measured, used instead of memory_bytes_per_s */
	struct wlb_link_calls node_calls; /* if measured, used instead of node_link by the ranks of a node */
	/* Matrix products without a grid: a GPU of `processors` multiprocessors computes tiles of rows x columns of the
	 * result in waves of one tile on each. A tile takes its depth and `gemm_tile_depth` more: the time before its
	 * first product and after its last. processors 0: no tiles. */
	int32_t processors;
	int32_t collective_processors; /* of them that a collective at node_link's speed occupies: products beside it
	                                  have the others */
	int32_t gemm_tile_rows, gemm_tile_columns;
	double gemm_tile_depth;
	/* How many times the rate of bfloat16 large matrix products in 8 bits have: with a scale for each tensor, and
	 * with one for each 32 elements (MXFP8). 0: not known, or the processor has no such products. */
	double fp8_rate, mxfp8_rate;
	int32_t link_nodes; /* how many nodes, numbered one after the other, node_link connects; 0 counts as 1 */
	/* How much longer computation takes on the slowest rank than the medians in this struct say, while all ranks
	 * compute: computation in a step is multiplied by it. 0: not measured, counts as 1. */
	double slowest_rank;
	struct wlb_gemm_rates gemm;           /* if measured, used instead of the tile's fields and gemm_efficiency */
	struct wlb_attention_rates attention; /* if measured, used instead of the attention fields above */
	struct wlb_attention_kernel kernels[WLB_ATTENTION_KERNELS]; /* of published measurements */
	int32_t kernel_count;
	int32_t measured_threads; /* of a rank of the measurement, for `wlb check-node`: plans do not depend on it; 0:
	                             not known */
};

/* Returns 0 when every field is in its range, -1 with the field, its value and the rule otherwise. */
int wlb_machine_check(const struct wlb_machine *machine, struct wlb_error *error);

/* Checks measured speeds, in a machine that wlb_machine_check has accepted: an idle device could have them.
 * - A matrix product has a tenth at least of the rate of the next smaller one along each axis, and attention of that of
 *   fewer queries or keys: a lower rate was measured while something else ran.
 * - No product has a higher rate than peak_flops, and attention none above twice that.
 * - An operation, a call of node_calls, network_link and switch_link move no more than 10 times memory_bytes_per_s,
 *   since messages and small tables may stay in a cache; an element takes the time of a FLOP at least.
 * - slowest_rank is at most 3.
 * What was not measured is not checked. Returns -1 with the value, the rule and the remedy. */
int wlb_machine_plausible(const struct wlb_machine *machine, struct wlb_error *error);

/* Sets the attention fields to those of the kernel of that name. Returns -1 with the names that the machine has where
 * none is this one, or where attention was measured. */
int wlb_machine_use_kernel(struct wlb_machine *machine, const char *name, struct wlb_error *error);

/* Bytes of an element of weights and activations. */
double wlb_machine_element_bytes(const struct wlb_machine *machine);

/* The link between nodes, or that between leaf switches. */
struct wlb_link wlb_machine_network(const struct wlb_machine *machine, int crosses_switch);

/* Seconds of one matrix product [rows x depth] x [depth x columns] on one GPU; all at least 1. Of a linear layer of
 * `in` to `out` over some tokens: forward (tokens, in, out), the gradient of its input (tokens, out, in), of its weight
 * (out, tokens, in). Without a grid: tiles and waves as in NVIDIA's "Matrix Multiplication Background" guide, and no
 * less than reading and writing the matrices takes. */
double wlb_machine_gemm_s(const struct wlb_machine *machine, double rows, double depth, double columns);

/* How the factors of a layer's matrix products are scaled to 8 bits; the names are those of Megatron-LM's --fp8-recipe.
 */
enum wlb_fp8 {
	WLB_FP8_NONE,       /* products in the type of the activations */
	WLB_FP8_DELAYED,    /* a tensor's scale is from its magnitudes in earlier steps */
	WLB_FP8_TENSORWISE, /* from its own, which is found first (current scaling) */
	WLB_FP8_MXFP8,      /* 32 elements have a scale */
};

/* How many times the rate of bfloat16 its products have: 1 for WLB_FP8_NONE, 0 where the machine has no speed of them.
 */
double wlb_machine_fp8_rate(const struct wlb_machine *machine, enum wlb_fp8 fp8);

/* Returns 0 where the machine has a speed of these products, -1 with its name and the field that is missing. */
int wlb_machine_fp8_check(const struct wlb_machine *machine, enum wlb_fp8 fp8, struct wlb_error *error);

/* The same as wlb_machine_gemm_s with factors of 8 bits and a result in the type of the activations: what a tile takes
 * beside its depth stays. The machine must have passed wlb_machine_fp8_check. */
double wlb_machine_fp8_gemm_s(const struct wlb_machine *machine, enum wlb_fp8 fp8, double rows, double depth,
                              double columns);

/* `count` such products of one shape as one kernel, whose tiles share the multiprocessors. */
double wlb_machine_grouped_gemm_s(const struct wlb_machine *machine, enum wlb_fp8 fp8, double count, double rows,
                                  double depth, double columns);

/* GPUs that node_link connects: those of link_nodes nodes. */
int wlb_machine_linked_gpus(const struct wlb_machine *machine);

/* Seconds of an operation that memory bounds, which reads and writes `bytes` in all. */
double wlb_machine_stream_s(const struct wlb_machine *machine, double bytes);

/* Seconds of an operation of wlb-worker on `elements`: wlb_machine_op_call_s + elements x wlb_machine_op_element_s. */
double wlb_machine_op_s(const struct wlb_machine *machine, enum wlb_op op, double elements);
double wlb_machine_op_call_s(const struct wlb_machine *machine, enum wlb_op op);
double wlb_machine_op_element_s(const struct wlb_machine *machine, enum wlb_op op);

/* The highest rate of matrix products, FLOP/s: no product is faster. */
double wlb_machine_gemm_most(const struct wlb_machine *machine);

/* Seconds of the attention of `heads` heads on one GPU, of q_tokens queries that are the last of k_tokens keys,
 * forward or backward, 1 <= q_tokens <= k_tokens. A query attends to at most `window` keys, 0: no limit; a pair of a
 * query and a key then takes as long as in documents of that length. */
double wlb_machine_attention_s(const struct wlb_machine *machine, int heads, int head_dim, double window,
                               double q_tokens, double k_tokens, int backward);

/* The highest rate of attention, FLOP/s as above. */
double wlb_machine_attention_most(const struct wlb_machine *machine, int backward);

/* Seconds of a ring all-gather or reduce-scatter of NCCL over `ranks` ranks, `ranks_per_node` on each node. `bytes`: of
 * the whole result (all-gather) or of the whole input of a rank (reduce-scatter). The two take the same time, except
 * inside a node for which node_calls was measured. A ring that leaves the node uses the network ports of all its ranks
 * there. crosses_switch: 1 if the ring leaves a leaf switch. An all-reduce is one of each. */
double wlb_machine_gather_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                            double bytes);
double wlb_machine_reduce_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                            double bytes);

/* Seconds in which a rank of wlb-worker receives the keys and values of a token from another in one layer, copies them,
 * and returns their gradients, without latencies, over the links of all cp x dp ranks that may share a document.
 * Returns 0 where that is one rank. */
double wlb_machine_key_s(const struct wlb_machine *machine, const struct wlb_model *model,
                         const struct wlb_layout *layout);

/* Seconds of a broadcast from one rank, or a reduction to one, for which NCCL has a ring through all ranks alone
 * (src/graph/tuning.cc); its arguments are as above. */
double wlb_machine_root_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                          double bytes);

/* Seconds in which each of `ranks` ranks sends near_bytes to the others of its node by node_link, and far_bytes to
 * those of other nodes by its own network port, at the same time. What there is no rank for is not sent. */
double wlb_machine_exchange_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                              double near_bytes, double far_bytes);

/* Seconds of a message of `bytes` between two ranks of a node. */
double wlb_machine_node_send_s(const struct wlb_machine *machine, double bytes);

/* ---- topology ---------------------------------------------------------------------------- */

/* A switch of Slurm's topology/tree with its children, switches or nodes. The caller owns the arrays. */
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

/* Orders `nodes` nodes so that the nodes of a leaf switch, then those of the switch above it, are consecutive: depth
 * first, switches and nodes in their order in the topology. order[i] is the node at place i, leaf[i] the index of its
 * switch (-1 where it has none). Nodes without a switch come last. NULL or an empty topology keeps the order. Returns
 * -1 where a node or switch is out of range or under two switches, or the switches form a cycle. */
int wlb_topology_order(const struct wlb_topology *topology, int32_t nodes, int32_t *order, int32_t *leaf,
                       struct wlb_error *error);

/* ---- how a training program runs ------------------------------------------------------------ */

/* The program that trains: which operations it has. */
enum wlb_cost_trainer {
	WLB_COST_MEGATRON, /* Megatron-LM, and programs like it: fused matrices of queries, keys and values and of
	                         gate and up; bfloat16 with a float32 master weight */
	WLB_COST_WORKER,   /* wlb-worker: the same matrices; WLB_RECOMPUTE_SELECTIVE computes norms again, and under
	                         all three the gated product is computed again and attention is fused */
};

enum { WLB_RECOMPUTE_SETS = 6 };

/* Shares of communication that are hidden behind computation, 0 to 1. */
struct wlb_overlap {
	double forward, backward; /* in passes of either direction */
};

/* The communication that runs beside computation, and the types in memory. */
struct wlb_cost_options {
	enum wlb_cost_trainer trainer;
	struct wlb_overlap tp_overlap; /* of tensor-parallel communication, behind the products of a layer */
	int64_t halved_rows;           /* WLB_COST_WORKER: micro-batches of at least so many rows on a rank have halves
	                                  whose communication is beside the other half's products; 0: none has */
	struct wlb_overlap cp_overlap; /* of context-parallel communication, behind attention over the keys of other
	                                  ranks, (cp - 1) / cp of it; with WLB_COST_WORKER forward behind the product of
	                                  the queries and their rotary embedding, backward behind one of those of
	                                  attention's output */
	int overlap_gradients;         /* 1: gradients are reduced as soon as the last backward pass has them */
	int overlap_parameters;        /* 1: weights are gathered beside the first forward passes of the next step */
	int overlap_pp;                /* 1: a stage computes while it sends and receives */
	/* 1: the ranks of a stage are neighbours, and the stages of a replica dp x cp x tp ranks apart, as in
	 * Megatron-LM; 0: the ranks of a replica are neighbours, as in wlb-worker. */
	int pp_outermost;
	/* 1: with ZeRO-1 weights are gathered before each forward pass, and kept, and gradients reduced in each
	 * backward pass, as FSDP does in a pipeline that does not tell it which pass is the last; 0: once in a step. */
	int shards_each_pass;
	int32_t gradient_bytes;  /* of an element of the gradients that are summed and reduced: 4 float32, 2 bfloat16 */
	int keep_outputs;        /* 1: a stage keeps what it has sent until its backward pass; 0: it frees it */
	int release_activations; /* 1: outputs of norms and the gated product are freed after their use and computed
	                            again in the backward pass, with WLB_RECOMPUTE_SELECTIVE */
	/* Sets of modules (enum wlb_recompute) that the search tries between SELECTIVE and FULL, in this order; 0 ends
	 * them. Those of modules that the model has not are left out. */
	int32_t recompute_sets[WLB_RECOMPUTE_SETS];
	int embedding_product; /* 1: the rows of the embedding are a product with a matrix of zeros and ones */
	/* 1: of a model whose norms have biases, as GPT's, those of the matrices are added, and their gradients summed,
	 * by operations of their own; 0: by the products, norms and activations beside them. */
	int biases_apart;
	/* 1: the layers of a stage are one loop, as of XLA's scan: what their products give is copied into one tensor
	 * of all layers for the backward pass, but where whole layers are recomputed, and with ZeRO-3 a layer's weights
	 * are gathered from its beginning on; 0: beside the layer before it. */
	int looped_layers;
	int full_attention;    /* 1: FLOPs of utilization count attention to later tokens too, as Megatron-LM does */
	int unfused_attention; /* 1: attention is products and a softmax of their own, over all pairs, whose scores are
	                          in memory; with WLB_RECOMPUTE_NONE they are kept for the backward pass */
	int whole_rows;        /* 1: each tensor-parallel rank has all rows of the residual stream and of the norms; 0:
	                          its share of them (sequence parallelism, Korthikanti et al. 2022) */
	int rows_by_node;      /* 1: a row is sent once to each node that has some of its experts, and copied there; 0:
	                          once to each of its experts */
	int rows_by_rank;    /* 1: the same of ranks, and rows are not put in the order of ranks before they are sent */
	int experts_in_turn; /* 1: a benchmark's gate gives each row the next num_experts_per_tok experts, which are
	                        neighbours; 0: any of them, equally likely */
	int grouped_experts; /* 1: the like products of a rank's experts are one kernel; 0: each is one */
	int fused_experts;   /* 1: with WLB_FP8_MXFP8 these kernels also compute the gated product, and cast what the
	                        next product takes, in both directions; 0: operations of their own do */
	/* Above 0: rows go to experts and back beside the computation of another micro-batch in the other direction, in
	 * kernels on so many multiprocessors, where layers are not recomputed, and pp is 1 or interleave above 1. */
	int32_t exchange_processors;
	double exchange_rate; /* share of the network's rate at which rows travel between nodes; 0 counts as 1 */
	/* 1: what experts give is weighted before their last product, so that no backward pass needs what it gives, and
	 * with early_stop rows that are recomputed are not sent back; 0: after it. */
	int weighted_experts;
	int owned_tensors; /* 1: ZeRO-1 gives whole tensors to ranks: each is reduced to its rank and sent from it to
	                      all others; 0: all of a chunk are one buffer, of which each rank has a share */
	int fused_loss;    /* 1: the loss is one kernel in either direction, which has each logit in two bytes; 0: as in
	                      Megatron-LM r0.8, with a copy in float32 and an operation for each step */
	double elementwise; /* how many times their least memory traffic norms, sums, gated product and loss have: 1
	                       where they are fused; 0 counts as 1 */
	int early_stop;     /* 1: layers are recomputed up to their last product, whose result no backward pass reads;
	                       0: to their end */
	enum wlb_fp8 fp8;   /* the products of layers; attention, router, embedding and head stay as they are */
	int fp8_parameters; /* 1: weights of layers are kept and gathered in 8 bits, where products have them; 0: in the
	                       type of the activations, and their casts are kept beside them */
	int fp8_inputs; /* 1: the inputs of these products are kept for the backward pass in 8 bits; 0: as they came */
	double growth;  /* share by which computation takes longer with each doubling of the GPUs beyond 8, 0 to 0.1: on
	                   more of them the slowest is slower */
	/* 1: operations keep their inputs one by one, as PyTorch without a compiler: norms in float32, what passes the
	 * gate and, with unfused_attention, keys and values of each head and scores in float32. */
	int eager;
	/* 1: rotary embeddings, and the biases of experts and sinks of attention of GPT-OSS, are several operations of
	 * PyTorch, and the loss is its cross_entropy, as in NeMo AutoModel of 2025; 0: each is one kernel or in one
	 * beside it, and the loss as fused_loss says. */
	int split_operations;
	/* Of a parameter, for master weight and Adam's two moments: 12 where they are float32, 8 with moments of
	 * bfloat16, 6 where all are; 4 to 12, 0 for wlb-worker. */
	double optimizer_bytes;
	int gather_masters; /* 1: with ZeRO-3 a rank has shards of masters and gradients of one type alone, as FSDP */
	int keep_gradients; /* 1: gradients in the type of the weights stay beside the sums of more bytes, and copies of
	                       them for the update are one tensor, beside activations: DeepSpeed */
	double logit_bytes; /* of a logit: all copies of it that there are at once; 2 to 16 */
	double fragmentation; /* share of what is allocated that the allocator reserves beyond it, 0 to 1 */
	double context_bytes; /* of CUDA's context, without what NCCL allocates; 0 to 2^36 */
};

/* Sets the defaults: how Megatron-LM runs with the options that its published measurements have (README.md of r0.8:
 * --overlap-grad-reduce, --overlap-param-gather, --tp-comm-overlap, communication of pp overlapped by default; float32
 * gradients, which its arguments.py sets for bfloat16; outputs of stages freed after they were sent). Keys and values
 * are gathered before attention and not hidden, as Llama 3 does (Dubey et al. 2024). */
void wlb_cost_options_init(struct wlb_cost_options *options);

/* Sets how wlb-worker runs on a machine. Over NCCL gradients are reduced beside the last backward pass, weights
 * gathered beside the first forward pass, and sends beside computation. Of the six tensor-parallel collectives of a
 * layer's backward pass four are beside its products, of the context-parallel ones those of the backward pass; in the
 * forward pass nothing is independent of them, unless rows are halved (halved_rows, 0 here). On a machine with
 * blocking_messages, over MPI, nothing is hidden. Gradients have 4 bytes where the machine's elements have fewer. */
void wlb_cost_options_worker(struct wlb_cost_options *options, const struct wlb_machine *machine);

/* Returns 0 when every field is in its range, -1 with the field, its value and the rule otherwise. */
int wlb_cost_options_check(const struct wlb_cost_options *options, struct wlb_error *error);

/* ---- memory ------------------------------------------------------------------------------ */

/* What is recomputed in the backward pass: a set, none, selective or full, or the bits of the modules from CORE_ATTN
 * on. Modules have the names of Megatron Core's --recompute-modules (core/transformer/transformer_config.py), but for
 * act. */
enum wlb_recompute {
	WLB_RECOMPUTE_NONE = 0,             /* nothing, beyond what a fused kernel of attention always does */
	WLB_RECOMPUTE_SELECTIVE = 1,        /* attention that is not fused (Korthikanti et al. 2022); with
	                                       release_activations LAYERNORM and ACT too */
	WLB_RECOMPUTE_FULL = 2,             /* whole layers, from their input */
	WLB_RECOMPUTE_CORE_ATTN = 4,        /* attention, fused or not */
	WLB_RECOMPUTE_LAYERNORM = 8,        /* the norms before attention and MLP */
	WLB_RECOMPUTE_MLA_UP_PROJ = 16,     /* what latent attention makes queries, keys and values with */
	WLB_RECOMPUTE_MLP = 32,             /* the MLPs of layers without experts */
	WLB_RECOMPUTE_MOE = 64,             /* the choice of experts, rows on their way to them and back, all experts */
	WLB_RECOMPUTE_MOE_ACT = 128,        /* gated products of experts, but of the shared one */
	WLB_RECOMPUTE_SHARED_EXPERTS = 256, /* the expert that all rows have */
	WLB_RECOMPUTE_ACT = 512,            /* gated products of all MLPs */
};

enum { WLB_RECOMPUTE_TEXT_BYTES = 80 };

/* Writes "none", "selective", "full", or the names of modules: "layernorm,moe_act". */
void wlb_recompute_set_format(enum wlb_recompute set, char *text, size_t size);

/* Reads what wlb_recompute_set_format writes, modules in any order; in place of commas also spaces. -1 with the word
 * that names nothing. */
int wlb_recompute_set_parse(const char *text, enum wlb_recompute *set, struct wlb_error *error);

/* Returns 0 where it is a set that the model has the modules of: MLA_UP_PROJ needs latent attention, MOE, MOE_ACT and
 * SHARED_EXPERTS experts; and where the program does so: wlb-worker has no modules. -1 with a message otherwise.
 * `options` NULL: any program. */
int wlb_recompute_set_check(enum wlb_recompute set, const struct wlb_model *model,
                            const struct wlb_cost_options *options, struct wlb_error *error);

/* A layout and the other values that decide memory and schedule. */
struct wlb_plan {
	struct wlb_layout layout;
	int32_t interleave;    /* v: chunks of layers on each pipeline stage; 1 is plain 1F1B */
	int32_t micro_batches; /* of each data-parallel replica in a step */
	int32_t zero_stage;    /* 0 to 3 (Rajbhandari et al. 2020), over the dp x cp ranks that hold the same weights */
	enum wlb_recompute recompute;
	int32_t recompute_layers; /* WLB_RECOMPUTE_FULL: of each chunk, its first layers; 0: all (Megatron-LM:
	                             --recompute-method block --recompute-num-layers); the others are as with
	                             WLB_RECOMPUTE_SELECTIVE */
	/* 1: the embedding, or the head with its loss, counts as a layer where layers are divided among chunks, as
	 * Megatron-LM's --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split. More than
	 * 1, with interleave 1 and pp above 1 alone: the first stage, or the last, has so many layers less than the
	 * others, as Megatron-LM's --decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers. */
	int32_t account_for_embedding, account_for_loss;
	/* 1: every stage computes the head (the product with the vocabulary, the loss, their gradients) of an equal
	 * share of the rows of each micro-batch; see wlb_plan_pass. 0: the last stage computes all of it. */
	int32_t shared_head;
	/* 0: each document is on all cp ranks of a replica. Above 0: on as many of the cp x dp ranks as it needs
	 * (wlb_dynamic_cp), and a rank of wlb-worker reserves memory for the keys and values of so many. */
	int32_t dynamic_cp;
	/* Expert parallelism: the experts of each layer are divided among so many of the dp x cp ranks that would hold
	 * copies of them; tensor parallelism cuts each (Megatron-LM's --expert-model-parallel-size, with the
	 * expert-tensor-parallel size that it takes by default). 0 and 1: each rank has all. */
	int32_t ep;
};

/* Returns 0 when the plan can run, -1 with a message otherwise. The rules: its layout passes wlb_layout_check for this
 * model, layers + account_for_embedding + account_for_loss >= pp x interleave, interleave > 1 only with pp > 1 and
 * micro_batches a multiple of pp (as Megatron-LM requires), zero_stage 0 to 3 (2 and 3 not with pp > 1),
 * recompute passes wlb_recompute_set_check, recompute_layers not negative, shared_head 1 only with pp > 1, ep above 1
 * divides num_experts and dp x cp, dynamic_cp at most dp x cp, which times micro_batches is at most 2^20 then. Where pp
 * is 1 the two accounts change nothing. */
int wlb_plan_check(const struct wlb_plan *plan, const struct wlb_model *model, struct wlb_error *error);

/* Peak bytes on each GPU of one pipeline stage. Megatron-LM: weights in use of the machine's element size, gradients of
 * options->gradient_bytes and states of options->optimizer_bytes. Where these are float32 and gradients are not, the
 * update copies gradients to float32 when no activations are there: `optimizer` has what the copies need beyond
 * activations and logits, and all of them with keep_gradients. wlb-worker: gradients of 4 bytes, and with elements of 2
 * bytes 10 bytes of states, since the weight is a half of its master; otherwise weights, gradients and two moments of
 * one size. */
struct wlb_memory {
	double weights;
	double gradients;
	double optimizer;
	double activations; /* of all micro-batches in flight on this stage */
	/* On stages with the head: logits and the copies of them that the loss makes. wlb-worker: the logits share
	 * memory with the gradients of a layer's activations; this is what they need beyond that. */
	double logits;
	double buffers;       /* of communication */
	double allocated;     /* the sum of all above */
	double fragmentation; /* options->fragmentation of that */
	double runtime;       /* CUDA's context, and what NCCL allocates for the communicators of the plan */
	double reserved;      /* the sum of these three: what a GPU must have */
	double saved;         /* of the host, beyond these: the copy that a rank of wlb-worker makes for a checkpoint */
	double saved_local;   /* the same with near checkpoints in a RAM disk, which is in it */
};

/* Memory of stage 0 to pp - 1 where the largest micro-batch has `tokens` tokens and its longest document `longest`
 * (used only where attention is not fused). The plan must have passed wlb_plan_check. */
struct wlb_memory wlb_memory_stage_of(const struct wlb_plan *plan, const struct wlb_model *model,
                                      const struct wlb_machine *machine, const struct wlb_cost_options *options,
                                      int32_t stage, int64_t tokens, int64_t longest);

/* The same for bfloat16 and the options of wlb_cost_options_init. */
struct wlb_memory wlb_memory_stage(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                                   int64_t tokens, int64_t longest);

/* Returns the number of rows whose logits wlb-worker computes at a time: as many as fit in 512 MiB for the largest
 * vocabulary shard of a tp rank, at least 128, so that the GEMM stays efficient, and at most `rows`, which is at least
 * 1. */
int64_t wlb_logit_rows(int64_t rows, int64_t vocab_size, int32_t tp, int64_t element_bytes);

/* wlb-worker reduces the gradients of the matrices of several layers at once, of as many as have this many elements, so
 * that a reduction is worth its latency. Megatron-LM takes 40 million parameters. This is less, so that small models
 * too reduce the first gradients while the others are still computed. */
enum { WLB_BUCKET_ELEMENTS = 10000000 };

/* ---- pipeline ---------------------------------------------------------------------------- */

/* A pass: the forward or backward pass of one chunk of a stage's layers over one micro-batch, or the head of the
 * stage's share of its rows. */
struct wlb_pass {
	int32_t chunk; /* 0 to interleave - 1 */
	int32_t micro_batch;
	int32_t backward; /* 0 forward, 1 backward */
	int32_t head;     /* 1: the share of the head, forward and backward; chunk is the last one, backward 0 */
};

/* The order of 1F1B (Narayanan et al. 2019) and interleaved 1F1B (Narayanan et al. 2021), as Megatron-LM runs them:
 * pass `n` of a stage, 0 to wlb_plan_passes() - 1. Here and below the plan must have passed wlb_plan_check.
 *
 * With a shared head each stage but the last also has one pass over its share of the head for each micro-batch: after
 * the forward pass of the model's last chunk, whose rows it needs, and before the backward pass there, which needs
 * their gradient; the last stage computes its own share at the beginning of that backward pass. For the time between,
 * every stage has one forward pass more before its first backward pass: one more micro-batch is in flight. */
struct wlb_pass wlb_plan_pass(const struct wlb_plan *plan, int32_t stage, int64_t n);

/* Writes all passes of a stage in their order; returns their number, wlb_plan_passes(). Faster than one after another.
 */
int64_t wlb_plan_order(const struct wlb_plan *plan, int32_t stage, struct wlb_pass *passes);

/* Returns the number of passes of a stage in a step: 2 x interleave x micro_batches, and the shares of the head. */
int64_t wlb_plan_passes(const struct wlb_plan *plan, int32_t stage);

/* Returns the number of forward passes that a stage runs before backward and forward passes alternate. */
int64_t wlb_plan_warmup(const struct wlb_plan *plan, int32_t stage);

/* Returns the most chunks of a stage whose forward pass is begun and whose backward pass is not done: those of its
 * warm-up and one more, or all. */
int64_t wlb_plan_in_flight(const struct wlb_plan *plan, int32_t stage);

/* Returns how many of these are of the stage's first chunk, whenever so many are in flight: at least. */
int64_t wlb_plan_first_in_flight(const struct wlb_plan *plan, int32_t stage);

/* The number of layers of a chunk of a stage, and its first layer. Chunk c of stage s is number c x pp + s of
 * the model's chunks; the first has the embedding, the last the head. Layers, with what the plan accounts for, are
 * divided evenly; those that remain go to the first chunks. So a chunk may be the embedding or the head alone, without
 * a layer: Llama 3 405B (Dubey et al., 2024) has 126 layers in 16 x 8 chunks. */
int64_t wlb_plan_layers(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk);
int64_t wlb_plan_first_layer(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk);
/* The number of layers of all chunks of a stage. */
int64_t wlb_plan_stage_layers(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage);

/* ---- simulator --------------------------------------------------------------------------- */

/* Where the attention of a micro-batch runs. */
enum wlb_sim_attention {
	WLB_SIM_SHARDED, /* on all its context-parallel ranks, as `sharding` cuts it */
	WLB_SIM_DYNAMIC, /* a document on 1, 2, 4 ... cp of them by its work (wlb_dynamic_cp), no rank with more than
	                    1.25 equal shares of tokens; `sharding` is used where they do not fit. With
	                    plan.dynamic_cp, which needs it, see there */
	WLB_SIM_HYBRID,  /* by its length (wlb_hybrid_cp), none with more than its equal share of the
	                    micro-batch's tokens on a rank */
	WLB_SIM_SERVERS, /* on attention servers (DistCA, arXiv:2510.18121): the GPUs of all stages and replicas share
	                    the attention of all micro-batches equally, which is simulated as the mean of the step.
	                    Every token's query, key and value go to another GPU and its output back, beside the
	                    computation of another micro-batch; what that does not hide is cp_s. A document's keys are
	                    sent once */
};

struct wlb_sim_options {
	struct wlb_plan plan;
	enum wlb_sharding sharding;
	enum wlb_sim_attention attention;
	int ring; /* 1: keys and values go around the context-parallel ranks beside the attention over those that have
	             arrived (Liu et al. 2023; Megatron-LM's --cp-comm-type p2p), which hides them but for the first
	             1 / cp of it; 0: gathered before attention, of which cost.cp_overlap is hidden */
	int32_t windows; /* of a micro-batch, at least 1: per-sequence sharding cuts each, an equal share of the tokens,
	                    by itself */
	int64_t rank_tokens; /* with plan.dynamic_cp: most tokens on a rank in a micro-batch; 0: 1.25 equal shares */
	int timeline;        /* 1: record the timeline */
	struct wlb_cost_options cost;
	const int32_t *leaf;    /* switch of each node in rank order, from wlb_topology_order; NULL: all under one */
	const double *slowdown; /* of each rank of the layout: factor on the time of its computation, >= 1; NULL: 1 */
};

/* Sets the defaults: adaptive sharding, one window in a micro-batch, a timeline, those of wlb_cost_options_init, one
 * switch, no stragglers. */
void wlb_sim_options_init(struct wlb_sim_options *options, const struct wlb_plan *plan);

/* The parts of a step's time: seconds, the mean over all GPUs; they sum to step_s. */
struct wlb_sim_time {
	double step_s;
	double compute_s;   /* GEMMs, attention, memory traffic: the mean context-parallel rank */
	double recompute_s; /* forward work done again */
	double tp_s;        /* communication not hidden */
	double cp_s;
	double ep_s; /* rows sent to the ranks of their experts, and back */
	double pp_s;
	double dp_s;
	double optimizer_s;
	double bubble_s;       /* idle in a pipeline of equal micro-batches of the same total work */
	double cp_imbalance_s; /* waiting for the context-parallel rank with the most attention */
	double imbalance_s;    /* idle beyond bubble_s, from unequal micro-batches and stages */
	double straggler_s;    /* added by slow ranks */
};

/* One bar of the timeline. */
struct wlb_sim_event {
	int32_t replica; /* data-parallel */
	int32_t stage;
	int32_t chunk;       /* 0 to interleave - 1 */
	int32_t micro_batch; /* of the step, as in struct wlb_packed_span */
	int32_t backward;    /* 0 forward, 1 backward */
	int32_t head;        /* 1: a stage's share of the head */
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

/* A simulator for one model, machine and options; all are copied except leaf and slowdown, which must outlive it.
 * wlb_sim_free frees it. Returns NULL with a message where the plan, the machine or an option is refused. */
struct wlb_sim;
struct wlb_sim *wlb_sim_new(const struct wlb_model *model, const struct wlb_machine *machine,
                            const struct wlb_sim_options *options, struct wlb_error *error);
void wlb_sim_free(struct wlb_sim *sim);

/* Simulates one training step. It holds dp x micro_batches micro-batches; micro-batch j runs on replica j mod dp, as
 * Megatron-LM's sampler assigns them. A step with r x micro_batches micro-batches, r < dp, is a sample: the first r
 * replicas represent all. With plan.dynamic_cp a micro-batch is one of all replicas of the step: documents are placed
 * by wlb_placer_place, whichever micro-batch the step has them in, and all ranks wait for the one with the most work.
 * Discrete events: a pass starts when its stage is free and its input has arrived; 1F1B
 * (Narayanan et al. 2019) and interleaved 1F1B (Narayanan et al. 2021) over unequal micro-batches. Returns -1 where the
 * number of micro-batches does not match. */
int wlb_sim_step(struct wlb_sim *sim, const struct wlb_step *step, struct wlb_sim_result *result,
                 struct wlb_error *error);

/* Seconds that a document adds to one layer of a micro-batch, forward and backward, without the parts that do not
 * depend on its length. For wlb_packer_options.work, with `sim` as its context, so that micro-batches have equal time
 * rather than equal FLOPs. A token's share of what is not attention is that in a micro-batch of one window of the
 * model's max_position_embeddings: set that to the window with which documents are packed. Where the machine has
 * measured times, the logarithm of the C library is used, so that two C libraries may return values that differ in the
 * last digit, and packings of them may differ. */
double wlb_sim_document_s(const void *sim, int64_t tokens);

/* The bars of the last simulated step, in the order in which the stages of each replica ran them; none where
 * options.timeline is 0. Owned by the simulator, valid until its next step. `count` is the passes of all stages
 * (wlb_plan_passes) x replicas. */
const struct wlb_sim_event *wlb_sim_timeline(const struct wlb_sim *sim, size_t *count);

/* Failures: useful time divided by wall time of a run that saves every interval_s, by the complete model of Daly
 * (2006): failures are independent, one failure ends the attempt, and the work since the last checkpoint is lost. */
struct wlb_failures {
	double mtbf_s; /* of one node */
	int32_t nodes;
	double interval_s;   /* useful time between checkpoints; 0: the best interval, found by golden section */
	double checkpoint_s; /* a checkpoint stops training for this long */
	double restart_s;    /* from the failure until training continues */
};

struct wlb_goodput {
	double share;      /* of wall time that is useful, (0, 1] */
	double interval_s; /* of wlb_failures, or the best one found */
	double failures_per_day;
	double lost_checkpoint; /* shares of wall time: saving */
	double lost_failures;   /* restarts and work done twice */
};

int wlb_goodput(const struct wlb_failures *failures, struct wlb_goodput *goodput, struct wlb_error *error);

/* ---- search ------------------------------------------------------------------------------ */

/* The values that the caller fixes; the search varies all others. 0, and -1 of `recompute`, leave a value to the
 * search. */
struct wlb_search_fixed {
	int tp, cp, pp, dp;
	int ep; /* of struct wlb_plan */
	int32_t interleave;
	int32_t micro_batch_windows; /* windows of seq_length in a micro-batch, as --micro-batch-size of trainers */
	int recompute;               /* enum wlb_recompute */
	int32_t recompute_layers;    /* of struct wlb_plan, with WLB_RECOMPUTE_FULL alone; 0: all layers */
	int account_for_embedding;   /* of struct wlb_plan; -1: the search chooses; above 1 both are fixed, pp above
	                                1, and interleave 1 */
	int account_for_loss;
	int shared_head; /* of struct wlb_plan: 0 or 1; -1: the search chooses; 1 holds for plans with pp > 1 */
};

struct wlb_search_options {
	int32_t nodes;
	const int32_t *gpus_of_node; /* usable GPUs of each, 0: no use of the node; NULL: the machine's gpus_per_node */
	const struct wlb_topology *topology; /* NULL: all under one switch */
	int64_t seq_length;
	int32_t global_batch; /* windows of seq_length tokens in a step */
	double batch_fill;    /* mean tokens of a step, divided by global_batch x seq_length: less than 1 where a step
	                         takes documents until the next one would exceed them, as that of wlb-worker does */
	double max_length_ratio; /* limit of a micro-batch: this times its share of the batch, or the window if larger;
	                            documents that do not fit so as a whole are cut */
	int64_t max_tokens; /* limit of a micro-batch that the user gave, in tokens; 0: as max_length_ratio has it */
	int32_t least_micro_batches;   /* of all replicas together: a program that has max_tokens may need more than the
	                                  windows of a micro-batch say; 0: no more */
	const struct wlb_step *sample; /* [samples] packed batches of the stream; the search packs their documents again
	                                  for each number of micro-batches */
	size_t samples;                /* number of entries in sample */
	int32_t zero_stage;            /* 0 to 3, see wlb_plan */
	struct wlb_cost_options cost;
	enum wlb_sharding sharding;
	int dynamic; /* 1: WLB_SIM_DYNAMIC, see wlb_sim_options; plans of wlb-worker have dynamic_cp */
	/* Which micro-batch memory is computed for. 1: the longest that the limit allows, for a program that allocates
	 * it at the start in whole windows (the share is rounded up). 0: the longest that packing makes of the samples.
	 */
	int charge_limit;
	double near_equal; /* share by which a plan may be slower and still be preferred, 0 to 1 */
	struct wlb_search_fixed fixed;
	int every_gpu;          /* 1: only plans with a rank on every usable GPU, for launchers that start that many */
	int prefer_every_gpu;   /* 1: of nearly equal plans, those with a rank on every usable GPU come first */
	int32_t keep;           /* most candidates of each kind in the result */
	int32_t most_simulated; /* at most this many plans are simulated */
};

/* Sets the defaults: batches filled, ratio 1.25, ZeRO stage 1, those of
 * wlb_cost_options_init, adaptive sharding, plans equal within 1 %, nothing fixed (neither the embedding nor the loss
 * counts as a layer), 10 candidates kept, at most 256 simulated; all else is zero. */
void wlb_search_options_init(struct wlb_search_options *options, int32_t nodes, int64_t seq_length,
                             int32_t global_batch);

struct wlb_candidate {
	struct wlb_plan plan;
	int64_t micro_batch_tokens; /* of the longest, for which memory is charged: see charge_limit */
	int32_t gpus;               /* used */
	struct wlb_memory memory;   /* of the stage that needs the most */
	int32_t stage;              /* with that memory */
	double missing_bytes;       /* that the plan needs beyond the GPU's memory; 0 where it fits */
	double bound_s;             /* lower bound of the step time */
	double step_s;              /* simulated, mean of the samples; 0 where it was not simulated */
	struct wlb_sim_time time;   /* parts of step_s */
	double tokens_per_s;        /* of all GPUs; 0 where it was not simulated */
	double utilization;         /* of the GPUs used, see struct wlb_sim_result; 0 where it was not simulated */
};

struct wlb_search_result {
	const struct wlb_candidate *ranked; /* simulated: the first is the best plan, the others by ascending step_s */
	size_t ranked_count;
	const struct wlb_candidate *misfits; /* plans that do not fit: first, of each layout of powers of two of which
	                                        no plan fits, the one that misses least */
	size_t misfit_count;
	double fastest_s;  /* the least step_s of all */
	int preferred;     /* 1: the best plan is not the fastest, but nearly equal, and its layout is preferred */
	int64_t tried;     /* plans that the machine and model allow */
	int64_t no_memory; /* of `tried`: did not fit in memory */
	int64_t pruned;    /* of `tried`: their bound was above the best step time and what is nearly equal */
	int64_t simulated;
	int64_t unexplored; /* of `tried`: their bound was below the best step time, but most_simulated others were
	                     * simulated
	                     */
	int32_t gpus;       /* usable */
	/* Of the first candidate: rank r runs on GPU rank_gpu[r] of node rank_node[r]. */
	const int32_t *rank_node, *rank_gpu;
	int32_t ranks;
	/* Usable GPUs that the first candidate leaves idle. */
	const int32_t *idle_node, *idle_gpu;
	int32_t idle;
};

/* Finds the plan with the least simulated step time among all tp x cp x pp x dp, interleaving, micro-batch numbers (one
 * for each window of the batch, or of two or four windows) and recomputation (the least that lets the plan fit: from
 * none on for wlb-worker; for others from selective on, then of as few whole layers of each chunk as suffice) and ep
 * that fit the GPUs and their memory. tp divides the heads and stays inside a node; tp x cp divides a node or consists
 * of whole nodes, with chunks of at least a tile of attention; then pp; dp, outermost, is as large as the GPUs and the
 * batch allow. Plans of another trainer than wlb-worker keep the rules of Megatron-LM: dp x the windows of a
 * micro-batch divide the batch, pp x interleave the layers with what counts as one, and 2 x cp the window where cp is
 * above 1; with interleave above 1, pp divides the micro-batches of a replica. Of wlb-worker's interleavings whose
 * largest chunk has equally many layers the one with the fewest chunks is tried, and where weights, gradients and
 * optimizer states alone need more than the memory, one number of micro-batches. ZeRO-2 and 3 become 1 where pp is
 * above 1. Nodes follow the topology. What is fixed stays fixed: no plan has another value, also where the rules above
 * would leave it out (a cp that is fixed needs no alignment), but tp stays inside a node.
 *
 * Of plans whose step time is at most near_equal above the least, the best is the one with the most usual layout (with
 * prefer_every_gpu, of those that leave no GPU idle, where there is one): tp a power of two, then the fewest primes
 * other than 2 that divide cp x pp, then the fastest.
 *
 * A plan whose bound is above the best step time is not simulated. For each other plan at least 64 micro-batches are
 * simulated where it has that many, and at least 3 x pp of a replica; the parts of the time that grow with their number
 * are scaled to all. wlb_search_free frees the result. Returns NULL with a message where the input is invalid, no plan
 * has what is fixed (the message names the value and the rule) or no plan fits (the message names the plan that lacks
 * the least memory, and how much). */
struct wlb_search_result *wlb_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                     const struct wlb_search_options *options, struct wlb_error *error);
void wlb_search_free(struct wlb_search_result *result);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
