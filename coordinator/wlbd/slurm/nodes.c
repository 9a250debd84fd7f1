#include "coordinator/wlbd/slurm/nodes.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/thread_pool.h"
#include "coordinator/wlbd/wlbd.h"

enum { RESOLVE_AGAIN_MS = 10000 };

/* Sorted by name; replaced as a whole. */
struct table {
	struct wlbd_node *nodes;
	size_t count;
};

/* Of the addresses that Slurm uses: IPv4 alone, unless it is configured otherwise. */
struct family {
	bool is_known;
	bool has_ipv6;
};

struct wlbd_nodes {
	struct table table;
	struct wlb_topology_file topology;
	bool has_topology;
	int resolving;  /* names that are being resolved */
	bool are_known; /* those of the first list were */
	struct family family;
};

struct refresh {
	struct wlbd_task task;
	struct wlbd *wlbd;
	struct table new;
	struct wlb_topology_file topology;
	bool has_topology; /* Slurm has answered that question too */
	struct family family;
	int rc;
	struct wlb_error error;
	void (*then)(void *context, const struct wlb_error *error);
	void *context;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct wlbd_node *)a)->name, ((const struct wlbd_node *)b)->name);
}

/* Returns the length of the address; 0: the name does not resolve. */
static socklen_t find_address(const char *host, uint16_t port, int family, int flags, struct sockaddr_storage *address)
{
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
	struct addrinfo *found = NULL;
	char service[8];
	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &found) != 0)
		return 0;
	socklen_t length = found->ai_addrlen;
	memcpy(address, found->ai_addr, length);
	freeaddrinfo(found);
	return length;
}

static const struct wlbd_node *find(const struct table *table, const char *name)
{
	struct wlbd_node key;
	if (table->count == 0)
		return NULL;
	snprintf(key.name, sizeof(key.name), "%s", name);
	return bsearch(&key, table->nodes, table->count, sizeof(key), by_name);
}

/* ---- on a thread that asks Slurm --------------------------------------------------------------- */

/* Parses an address, which needs no name server. */
static void fill(struct wlbd_node *node, const struct wlb_slurm_node *from)
{
	*node = (struct wlbd_node){.port = from->port,
	                           .down = from->down,
	                           .saves_power = from->saves_power,
	                           .responds = from->responds,
	                           .allocated = from->allocated,
	                           .drained = from->drained,
	                           .reason_time = from->reason_time};
	snprintf(node->name, sizeof(node->name), "%s", from->name);
	snprintf(node->host, sizeof(node->host), "%s", from->address);
	snprintf(node->gpu_type, sizeof(node->gpu_type), "%s", from->gpu_type);
	snprintf(node->reason, sizeof(node->reason), "%s", from->reason);
	node->address_length = find_address(node->host, node->port, AF_UNSPEC, AI_NUMERICHOST, &node->address);
	node->is_numeric = node->address_length > 0;
}

/* A host whose name has an IPv6 address, too, has a slurmd that does not listen there, unless EnableIPv6 is set. Slurm
 * is asked once. */
static void ask_family(struct refresh *refresh)
{
	char parameters[1024] = "";
	if (refresh->family.is_known || !wlb_slurm_config("CommunicationParameters", parameters, sizeof(parameters)))
		return;
	refresh->family.is_known = true;
	refresh->family.has_ipv6 = strcasestr(parameters, "EnableIPv6") != NULL;
}

/* Without an answer the old topology is kept. */
static void ask_topology(struct refresh *refresh)
{
	struct wlb_error error;
	refresh->has_topology = wlb_slurm_topology(&refresh->topology, &error) == 0;
	if (!refresh->has_topology)
		wlbd_log(WLBD_LOG_WARNING, "Slurm's switches: %s", error.message);
}

static void run_refresh(struct wlbd_task *task)
{
	struct refresh *refresh = (struct refresh *)task;
	struct wlb_slurm_node *list;
	int count;
	if (refresh->wlbd->slurm_unavailable) { /* wlbd_slurm_ping finds out when it answers again */
		refresh->rc = wlb_fail(&refresh->error, "slurmctld does not answer");
		return;
	}
	refresh->rc = wlb_slurm_nodes(&list, &count, &refresh->error);
	refresh->wlbd->slurm_unavailable = refresh->rc != 0;
	if (refresh->rc != 0) {
		wlbd_log(WLBD_LOG_WARNING, "Slurm's nodes: %s", refresh->error.message);
		return;
	}
	refresh->new.nodes = calloc((size_t)count + 1, sizeof(*refresh->new.nodes));
	for (int i = 0; refresh->new.nodes != NULL &&i < count; i++)
		fill(&refresh->new.nodes[i], &list[i]);
	free(list);
	if (refresh->new.nodes == NULL) {
		refresh->rc = wlb_fail(&refresh->error, "out of memory");
		return;
	}
	refresh->new.count = (size_t)count;
	qsort(refresh->new.nodes, refresh->new.count, sizeof(*refresh->new.nodes), by_name);
	ask_family(refresh);
	ask_topology(refresh);
}

/* ---- names of hosts, on a thread of their own, since a name server may hang -------------------------------- */

struct resolution {
	struct wlbd_task task;
	struct wlbd *wlbd;
	char name[256];
	char host[256];
	uint16_t port;
	bool has_ipv6;
	struct sockaddr_storage address;
	socklen_t length;
};

static void run_resolution(struct wlbd_task *task)
{
	struct resolution *resolution = (struct resolution *)task;
	resolution->length = find_address(resolution->host, resolution->port,
	                                  resolution->has_ipv6 ? AF_UNSPEC : AF_INET, 0, &resolution->address);
}

/* The table may have been replaced since. An address that is known is kept where its name does not resolve any more. */
static void finish_resolution(struct wlbd_task *task)
{
	struct resolution *resolution = (struct resolution *)task;
	struct wlbd_nodes *nodes = resolution->wlbd->nodes;
	struct wlbd_node *node = (struct wlbd_node *)find(&nodes->table, resolution->name);
	nodes->resolving--;
	nodes->are_known = nodes->are_known || nodes->resolving == 0;
	if (node != NULL && resolution->length > 0 && strcmp(node->host, resolution->host) == 0 &&
	    node->port == resolution->port) {
		node->address = resolution->address;
		node->address_length = resolution->length;
	}
	free(resolution);
}

static void resolve(struct wlbd *wlbd, struct wlbd_node *node)
{
	struct resolution *resolution = calloc(1, sizeof(*resolution));
	if (resolution == NULL)
		return;
	*resolution = (struct resolution){.wlbd = wlbd, .port = node->port, .has_ipv6 = wlbd->nodes->family.has_ipv6};
	resolution->task =
		(struct wlbd_task){.run = run_resolution, .done = finish_resolution, .discard = finish_resolution};
	memcpy(resolution->name, node->name, sizeof(resolution->name));
	memcpy(resolution->host, node->host, sizeof(resolution->host));
	node->is_outdated = false;
	node->resolved_ms = wlb_clock_ms();
	wlbd->nodes->resolving++;
	wlbd_thread_pool_submit(wlbd->resolver, &resolution->task);
}

/* Begins after all names of the last time are resolved, or are known not to be. */
static void resolve_missing(struct wlbd *wlbd)
{
	struct wlbd_nodes *nodes = wlbd->nodes;
	if (nodes->resolving > 0 || wlbd->stopping)
		return;
	for (size_t i = 0; i < nodes->table.count; i++)
		if (nodes->table.nodes[i].address_length == 0 || nodes->table.nodes[i].is_outdated)
			resolve(wlbd, &nodes->table.nodes[i]);
}

void wlbd_nodes_resolve_again(struct wlbd *wlbd, const char *name)
{
	struct wlbd_node *node = (struct wlbd_node *)find(&wlbd->nodes->table, name);
	if (node != NULL && !node->is_numeric && node->address_length > 0 && !wlbd->stopping &&
	    wlb_clock_ms() - node->resolved_ms >= RESOLVE_AGAIN_MS)
		resolve(wlbd, node);
}

/* ---- on the loop ------------------------------------------------------------------------------- */

/* Keeps the addresses of names. A node of a cloud that was down may have another when it is back. */
static void keep_addresses(const struct table *old, struct table *new)
{
	for (size_t i = 0; i < new->count; i++) {
		struct wlbd_node *node = &new->nodes[i];
		const struct wlbd_node *known = node->is_numeric ? NULL : find(old, node->name);
		if (known == NULL || strcmp(known->host, node->host) != 0 || known->port != node->port)
			continue;
		node->address = known->address;
		node->address_length = known->address_length;
		node->is_outdated = known->is_outdated || (known->down && !node->down);
		node->resolved_ms = known->resolved_ms;
	}
}

static void finish_refresh(struct wlbd_task *task)
{
	struct refresh *refresh = (struct refresh *)task;
	struct wlbd_nodes *nodes = refresh->wlbd->nodes;
	if (refresh->rc == 0) {
		keep_addresses(&nodes->table, &refresh->new);
		free(nodes->table.nodes);
		nodes->table = refresh->new;
		nodes->family = refresh->family;
		resolve_missing(refresh->wlbd);
		nodes->are_known = nodes->are_known || nodes->resolving == 0;
	}
	if (refresh->has_topology) {
		wlb_topology_file_free(&nodes->topology);
		nodes->topology = refresh->topology;
		nodes->has_topology = true;
	}
	if (refresh->then != NULL)
		refresh->then(refresh->context, refresh->rc == 0 ? NULL : &refresh->error);
	free(refresh);
}

static void discard_refresh(struct wlbd_task *task)
{
	struct refresh *refresh = (struct refresh *)task;
	refresh->rc = wlb_fail(&refresh->error, "Slurm was not asked");
	finish_refresh(task);
}

void wlbd_nodes_refresh(struct wlbd *wlbd, uid_t asker, void (*then)(void *context, const struct wlb_error *error),
                        void *context)
{
	struct refresh *refresh = calloc(1, sizeof(*refresh));
	if (refresh == NULL) {
		struct wlb_error error = {.message = "out of memory"};
		if (then != NULL)
			then(context, &error);
		return;
	}
	refresh->task = (struct wlbd_task){
		.run = run_refresh, .done = finish_refresh, .discard = discard_refresh, .owner = asker};
	refresh->wlbd = wlbd;
	refresh->family = wlbd->nodes->family;
	refresh->then = then;
	refresh->context = context;
	wlbd_thread_pool_submit(wlbd->slurm_questions, &refresh->task);
}

struct wlbd_nodes *wlbd_nodes_new(void)
{
	return calloc(1, sizeof(struct wlbd_nodes));
}

void wlbd_nodes_free(struct wlbd_nodes *nodes)
{
	if (nodes != NULL) {
		free(nodes->table.nodes);
		wlb_topology_file_free(&nodes->topology);
	}
	free(nodes);
}

const struct wlb_topology_file *wlbd_nodes_topology(const struct wlbd_nodes *nodes)
{
	return nodes->has_topology ? &nodes->topology : NULL;
}

int wlbd_nodes_count(const struct wlbd_nodes *nodes)
{
	return (int)nodes->table.count;
}

bool wlbd_nodes_are_known(const struct wlbd_nodes *nodes)
{
	return nodes->are_known;
}

const struct wlbd_node *wlbd_nodes_at(const struct wlbd_nodes *nodes, int index)
{
	return &nodes->table.nodes[index];
}

const struct wlbd_node *wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name)
{
	return find(&nodes->table, name);
}

/* Maps an IPv4 address into IPv6, so that both compare. Returns false where it is of neither family. */
static bool as_ipv6(const struct sockaddr_storage *address, struct in6_addr *ipv6)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	if (address->ss_family == AF_INET6)
		*ipv6 = ((const struct sockaddr_in6 *)address)->sin6_addr;
	else
		*ipv6 = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
	if (address->ss_family == AF_INET)
		memcpy(&ipv6->s6_addr[12], &v4->sin_addr, sizeof(v4->sin_addr));
	return address->ss_family == AF_INET || address->ss_family == AF_INET6;
}

bool wlbd_node_has_address(const struct wlbd_node *node, const struct sockaddr_storage *address)
{
	struct in6_addr own, other;
	return node->address_length > 0 && as_ipv6(&node->address, &own) && as_ipv6(address, &other) &&
	       memcmp(&own, &other, sizeof(own)) == 0;
}
