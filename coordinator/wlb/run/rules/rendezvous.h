/*
 * Where the ranks of an attempt meet: MASTER_ADDR and MASTER_PORT, as PyTorch reads them. The port differs from attempt
 * to attempt, since the ranks of the one before may still hold theirs. Functions of facts, no I/O.
 */
#ifndef COORDINATOR_WLB_RUN_RULES_RENDEZVOUS_H
#define COORDINATOR_WLB_RUN_RULES_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the port of an attempt, below `ephemeral`, the first port that the kernel gives to connections
 * (net.ipv4.ip_local_port_range); 0: not known. Attempts of one launch that follow each other have different ports, and
 * none is one that PyTorch takes by itself. */
int wlb_rendezvous_port(uint32_t job_id, int launch, int attempt, int ephemeral);

struct wlb_rendezvous {
	char address[256]; /* of the node with rank 0 */
	int port;          /* 0: an attempt has none yet */
	char id[80];       /* of torchrun's rendezvous, another one for each attempt */
};

struct wlb_rendezvous_node {
	const char *name;    /* in Slurm */
	const char *address; /* NodeAddr; NULL: not known */
};

/* Whether the text names the node: by its name, with a domain or without, or by its address. */
bool wlb_rendezvous_names(const char *text, const struct wlb_rendezvous_node *node);

/* Whether a MASTER_ADDR that the user has set has to be replaced, since it names another node of the job than that
 * which has rank 0 in the attempt. Any other value is the user's own: the address of another network, say. */
bool wlb_rendezvous_is_elsewhere(const char *given, const struct wlb_rendezvous_node *job, int count,
                                 const struct wlb_rendezvous_node *first);

#endif
