/* What `wlb plan` and `wlb sim` are told: the model, the machines, the stream. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_INPUT_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_INPUT_H

#include <getopt.h>

#include "coordinator/wlb/calculators/lengths_file.h"
#include "coordinator/wlb/calculators/model_file.h"
#include "coordinator/wlb/calculators/plan/machine.h"
#include "coordinator/wlb/calculators/plan/topology.h"

#define WLB_PLAN_INPUT_HELP                                                                                            \
	WLB_MODEL_HELP                                                                                                 \
	"  --nodes N               nodes\n"                                                                            \
	"  --gpus-per-node N       (default: what the kind of GPU comes with)\n" WLB_MACHINE_HELP                      \
	"                          (default H100)\n"                                                                   \
	"  --seq-length N          the window, in tokens\n"                                                            \
	"  --global-batch-size N   windows in a step\n" WLB_LENGTHS_HELP                                               \
	"                          (default gen:skewed); it starts over where it ends\n"                               \
	"  --topology FILE         Slurm's topology.conf; the nodes are the first that it names\n"                     \
	"  --down LIST             nodes that are out, by number from 0 or name: 3,n[7-8]; 5:6 has 6 GPUs left\n"      \
	"  --max-length-ratio X    a micro-batch holds at most X times its share (default 1.25)\n"                     \
	"  --zero-stage N          sharding of optimizer states, gradients, weights (default 1)\n"

struct wlb_plan_request {
	const char *model, *gpu, *from, *topology, *down;
	int nodes, gpus_per_node, seq_length, global_batch, zero_stage;
	double max_length_ratio;
};

/* Rows for getopt, and what reads them: 1 read, 0 not one of them, -1 with a message. */
enum { WLB_PLAN_OPTION_FIRST = 512 };
#define WLB_PLAN_INPUT_OPTIONS                                                                                         \
	{"model", required_argument, NULL, WLB_PLAN_OPTION_FIRST},                                                     \
		{"gpu", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 1},                                           \
		{"lengths", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 2},                                       \
		{"topology", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 3},                                      \
		{"down", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 4},                                          \
		{"nodes", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 5},                                         \
		{"gpus-per-node", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 6},                                 \
		{"seq-length", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 7},                                    \
		{"global-batch-size", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 8},                             \
		{"zero-stage", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 9},                                    \
	{                                                                                                              \
		"max-length-ratio", required_argument, NULL, WLB_PLAN_OPTION_FIRST + 10                                \
	}

void wlb_plan_request_init(struct wlb_plan_request *request);
int wlb_plan_request_option(struct wlb_plan_request *request, int option, const char *value, struct wlb_error *error);

/* All that the options name, read. Starts zeroed; free it in any case. */
struct wlb_plan_input {
	struct wlb_model model;
	struct wlb_machine machine; /* with the GPUs per node asked for */
	struct wlb_length_list list;
	struct wlb_length_stream stream;
	struct wlb_topology_file topology;
	int32_t nodes;
	int32_t *gpus_of_node;
	int32_t gpus;  /* usable, all */
	int32_t *leaf; /* the switch of each node that has GPUs, nodes in the topology's order; NULL without one */
};

int wlb_plan_input_read(const struct wlb_plan_request *request, struct wlb_plan_input *input, struct wlb_error *error);
void wlb_plan_input_free(struct wlb_plan_input *input);

/* The name of a node: of the topology, else its number. `text` holds it where there is none. */
const char *wlb_plan_node_name(const struct wlb_plan_input *input, int32_t node, char *text, size_t size);

#endif
