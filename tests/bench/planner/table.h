/* The table of published step times, published.json: one row is one measurement. */
#ifndef TESTS_BENCH_PLANNER_TABLE_H
#define TESTS_BENCH_PLANNER_TABLE_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Which FLOPs a published rate counts. */
enum published_flops {
	PUBLISHED_CAUSAL,     /* those that attention needs */
	PUBLISHED_FULL,       /* those of attention to later tokens too */
	PUBLISHED_RECOMPUTED, /* the same, and those of layers that are computed again */
};

/* What was published; the others of a row are 0. */
struct published_rate {
	double step_s;
	double tokens_per_s; /* of all GPUs */
	double tokens_per_s_per_gpu;
	double tflops_per_gpu;
	enum published_flops flops; /* of tflops_per_gpu */
};

/* What the source does not tell is 0, and -1 of `recompute`: the prediction chooses it. */
struct published_row {
	const char *name, *machine;
	const char *precision; /* "float16", "bfloat16", "fp8", ... */
	const char *recipe;    /* "delayed", "tensorwise" or "rowwise"; NULL but for fp8 */
	int mamba;             /* 1: most layers are no attention, but Mamba; the shape is then not given */
	struct wlb_model model;
	struct wlb_layout layout;
	int64_t window_tokens;
	int32_t batch_windows, micro_batch_windows;
	int32_t interleave;
	int32_t pipelines; /* of a step, one after another */
	int32_t ep;        /* of experts */
	int32_t zero_stage;
	int32_t shard_ranks; /* over which ZeRO shards, where that is not all replicas */
	int recompute;       /* enum wlb_recompute */
	int32_t recompute_layers;
	int32_t offloaded_layers;        /* whose activations are kept in the host's memory */
	int32_t gradient_bytes;          /* 0: as the trainer has it */
	double optimizer_bytes;          /* 0: as the trainer has it */
	double fragmentation;            /* -1: as the trainer has it */
	const char *trainer, *attention; /* of libwlb/trainers; a kernel, NULL: as the trainer has it */
	int release;                     /* 1: activations that are cheap to compute again may be released */
	int weighted_experts;            /* 1: what experts give is weighted before their last product */
	int rows_by_node;                /* 1: rows are sent to their experts once for each node */
	int experts_in_turn;             /* 1: a gate of the benchmark gives rows their experts in turn */
	int grouped_experts;             /* 0: each product of an expert is a kernel, whatever the trainer has */
	int overlap_experts;             /* 0: rows with experts are exchanged alone, whatever the trainer has */
	int split_operations;            /* 0: a compiler joins operations, whatever the trainer has */
	double tp_overlap;               /* -1: as the trainer has it */
	int overlap_gradients;           /* 1: gradients are reduced beside the backward pass, whatever `overlap` is */
	int overlap;                     /* 0: no communication of gradients, parameters and stages is hidden */
	double network_gbits_per_s;      /* of a node; 0: as the machine's file has it */
	int ran;                         /* 0: it ran out of memory; -1: a rate was published */
	double gpu_gib;                  /* memory of a GPU; 0: as the machine's file has it */
	struct published_rate rate;
};

struct published_source {
	const char *title;
	struct published_row *rows;
	size_t count;
};

struct published_table {
	json_t *root; /* owns all texts */
	struct published_source *sources;
	size_t count;
};

/* Reads the table, of which every field is checked. Ends the program with the source, the row, the value and the rule
 * where one is out of its range or unknown. published_table_free frees it. */
struct published_table published_table_read(const char *path);
void published_table_free(struct published_table *table);

/* Fills a row from its object and that of its source, which has what all its rows share, and from the object of the
 * shapes. The program ends as above. */
struct published_row published_row_read(const json_t *models, const json_t *source, const json_t *row);

/* Ends the program with "planner: SOURCE, ROW: " and the message. */
__attribute__((noreturn, format(printf, 3, 4))) void published_fail(const json_t *source, const json_t *row,
                                                                    const char *format, ...);

#endif
