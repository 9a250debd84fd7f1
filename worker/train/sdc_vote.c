#include "worker/train/sdc_vote.h"

#include <string.h>

/* The digests of a replica, or what is compared with them, and its lowest place. */
struct side {
	const uint64_t *digests;
	int place;
};

static int replica_size(const struct wlb_sdc_shape *shape)
{
	return shape->layout.tp * shape->layout.cp * shape->layout.pp;
}

static struct side side_of(const struct wlb_sdc_shape *shape, const uint64_t *digests, int replica)
{
	int place = replica * replica_size(shape);
	return (struct side){digests + (size_t)place * (size_t)wlb_sdc_digests(shape), place};
}

static int is_same(const struct wlb_sdc_shape *shape, struct side a, struct side b)
{
	size_t count = (size_t)replica_size(shape) * (size_t)wlb_sdc_digests(shape);
	return memcmp(a.digests, b.digests, count * sizeof(*a.digests)) == 0;
}

/* Chunks of the whole model: each has a forward and a backward pass. */
static int chunks_of_model(const struct wlb_sdc_shape *shape)
{
	return shape->chunks * shape->layout.pp;
}

static int stage_of(const struct wlb_sdc_shape *shape, int place)
{
	return wlb_layout_coordinates(&shape->layout, place).pp;
}

/* Returns when a digest is computed, among the passes of a replica; the gradients of weights are last. */
static int order_of(const struct wlb_sdc_shape *shape, int stage, int digest)
{
	int chunks = shape->chunks, all = chunks_of_model(shape);
	int position = digest % chunks * shape->layout.pp + stage;
	if (digest == 2 * chunks)
		return 2 * all;
	return digest < chunks ? position : 2 * all - 1 - position;
}

/* Returns when the first digest of a rank differs, by its number in the replica; after all where none does. */
static int first_difference(const struct wlb_sdc_shape *shape, struct side own, struct side other, int number)
{
	int count = wlb_sdc_digests(shape), first = 2 * chunks_of_model(shape) + 1;
	for (int d = 0; d < count; d++) {
		int order = order_of(shape, stage_of(shape, own.place + number), d);
		if (own.digests[number * count + d] != other.digests[number * count + d] && order < first)
			first = order;
	}
	return first;
}

/* Whether a rank takes part in what is computed at `order`, where the first difference of the replica is. */
static int takes_part(const struct wlb_sdc_shape *shape, struct side own, struct side other, int number, int order)
{
	int all = chunks_of_model(shape), chunk = order < all ? order : 2 * all - 1 - order;
	if (order == 2 * all)
		return first_difference(shape, own, other, number) == order;
	if (order == all && shape->is_head_shared)
		return 1;
	return chunk % shape->layout.pp == stage_of(shape, own.place + number);
}

/* Suspects the ranks of a replica that may have made it differ from the other side. */
static void suspect(const struct wlb_sdc_shape *shape, struct side own, struct side other,
                    struct wlb_sdc_suspect *suspects)
{
	int first = 2 * chunks_of_model(shape) + 1;
	for (int i = 0; i < replica_size(shape); i++) {
		int order = first_difference(shape, own, other, i);
		first = order < first ? order : first;
	}
	for (int i = 0; i < replica_size(shape); i++)
		if (takes_part(shape, own, other, i, first))
			suspects[own.place + i] = (struct wlb_sdc_suspect){.count = 1, .other = other.place + i};
}

/* Sets count and first of the suspects from this place to before that one, of which one is at fault. Returns their
 * number. */
static int join(struct wlb_sdc_suspect *suspects, int from, int to)
{
	int count = 0, first = -1;
	for (int p = from; p < to; p++) {
		count += suspects[p].count > 0;
		if (suspects[p].count > 0 && first < 0)
			first = p;
	}
	for (int p = from; p < to; p++)
		if (suspects[p].count > 0) {
			suspects[p].count = count;
			suspects[p].first = first;
		}
	return count;
}

/* Suspects ranks of the replica, apart from those of others. */
static int suspect_in(const struct wlb_sdc_shape *shape, struct side own, struct side other,
                      struct wlb_sdc_suspect *suspects)
{
	suspect(shape, own, other, suspects);
	return join(suspects, own.place, own.place + replica_size(shape));
}

/* Returns a replica that has most of them on its side, itself among them; -1: none has. */
static int find_majority(const struct wlb_sdc_shape *shape, const uint64_t *digests)
{
	int dp = shape->layout.dp;
	for (int r = 0; r < dp; r++) {
		int alike = 0;
		for (int other = 0; other < dp; other++)
			alike += is_same(shape, side_of(shape, digests, r), side_of(shape, digests, other));
		if (2 * alike > dp)
			return r;
	}
	return -1;
}

/* Suspects ranks of all replicas together. */
static int suspect_all(const struct wlb_sdc_shape *shape, const uint64_t *digests, struct wlb_sdc_suspect *suspects)
{
	int dp = shape->layout.dp;
	for (int r = 0; r < dp; r++) {
		struct side own = side_of(shape, digests, r);
		int other = 0;
		while (other < dp && is_same(shape, own, side_of(shape, digests, other)))
			other++;
		if (other < dp)
			suspect(shape, own, side_of(shape, digests, other), suspects);
	}
	return join(suspects, 0, dp * replica_size(shape));
}

int wlb_sdc_differ(const struct wlb_sdc_shape *shape, const uint64_t *digests)
{
	for (int r = 1; r < shape->layout.dp; r++)
		if (!is_same(shape, side_of(shape, digests, 0), side_of(shape, digests, r)))
			return 1;
	return 0;
}

int wlb_sdc_vote(const struct wlb_sdc_shape *shape, const uint64_t *first, const uint64_t *second,
                 struct wlb_sdc_suspect *suspects)
{
	int found = 0, dp = shape->layout.dp;
	memset(suspects, 0, (size_t)(dp * replica_size(shape)) * sizeof(*suspects));
	for (int r = 0; r < dp; r++) {
		struct side own = side_of(shape, first, r), again = side_of(shape, second, r);
		if (!is_same(shape, own, again))
			found += suspect_in(shape, own, again, suspects);
	}
	if (found > 0 || !shape->by_replicas)
		return found;
	int most = find_majority(shape, first);
	if (most < 0)
		return suspect_all(shape, first, suspects);
	for (int r = 0; r < dp; r++) {
		struct side own = side_of(shape, first, r), other = side_of(shape, first, most);
		if (!is_same(shape, own, other))
			found += suspect_in(shape, own, other, suspects);
	}
	return found;
}
