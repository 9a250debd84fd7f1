#include "coordinator/wlbd/nodes/own_network.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coordinator/wlbd/wlbd.h"

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	return address->ss_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Connecting a UDP socket sends nothing. Both ends of the connection have the same address where the node is this
 * host. */
bool wlbd_node_is_this_host(const struct wlbd_node *node)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	if (node->address_length == 0 || is_loopback(&node->address))
		return node->address_length > 0;
	int fd = socket(node->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_own = fd >= 0 && connect(fd, (const struct sockaddr *)&node->address, node->address_length) == 0 &&
	              getsockname(fd, (struct sockaddr *)&own, &length) == 0 && wlbd_node_has_address(node, &own);
	if (fd >= 0)
		close(fd);
	return is_own;
}

void wlbd_own_network_cancel(struct wlbd_own_network *question)
{
	for (int i = 0; i < WLBD_OWN_NETWORK_PROBES; i++)
		wlbd_program_probe_cancel(question->probes[i].probe);
	*question = (struct wlbd_own_network){0};
}

static void finish(struct wlbd_own_network *question, enum wlbd_own_network_state state)
{
	void (*done)(void *context, enum wlbd_own_network_state state) = question->done;
	void *context = question->context;
	wlbd_own_network_cancel(question);
	done(context, state);
}

static void on_probed(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms)
{
	struct wlbd_own_network_probe *probe = context;
	struct wlbd_own_network *question = probe->question;
	bool is_last = true;
	(void)took_ms;
	probe->probe = NULL;
	for (int i = 0; i < WLBD_OWN_NETWORK_PROBES; i++)
		is_last = is_last && question->probes[i].probe == NULL;
	if (outcome != WLBD_PROBE_FAILED)
		finish(question, WLBD_OWN_NETWORK_WORKS);
	else if (is_last)
		finish(question, WLBD_OWN_NETWORK_SILENT);
}

static bool may_be_asked(const struct wlbd_own_network *question, const struct wlbd_node *node, const char *silent)
{
	for (int i = 0; i < WLBD_OWN_NETWORK_PROBES; i++)
		if (question->probes[i].probe != NULL && strcmp(question->probes[i].node, node->name) == 0)
			return false;
	return !node->down && !node->saves_power && node->address_length > 0 && strcmp(node->name, silent) != 0 &&
	       !wlbd_node_is_this_host(node);
}

/* Probes the first node that may be asked from one chosen at random on: neighbours by name may share a rack, and its
 * power. Returns whether there is one. */
static bool probe_any(struct wlbd_own_network *question, struct wlbd *wlbd, const char *silent,
                      struct wlbd_own_network_probe *probe)
{
	int count = wlbd_nodes_count(wlbd->nodes);
	int from = count > 0 ? (int)(random() % count) : 0;
	for (int i = 0; i < count && probe->probe == NULL; i++) {
		const struct wlbd_node *node = wlbd_nodes_at(wlbd->nodes, (from + i) % count);
		if (!may_be_asked(question, node, silent))
			continue;
		snprintf(probe->node, sizeof(probe->node), "%s", node->name);
		probe->probe = wlbd_program_probe_start(wlbd->base, (const struct sockaddr *)&node->address,
		                                        node->address_length, on_probed, probe);
	}
	return probe->probe != NULL;
}

void wlbd_own_network_ask(struct wlbd_own_network *question, struct wlbd *wlbd, const char *silent,
                          void (*done)(void *context, enum wlbd_own_network_state state), void *context)
{
	int started = 0;
	*question = (struct wlbd_own_network){.done = done, .context = context};
	for (int i = 0; i < WLBD_OWN_NETWORK_PROBES; i++) {
		question->probes[i].question = question;
		started += probe_any(question, wlbd, silent, &question->probes[i]);
	}
	if (started == 0)
		finish(question, WLBD_OWN_NETWORK_ALONE);
}
