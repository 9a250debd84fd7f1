/* What WLB-LLM (Wang et al., OSDI 2025) measured: models, layouts and speed-ups. */
#ifndef TESTS_BENCH_SIM_PUBLISHED_H
#define TESTS_BENCH_SIM_PUBLISHED_H

#include "libwlb/wlb.h"

struct published {
	const char *name;
	struct wlb_model model;
	int64_t seq_length;
	struct wlb_layout layout; /* table 1 of the paper */
};

enum { PUBLISHED_COUNT = 8 };
extern const struct published published[PUBLISHED_COUNT];

/* Mean speed-ups over Plain-4D that the paper gives, section 7.2: all, 64K, 128K. */
extern const double published_mean, published_mean_64k, published_mean_128k;

/* Runs beside each other, over the same stream. */
struct settings {
	double tail;       /* of the document lengths */
	double ratio;      /* longest micro-batch, in windows */
	double tp_overlap; /* share of tensor-parallel communication hidden */
	double cp_overlap; /* of context-parallel communication */
	int ring;          /* of keys and values beside attention */
	int32_t interleave;
	int64_t steps;
	int flops; /* weigh documents by FLOPs rather than predicted seconds */
};

struct variant {
	const char *name;
	enum wlb_strategy strategy;
	enum wlb_sharding sharding;
	enum wlb_sim_attention attention;
};

struct outcome {
	double token_s;           /* seconds of a step over its tokens */
	struct wlb_sim_time time; /* where they went: mean of a step, over the mean tokens of a step */
};

/* Packs and simulates `settings->steps` steps after the queues have filled. Ends the program on an error. */
struct outcome run_variant(const struct published *config, const struct wlb_machine *machine,
                           const struct settings *settings, const struct variant *variant);

#endif
