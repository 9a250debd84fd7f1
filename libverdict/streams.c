#include "libverdict/streams.h"

struct verdict_stream verdict_stream_of(const struct verdict_world *world, int32_t membership)
{
	const struct verdict_group *group = &world->group[world->membership[membership].group];
	int crosses = group->nodes > 1;
	if (group->kind != WLB_VERDICT_PP) {
		int32_t own = world->membership[membership].rank;
		return (struct verdict_stream){group->has_one_transfer ? group->first : membership, own, own, crosses};
	}
	return (struct verdict_stream){group->first + 1, world->membership[group->first].rank,
	                               world->membership[group->first + 1].rank, crosses};
}

int verdict_stream_is_shared(const struct verdict_world *world, int32_t membership)
{
	return world->group[world->membership[membership].group].has_one_transfer;
}
