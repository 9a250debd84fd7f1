/* Streams of messages: what a rank sends or receives in the calls of a group. Internal. */
#ifndef LIBVERDICT_STREAMS_H
#define LIBVERDICT_STREAMS_H

#include "libverdict/world.h"

struct verdict_stream {
	int32_t membership;  /* of the rank that reports it: of an edge of a pipeline the receiver; of a group that
	                        has_one_transfer the first, which stands for all */
	int32_t source;      /* a rank */
	int32_t destination; /* a rank; of a collective the source, since each member has its own messages */
	int crosses;         /* 1: its group is on several nodes, so that it goes through a NIC */
};

/* The stream of a membership; both memberships of an edge have the same. */
struct verdict_stream verdict_stream_of(const struct verdict_world *world, int32_t membership);

/* Returns 1 where all members of the group of a membership have one stream together. */
int verdict_stream_is_shared(const struct verdict_world *world, int32_t membership);

#endif
