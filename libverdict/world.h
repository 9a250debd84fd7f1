/* The ranks of a run, their nodes, peers and groups, as a detector keeps them; internal. */
#ifndef LIBVERDICT_WORLD_H
#define LIBVERDICT_WORLD_H

#include "libverdict/wlb_verdict.h"

/* Lists by key: the list of key k is list[first[k]] to list[first[k + 1] - 1], ascending. */
struct verdict_lists {
	int32_t *first;
	int32_t *list;
};

/* Returns -1 if out of memory; verdict_lists_free frees the lists in either case. */
int verdict_lists_build(struct verdict_lists *lists, const int32_t *key_of, int32_t count, int32_t keys);
void verdict_lists_free(struct verdict_lists *lists);

struct verdict_group {
	enum wlb_verdict_group_kind kind;
	char name[24];
	int32_t first; /* of its memberships, which are in the order of its members */
	int32_t count;
	int32_t nodes; /* that its members are on, counted up to 2 */
	int has_one_transfer;
	int32_t alike;
};

/* A rank as a member of a group. */
struct verdict_membership {
	int32_t rank;
	int32_t group;
};

struct verdict_world {
	int32_t ranks;
	int32_t nodes;
	int32_t peer_sets;
	int32_t groups;
	int32_t most_alike; /* the greatest `alike` of a group */
	int32_t memberships;
	int32_t *node_of;
	char (*node_name)[64];
	int32_t *peers_of;
	struct verdict_group *group;
	struct verdict_membership *membership;
	struct verdict_lists of_rank; /* memberships of a rank */
	int32_t *listed_group;        /* [memberships] the group of each item of of_rank.list */
	struct verdict_lists on_node; /* ranks of a node */
};

/* Copies `given`. Returns -1 with a message where it breaks a rule of wlb_verdict.h or if out of memory; the world can
 * be freed in either case. */
int verdict_world_copy(struct verdict_world *world, const struct wlb_verdict_world *given,
                       struct wlb_verdict_error *error);
void verdict_world_free(struct verdict_world *world);

/* Returns the membership of a rank in a group, -1 where it is not a member. */
int32_t verdict_world_find(const struct verdict_world *world, int32_t rank, int32_t group);

#endif
