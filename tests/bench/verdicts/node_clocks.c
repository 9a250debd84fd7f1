#include "tests/bench/verdicts/node_clocks.h"

#include <stdlib.h>

#include "tests/bench/verdicts/cluster.h"
#include "tests/bench/verdicts/constants.h"

void node_clocks_init(struct node_clocks *clocks, int32_t nodes, uint64_t seed)
{
	struct chance chance = chance_of(seed, 6);
	clocks->ahead_s = must_allocate((size_t)nodes, sizeof(double));
	clocks->drift = must_allocate((size_t)nodes, sizeof(double));
	for (int32_t n = 0; n < nodes; n++) {
		clocks->ahead_s[n] = chance_between(&chance, -clock_ahead_s, clock_ahead_s);
		clocks->drift[n] = chance_between(&chance, -clock_drift, clock_drift);
	}
	clocks->set_node = chance_below(&chance, nodes);
	clocks->set_at_s = chance_between(&chance, 0.0, clock_set_within_s);
	clocks->set_by_s = chance_between(&chance, 1.0, clock_set_by_s);
}

void node_clocks_free(struct node_clocks *clocks)
{
	free(clocks->ahead_s);
	free(clocks->drift);
}

double node_clocks_read(const struct node_clocks *clocks, int32_t node, double at_s)
{
	double set_by_s = node == clocks->set_node && at_s >= clocks->set_at_s ? clocks->set_by_s : 0.0;
	return at_s + clocks->ahead_s[node] + clocks->drift[node] * at_s - set_by_s;
}

double node_clocks_length_s(const struct node_clocks *clocks, int32_t node, double from_s, double to_s)
{
	return node_clocks_read(clocks, node, to_s) - node_clocks_read(clocks, node, from_s);
}
