/* The layouts that are tried, and the groups that each of their ranks is in. */
#ifndef TESTS_BENCH_VERDICTS_CLUSTER_H
#define TESTS_BENCH_VERDICTS_CLUSTER_H

#include <stddef.h>

#include "libverdict/wlb_verdict.h"

enum cluster_slot {
	SLOT_TP,
	SLOT_CP,
	SLOT_FORWARD_IN,
	SLOT_FORWARD_OUT,
	SLOT_BACKWARD_IN,
	SLOT_BACKWARD_OUT,
	SLOT_DP,
	SLOT_WORLD,
	SLOTS,
};

/* Of a step, for each stage of a pipeline. */
enum { CLUSTER_MICRO_BATCHES = 4 };

struct cluster {
	struct wlb_verdict_layout layout;
	struct wlb_verdict_world *world;
	int32_t (*group)[SLOTS]; /* [ranks] -1: the rank is in none such */
	unsigned char *crosses;  /* [groups] 1: its members are on several nodes */
	int32_t *stage;          /* [ranks] */
	int32_t *replica;        /* [ranks] */
	/* What each rank reports of the messages of its groups in a step, but for their time: those of rank r begin at
	 * first_transfer[r] and end where those of the next rank begin. */
	struct wlb_verdict_transfer *transfer;
	int32_t *first_transfer; /* [ranks + 1] */
};

/* The layouts of a number of ranks; `count` is set to how many there are, 0 for a number that is not tried. */
const struct wlb_verdict_layout *cluster_layouts(int32_t ranks, int32_t *count);

/* Ends the program with a message where memory is out. */
struct cluster cluster_new(const struct wlb_verdict_layout *layout);
void cluster_free(struct cluster *cluster);

/* 1 where a NIC of the node carries messages by which it can be told from that of another node: those of data
 * parallelism, or of two other nodes. */
int cluster_nic_is_known(const struct cluster *cluster, int32_t node);

void *must_allocate(size_t count, size_t size);

#endif
