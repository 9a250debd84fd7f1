#include "libverdict/streams.h"

struct verdict_stream verdict_stream_of(const struct verdict_world *world, int32_t membership)
{
	const struct verdict_group *group = &world->group[world->membership[membership].group];
	int crosses = group->nodes > 1;
	if (group->kind != WLB_VERDICT_PP) {
		int32_t own = world->membership[membership].rank;
		return (struct verdict_stream){membership, own, own, crosses};
	}
	return (struct verdict_stream){group->first + 1, world->membership[group->first].rank,
	                               world->membership[group->first + 1].rank, crosses};
}
