/* Finds the micro-batch size, interleaving and recomputation that the user or the launcher set beside the layout. */
#ifndef WORKER_LAUNCH_SETTINGS_H
#define WORKER_LAUNCH_SETTINGS_H

#include "libwlb/wlb.h"
#include "worker/launch/options.h"

struct wlb_train_settings {
	int64_t micro_batch_size; /* windows */
	int32_t interleave;
	enum wlb_recompute recompute;
	int32_t recompute_layers; /* see struct wlb_plan */
	int head_stages;          /* enum wlb_head_stages; auto: to be predicted */
	int packing;              /* as wlb_train_options.packing; auto: to be predicted */
	int zero_stage;           /* see struct wlb_plan */
};

/* Each is the option's where it was given; else, if `of_launcher`, that of WLB_MICRO_BATCH_SIZE, WLB_INTERLEAVE,
 * WLB_RECOMPUTE, WLB_RECOMPUTE_LAYERS, WLB_HEAD_STAGES and WLB_PACKING, which `wlb run` sets with the layout; else 1,
 * 1, none, auto and auto; zero_stage is the option's. Returns -1 with the variable, its value and the rule. */
int wlb_train_settings_find(const struct wlb_train_options *options, int of_launcher,
                            struct wlb_train_settings *settings, struct wlb_error *error);

#endif
