/* Finds the plan of --wlb-layout=auto: from the files of a run and its nodes, the plan with the least predicted step
 * time. `wlb run` and rank 0 of wlb-worker both call it. */
#ifndef PLANNER_AUTOMATIC_H
#define PLANNER_AUTOMATIC_H

#include "libwlb/wlb.h"
#include "planner/blend.h"
#include "planner/trainer_file.h"

/* The facts about a run that the search takes. Texts and arrays are the caller's. */
struct wlb_auto_request {
	const char *model;             /* config.json */
	const char *lengths;           /* PREFIX of a dataset, whose index is sampled */
	const struct wlb_blend *blend; /* the same of several; with neither every document has seq_length tokens */
	const char *machine;           /* a name or a file; NULL: see wlb_machine_choose */
	const char *gpu_types; /* of the nodes in Slurm's GRES: "h100", or "h100,a100"; "": without a type; NULL where
	                          no GPU is used */
	int64_t seq_length;
	int32_t global_batch;    /* windows of seq_length in a step */
	int32_t zero_stage;      /* as that of wlb_search_options; 0: 1 */
	double max_length_ratio; /* of the packing, see wlb_search_options; so are the next two */
	int64_t max_tokens;
	int32_t least_micro_batches;
	enum wlb_sharding sharding;
	int dynamic;                         /* of wlb_search_options; -1: 1 where the step is shorter so, else 0 */
	int is_worker;                       /* 1: memory and time of wlb-worker; 0: of `trainer` */
	struct wlb_trainer_file trainer;     /* where is_worker is 0 */
	int element_bytes;                   /* of weights in use and activations; 0: as the machine has them */
	int gradient_bytes;                  /* of gradients that are summed; 0: as wlb_cost_options_worker has them */
	int64_t halved_rows;                 /* see wlb_cost_options, with is_worker */
	struct wlb_nodes nodes;              /* each with its ranks */
	const struct wlb_topology *topology; /* of these nodes, by their index; NULL: all under one switch */
	struct wlb_search_fixed fixed;       /* what the user gave; recompute -1: free */
	int every_rank;                      /* 1: a rank may not be idle; 0: it may where the step is shorter so */
	void (*files_are_read)(void);        /* called where the search begins; NULL: nobody bounds the reading */
};

enum { WLB_AUTO_KEEP = 16 }; /* candidates of each kind in the result */

struct wlb_auto {
	struct wlb_model model;
	struct wlb_machine
		machine; /* of the nodes: gpus_per_node is the most ranks of one, memory_bytes that of a rank */
	const char *machine_from; /* what named the machine, for messages */
	struct wlb_search_result *result;
	double utilization;          /* MFU of the chosen plan, see wlb_sim_result */
	int64_t micro_batch_windows; /* of the chosen plan, as --micro-batch-size of trainers */
	char reason[512];            /* why this plan, one line */
};

/* Reads the files and searches. The result starts zeroed; free it in any case. Returns -1 with the value, the rule and
 * the remedy where a file cannot be read, nothing is known of the machine, or no plan fits. */
int wlb_auto_find(const struct wlb_auto_request *request, struct wlb_auto *found, struct wlb_error *error);
void wlb_auto_free(struct wlb_auto *found);

/* --micro-batch-size of a plan for `global_batch` windows: the windows of a micro-batch, rounded up. */
int64_t wlb_auto_windows(const struct wlb_plan *plan, int32_t global_batch);

#endif
