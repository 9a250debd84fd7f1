/* A table of published step times: the files of tests/bench/planner/tables. */
#ifndef TESTS_BENCH_PLANNER_TABLE_H
#define TESTS_BENCH_PLANNER_TABLE_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* One row. What the source does not tell is 0, and is chosen by the prediction. */
struct published_row {
	const char *name;
	struct wlb_model model;
	struct wlb_layout layout;
	int64_t seq_length;
	int32_t batch;       /* windows in a step */
	int32_t micro_batch; /* windows in a micro-batch */
	int32_t interleave;
	int32_t zero_stage, recompute_layers, gradient_bytes;
	enum wlb_recompute recompute;
	int release;           /* 1: activations that are cheap to compute again may be released */
	int full_attention;    /* of the FLOPs that tflops_per_gpu counts */
	double tflops_per_gpu; /* one of these two */
	double tokens_per_s_per_gpu;
};

struct published_table {
	json_t *root; /* owns all texts */
	const char *title, *machine;
	struct published_row *rows;
	size_t count;
};

/* Reads a table; ends the program with a message where it cannot be read. published_table_free frees it. */
struct published_table published_table_read(const char *path);
/* Sets the attention kernel's efficiency where the table names another kernel than the machine's file. */
void published_table_adapt(const struct published_table *table, struct wlb_machine *machine);
void published_table_free(struct published_table *table);

#endif
