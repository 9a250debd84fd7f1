/* Groups of three shards, so that a few shards have indexes. The linker calls it in place of the function of
 * worker/checkpoint/shard_group.h (--wrap). */
int __wrap_wlb_shard_group_size(void);

int __wrap_wlb_shard_group_size(void)
{
	return 3;
}
