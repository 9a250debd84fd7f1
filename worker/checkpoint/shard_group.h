/* Shards are in groups. Each group has a folder of its own, since directories of many thousands of files are slow on
 * many file systems; and where there are several, each has an index of its own (shard_index.h), since a list of all
 * shards takes each rank long to read. */
#ifndef WORKER_CHECKPOINT_SHARD_GROUP_H
#define WORKER_CHECKPOINT_SHARD_GROUP_H

/* The shards of a group: 1,024. The last group may have fewer. */
int wlb_shard_group_size(void);

#endif
