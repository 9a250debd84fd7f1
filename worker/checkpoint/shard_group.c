#include "worker/checkpoint/shard_group.h"

/* Alone in its file, so that tests with a few shards can link another function in its place. */
int wlb_shard_group_size(void)
{
	return 1024;
}
