#include "worker/comm/group_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/comm/communicator.h"
#include "worker/comm/queue_await.h"

/* What a rank tells of the group that it is the first of. */
struct made_id {
	int64_t is_made; /* 0: it is the first of none, or `why` says why it has no id */
	int64_t color;
	union {
		char id[WLB_GROUP_ID_BYTES];
		char why[WLB_GROUP_ID_BYTES];
	};
};

enum { WORDS = sizeof(struct made_id) / sizeof(double) };

static struct made_id make(const struct wlb_transport *transport, int color, int is_first)
{
	struct made_id made = {.color = color};
	struct wlb_error error;
	if (!is_first)
		snprintf(made.why, sizeof(made.why), "no rank of the group has made its id");
	else if (transport->make_id(made.id, &error) == 0)
		made.is_made = 1;
	else
		snprintf(made.why, sizeof(made.why), "%.127s", error.message);
	return made;
}

int wlb_group_id_share(const struct wlb_comm_launcher *launcher, const struct wlb_transport *transport,
                       struct wlb_transport_group *group, struct wlb_error *error)
{
	struct made_id made = make(transport, 0, group->rank == 0);
	if (launcher->share(launcher->state, "wlb.group_id", &made, sizeof(made), error) < 0)
		return -1;
	if (!made.is_made)
		return wlb_fail(error, "%s", made.why);
	memcpy(group->id, made.id, sizeof(group->id));
	return 0;
}

/* all[of every rank of parent] = what that rank has made. Memory of the device that a call may still use is not
 * released. */
static int gather(struct wlb_comm *parent, const struct made_id *own, struct made_id *all, struct wlb_error *error)
{
	const struct wlb_ops *ops = parent->device->ops;
	const size_t bytes = sizeof(*all) * (size_t)parent->size;
	struct made_id *on_device = ops->alloc(parent->device, bytes, error);
	if (on_device == NULL)
		return -1;
	ops->to_device(parent->device, NULL, on_device + parent->rank, own, sizeof(*own));
	/* As numbers of eight bytes, which are passed on as they are. */
	if (wlb_comm_all_gather(parent, on_device, on_device + parent->rank, WORDS, WLB_FLOAT64, error) < 0 ||
	    wlb_queue_await(parent->device, NULL, parent->open_limit_s, "gathering the ids of groups", error) < 0)
		return -1;
	ops->to_host(parent->device, all, on_device, bytes);
	ops->release(parent->device, on_device);
	return 0;
}

int wlb_group_id_split(struct wlb_comm *parent, int color, struct wlb_transport_group *group, struct wlb_error *error)
{
	/* A group of one rank opens no transport. */
	const struct made_id own = make(parent->transport, color, group->rank == 0 && group->size > 1);
	struct made_id *all = calloc((size_t)parent->size, sizeof(*all));
	const struct made_id *found = &own;
	if (all == NULL)
		return wlb_fail(error, "out of memory for the ids of groups of %d ranks", parent->size);
	int rc = gather(parent, &own, all, error);
	for (int i = 0; i < parent->size && rc == 0; i++)
		if (all[i].is_made && all[i].color == color)
			found = &all[i];
	if (rc == 0 && found->is_made)
		memcpy(group->id, found->id, sizeof(group->id));
	else if (rc == 0 && group->size > 1)
		rc = wlb_fail(error, "%s", found->why);
	free(all);
	return rc;
}
