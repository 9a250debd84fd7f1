/* The clocks of the nodes of a run: each is ahead or behind by up to seconds and drifts, and one is set back meanwhile.
 */
#ifndef TESTS_BENCH_VERDICTS_NODE_CLOCKS_H
#define TESTS_BENCH_VERDICTS_NODE_CLOCKS_H

#include "tests/bench/verdicts/chance.h"

struct node_clocks {
	double *ahead_s;  /* [nodes] */
	double *drift;    /* [nodes] */
	int32_t set_node; /* its clock is set back by set_by_s at set_at_s */
	double set_at_s;  /* by a clock that nothing is wrong with */
	double set_by_s;
};

/* Draws them, with a node that is set back once, some minutes after 0. */
void node_clocks_init(struct node_clocks *clocks, int32_t nodes, uint64_t seed);
void node_clocks_free(struct node_clocks *clocks);

/* What the clock of a node shows at a time, and the length of time that it shows, which is negative across a setting.
 */
double node_clocks_read(const struct node_clocks *clocks, int32_t node, double at_s);
double node_clocks_length_s(const struct node_clocks *clocks, int32_t node, double from_s, double to_s);

#endif
