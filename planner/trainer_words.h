/* Reads the settings of a training program from the words of its command. A function of words: nothing is executed, and
 * no file is opened. Names, values and defaults are those of Megatron-LM's megatron/training/arguments.py
 * (core_v0.15.0), of NeMo's MegatronStrategy (2025) and megatron_gpt_config.yaml (2024), and of TorchTitan's
 * torchtitan/config_manager.py (2024) and torchtitan/config/job_config.py (2025). */
#ifndef PLANNER_TRAINER_WORDS_H
#define PLANNER_TRAINER_WORDS_H

#include <stdint.h>

#include "libwlb/wlb.h"

/* Whose options they are. */
enum wlb_words_of {
	WLB_WORDS_OF_MEGATRON = 1,   /* --tensor-model-parallel-size 8 */
	WLB_WORDS_OF_NEMO = 2,       /* trainer.strategy.tensor_model_parallel_size=8 */
	WLB_WORDS_OF_TORCHTITAN = 4, /* --parallelism.tensor_parallel_degree 8 */
};

enum wlb_setting {
	WLB_SETTING_TP,
	WLB_SETTING_CP,
	WLB_SETTING_PP,
	WLB_SETTING_REPLICATE,    /* replicas that do not shard weights */
	WLB_SETTING_SHARD,        /* replicas that do */
	WLB_SETTING_INTERLEAVE,   /* chunks of layers on a stage */
	WLB_SETTING_CHUNK_LAYERS, /* layers of a chunk */
	WLB_SETTING_SCHEDULE,     /* 0: 1F1B, 1: interleaved */
	WLB_SETTING_EMBEDDING,    /* 1: the embedding counts as a layer of the pipeline */
	WLB_SETTING_LOSS,         /* 1: the head with its loss does */
	WLB_SETTING_FIRST_LAYERS, /* of the first stage; the others share the rest equally */
	WLB_SETTING_LAST_LAYERS,  /* of the last */
	WLB_SETTING_MICRO_BATCH,  /* windows in a micro-batch */
	WLB_SETTING_LOCAL_BATCH, /* windows of a replica between two accumulations: a micro-batch, without a pipeline */
	WLB_SETTING_GLOBAL_BATCH,      /* windows in a step */
	WLB_SETTING_WINDOW,            /* tokens */
	WLB_SETTING_RECOMPUTE,         /* enum wlb_recompute */
	WLB_SETTING_RECOMPUTE_MODULES, /* of enum wlb_recompute */
	WLB_SETTING_RECOMPUTE_BLOCK,   /* 1: some layers of each chunk, 0: all layers */
	WLB_SETTING_RECOMPUTE_LAYERS,  /* of each chunk */
	WLB_SETTING_RECOMPUTE_EVERY,   /* 0: every second product, n: every n-th layer */
	WLB_SETTING_OPTIMIZER_SHARDED,
	WLB_SETTING_SHARDING, /* 0 to 3: stages of ZeRO */
	WLB_SETTING_FSDP,     /* 1: weights, gradients and states are sharded */
	WLB_SETTING_RESHARD,  /* 0: weights are freed after the forward pass where there is no pipeline, 1: always, 2:
	                         never */
	WLB_SETTING_SEQUENCE_PARALLEL,
	WLB_SETTING_OVERLAP_GRADIENTS,
	WLB_SETTING_OVERLAP_PARAMETERS,
	WLB_SETTING_OVERLAP_PP,
	WLB_SETTING_OVERLAP_TP,
	WLB_SETTING_BFLOAT16_GRADIENTS,
	WLB_SETTING_FP8,            /* products of layers in 8 bits */
	WLB_SETTING_FP8_RECIPE,     /* enum wlb_fp8 */
	WLB_SETTING_FP8_PARAMETERS, /* 1: weights are gathered in 8 bits */
	WLB_SETTING_LAYERS,         /* from here on the shape of the model */
	WLB_SETTING_HIDDEN,
	WLB_SETTING_FFN,
	WLB_SETTING_HEADS,
	WLB_SETTING_GROUPED, /* 1: there are fewer heads of keys and values */
	WLB_SETTING_KV_HEADS,
	WLB_SETTING_HEAD_DIM,
	WLB_SETTING_VOCABULARY,
	WLB_SETTING_PADDED_VOCABULARY,
	WLB_SETTING_VOCABULARY_MULTIPLE,
	WLB_SETTING_GATED,
	WLB_SETTING_UNTIED,
	WLB_SETTING_EXPERTS,
	WLB_SETTING_EP,
	WLB_SETTING_NODES, /* of the job */
	WLB_SETTING_GPUS_PER_NODE,
	WLB_SETTINGS
};

enum { WLB_WORDS_MAX = 4096, WLB_WORD_BYTES_MAX = 65536, WLB_WORDS_UNREAD_MAX = 12 };

/* An option as the command has it, "--seq-length": its first bytes, without the value. */
struct wlb_option_word {
	const char *text; /* in the words; NULL: there is none */
	int bytes;
};

struct wlb_trainer_words {
	enum wlb_words_of of;
	struct {
		int64_t value;
		struct wlb_option_word word; /* that has set it last; without a text: the command does not have it */
	} settings[WLB_SETTINGS];
	/* Options that are not known, and may change what a step takes: the first of them. */
	struct wlb_option_word unread[WLB_WORDS_UNREAD_MAX];
	int unread_count; /* of all */
};

/* Returns whose options the trainer of that name has, by its beginning (struct wlb_trainer_file); -1: it is another. */
int wlb_words_of_trainer(const char *trainer);

/* Reads the words, which end with NULL and must outlive *read. A launcher and its options, up to the script, are
 * skipped; of an option that is given twice the last holds. Returns -1 with the word, the rule and the remedy: a
 * variable that is not expanded, a value out of range, an option of another trainer, what cannot be planned. */
int wlb_trainer_words_read(char *const *words, enum wlb_words_of of, struct wlb_trainer_words *read,
                           struct wlb_error *error);

/* Whether the command has the setting. */
int wlb_trainer_words_have(const struct wlb_trainer_words *words, enum wlb_setting setting);

/* The setting's value, or `otherwise` where the command does not have it. */
int64_t wlb_trainer_words_value(const struct wlb_trainer_words *words, enum wlb_setting setting, int64_t otherwise);

/* Says that the command lacks a setting, and the remedy; returns -1. */
int wlb_trainer_words_lack(const struct wlb_trainer_words *words, enum wlb_setting setting, const char *remedy,
                           struct wlb_error *error);

/* Writes the option that has the setting: as the command has it, else its usual name, as it would stand there. An empty
 * text where the trainer has no such option. */
void wlb_trainer_words_option(const struct wlb_trainer_words *words, enum wlb_setting setting, char *text, size_t size);

#endif
