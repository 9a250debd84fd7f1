/* Connects the ranks of communicators by their transport. */
#include <stdlib.h>

#include "worker/comm/comm.h"
#include "worker/comm/communicator.h"
#include "worker/comm/group_id.h"
#include "worker/comm/transport.h"

/* Communicators that are not connected, of one transport. */
struct unconnected {
	struct wlb_comm **comms;
	struct wlb_transport_group **groups; /* of each */
	void **states;
	int count;
};

static int is_unconnected(const struct wlb_comm *comm)
{
	return comm != NULL && comm->size > 1 && !comm->is_connected;
}

static int find_unconnected(struct unconnected *all, struct wlb_comm *const *comms, int count, struct wlb_error *error)
{
	const size_t most = (size_t)count;
	*all = (struct unconnected){.comms = calloc(most, sizeof(*all->comms)),
	                            .groups = calloc(most, sizeof(*all->groups)),
	                            .states = calloc(most, sizeof(*all->states))};
	if (all->comms == NULL || all->groups == NULL || all->states == NULL)
		return wlb_fail(error, "out of memory for connecting %d communicators", count);
	for (int i = 0; i < count; i++) {
		if (!is_unconnected(comms[i]))
			continue;
		all->comms[all->count] = comms[i];
		all->groups[all->count] = &comms[i]->members;
		all->states[all->count++] = comms[i]->state;
	}
	return 0;
}

static int connect_all(const struct unconnected *all, struct wlb_error *error)
{
	const struct wlb_comm *first = all->comms[0];
	const struct wlb_transport *transport = first->transport;
	int which = -1, rc = 0;
	if (transport->make_id != NULL)
		rc = wlb_group_ids_exchange(transport, all->groups, all->count, first->limit_s, &which, error);
	if (rc == 0)
		rc = transport->connect(all->states, all->count, &which, error);
	for (int i = 0; i < all->count && rc == 0; i++)
		all->comms[i]->is_connected = 1;
	if (rc == 0)
		return 0;
	if (which < 0 && all->count > 1)
		return wlb_fail_in(error, "%d communicators, the first of which is %s", all->count, first->name);
	const struct wlb_comm *failed = all->comms[which < 0 ? 0 : which];
	return wlb_fail_in(error, "communicator %s (rank %d of %d)", failed->name, failed->rank, failed->size);
}

int wlb_comm_connect(struct wlb_comm *const *comms, int count, struct wlb_error *error)
{
	struct unconnected all;
	int is_needed = 0;
	for (int i = 0; i < count; i++)
		is_needed |= is_unconnected(comms[i]);
	if (!is_needed)
		return 0;
	int rc = find_unconnected(&all, comms, count, error);
	if (rc == 0)
		rc = connect_all(&all, error);
	free(all.comms);
	free(all.groups);
	free(all.states);
	return rc;
}
