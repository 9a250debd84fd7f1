/* The options of `wlb-worker train`, named as Megatron-LM names them where the meaning is the same. */
#ifndef WORKER_LAUNCH_OPTIONS_H
#define WORKER_LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"
#include "common/step_range.h"
#include "kernels/ops.h"
#include "libwlb/wlb.h"
#include "worker/checkpoint/hyperparameters.h"
#include "worker/data/batch_ramp.h"
#include "worker/launch/data_choice.h"

enum { WLB_RECOMPUTE_AUTO = WLB_RECOMPUTE_FULL + 1 };
enum wlb_device_kind { WLB_DEVICE_CPU, WLB_DEVICE_CUDA };
enum { WLB_DTYPE_AUTO = WLB_BFLOAT16 + 1 };
enum { WLB_PACKING_AUTO = WLB_STRATEGY_DYNAMIC + 1 };
enum wlb_head_stages { WLB_HEAD_LAST, WLB_HEAD_ALL, WLB_HEAD_AUTO };
enum wlb_save_when_busy { WLB_SAVE_WAIT, WLB_SAVE_SKIP };
enum wlb_main_grads { WLB_MAIN_GRADS_FP32, WLB_MAIN_GRADS_BF16 };

/* What a new phase may change beside learning rate and optimizer: bits of wlb_train_options.phase_changes. */
enum wlb_phase_change {
	WLB_PHASE_SEQ_LENGTH = 1,
	WLB_PHASE_BATCH = 2,
	WLB_PHASE_DATA = 4,
	WLB_PHASE_PACKING = 8,
	WLB_PHASE_SEED = 16,
	WLB_PHASE_RAMP = 32,
};

/* Texts point into argv; NULL where an option was not given. Not to be moved. */
struct wlb_train_options {
	const char *model;
	const char *data_path;             /* the first prefix of `data`, for messages */
	struct wlb_option_list data_words; /* while the options are read */
	const char *data_split;
	struct wlb_data_choice data;
	const char *save;
	const char *save_local;
	const char *load;
	const char *init_from; /* the folder of a published model: the initial weights where there is no checkpoint */
	const char *new_phase; /* names of options, separated by commas */
	const char *metrics_file;
	const char *tensorboard_dir;
	const char *trace_dir, *trace_steps;
	struct wlb_step_range traced; /* trace_steps */
	const char *layout;
	const char *machine;
	int64_t seq_length;
	int64_t global_batch_size;
	struct wlb_option_list ramp_words; /* while the options are read */
	struct wlb_batch_ramp ramp;        /* of the batch, up to global_batch_size */
	int64_t train_iters;
	int64_t save_interval;  /* 0: only after the last step */
	double save_interval_s; /* 0: none */
	int64_t save_local_interval;
	int save_when_busy; /* enum wlb_save_when_busy */
	int64_t keep_every; /* 0: none */
	int64_t keep;       /* checkpoints; 0: all */
	int64_t log_interval;
	const char *eval_data_path; /* NULL: the second part of `data` is evaluated, where the split has one */
	int64_t eval_interval;      /* steps; 0: only after the last step */
	int64_t eval_iters;         /* batches of an evaluation */
	bool evaluates;             /* there is something to evaluate */
	bool eval_at_start;         /* also before the first step of the run, and of a new phase */
	int64_t sdc_check_interval; /* 0: no checks */
	int64_t micro_batch_size;   /* windows of seq_length; 0: not given */
	int64_t max_tokens;         /* of a micro-batch; 0: derived from micro_batch_size */
	int64_t tp_halves;          /* rows of a micro-batch that is halved, the least; 0: none is */
	int64_t virtual_stages;     /* chunks of layers on each pipeline stage; 0: not given */
	int64_t seed;
	int64_t threads;                  /* 0: this node's CPUs / its ranks */
	struct wlb_hyperparameters hyper; /* of the command line; a run that continues may take the checkpoint's */
	int64_t skip_bad_steps;           /* in a row; 0: none */
	double bad_norm_ratio;            /* to the median of recent norms; 0: norms are not compared */
	double init_method_std;
	double timeout_minutes;         /* of one collective */
	double storage_timeout_minutes; /* that files may make no progress; below timeout_minutes */
	int dtype;                      /* enum wlb_dtype, of weights in use and activations; set by choose_dtypes */
	int main_grads;                 /* enum wlb_main_grads */
	int zero_stage;                 /* 1 or 2, see wlb_plan */
	int packing;                    /* enum wlb_strategy; WLB_PACKING_AUTO */
	int cp_sharding;                /* enum wlb_sharding */
	int recompute;                  /* enum wlb_recompute; WLB_RECOMPUTE_AUTO: not given */
	int recompute_layers;           /* FULL: of each chunk, its first layers; 0: all */
	int head_stages;                /* enum wlb_head_stages */
	int device;                     /* enum wlb_device_kind */
	int transport;                  /* enum wlb_transport_choice */
	bool account_for_embedding;     /* as a layer of the pipeline; see struct wlb_plan */
	bool account_for_loss;
	bool finetune;             /* of the checkpoint in `load` the weights alone are taken */
	int phase_changes;         /* of enum wlb_phase_change; set from new_phase */
	bool bf16;                 /* --dtype bfloat16 */
	bool override_hyper;       /* where the checkpoint's are others, those of the command line are taken */
	bool use_checkpoint_hyper; /* the checkpoint's are taken */
};

extern const struct wlb_option_table wlb_train_option_table;

/* Sets *dtype, an enum wlb_dtype, where it is WLB_DTYPE_AUTO, and checks that the device computes in it. `option` is
 * what asked for bfloat16. Returns -1 with option, rule and remedy. */
int wlb_dtype_choose(enum wlb_device_kind device, const char *option, int *dtype, struct wlb_error *error);

/* Reads argv[1..]; argv[0] is the name of the subcommand. Returns an enum wlb_options_asked: unless it is
 * WLB_OPTIONS_READ nothing is set, and the caller must print what was asked for. On -1 the message names option, value
 * and rule. */
int wlb_train_options_parse(int argc, char **argv, struct wlb_train_options *options, struct wlb_error *error);

#endif
