#include "coordinator/wlb/run/rules/rendezvous.h"

#include <stddef.h>
#include <string.h>

enum {
	PORTS = 4093, /* a prime, so that the steps below reach each of them */
	BETWEEN_LAUNCHES = 1021,
	PRIVILEGED = 1024,
	EPHEMERAL = 32768, /* Linux' own default */
};

static const int known_ports[] = {29400, 29500}; /* of torchrun's c10d, and of MASTER_PORT */

static bool is_known(int port)
{
	for (size_t i = 0; i < sizeof(known_ports) / sizeof(known_ports[0]); i++)
		if (port == known_ports[i])
			return true;
	return false;
}

int wlb_rendezvous_port(uint32_t job_id, int launch, int attempt, int ephemeral)
{
	if (ephemeral > EPHEMERAL || ephemeral < PRIVILEGED + PORTS)
		ephemeral = EPHEMERAL;
	uint64_t number = (uint64_t)job_id * 7 + (uint64_t)launch * BETWEEN_LAUNCHES + (uint64_t)attempt;
	int port = ephemeral - 1 - (int)(number % PORTS);
	return is_known(port) ? port - PORTS / 2 : port;
}

bool wlb_rendezvous_names(const char *text, const struct wlb_rendezvous_node *node)
{
	size_t length = strlen(node->name);
	if (strncmp(text, node->name, length) == 0 && (text[length] == '\0' || text[length] == '.'))
		return true;
	return node->address != NULL && strcmp(text, node->address) == 0;
}

bool wlb_rendezvous_is_elsewhere(const char *given, const struct wlb_rendezvous_node *job, int count,
                                 const struct wlb_rendezvous_node *first)
{
	if (wlb_rendezvous_names(given, first))
		return false;
	for (int i = 0; i < count; i++)
		if (wlb_rendezvous_names(given, &job[i]))
			return true;
	return false;
}
