/* Where the coordinators are and which account's replies are accepted: from the environment or /etc/wlb/wlb.conf. */
#ifndef COORDINATOR_CLIENT_CONFIG_H
#define COORDINATOR_CLIENT_CONFIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

enum { WLB_COORDINATORS_MAX = 2 }; /* one acts, and one stands by */

struct wlb_client_address {
	char host[256];
	char port[16];
};

/* Where the coordinators are, how a request proves its sender, and which account's proof of a reply is accepted. */
struct wlb_client_config {
	struct wlb_client_address coordinators[WLB_COORDINATORS_MAX];
	int coordinator_count;
	char munge_socket[108];    /* "": MUNGE's default */
	char coordinator_user[64]; /* the account wlbd runs as, a name or a number; "": root */
	uid_t coordinator_uid;     /* the same */
	bool no_hook;              /* `wlb run` puts no hook of Python into ranks */
};

/* Reads, in this order of precedence: WLB_COORDINATOR (host:port,host:port), WLB_MUNGE_SOCKET and WLB_COORDINATOR_USER
 * from the environment; then the file WLB_CONF or /etc/wlb/wlb.conf (`coordinator = host:port, host:port`,
 * `munge_socket = path`, `coordinator_user = name`, `hook = no`). Returns -1 if none of them names a coordinator or a
 * line is malformed. */
int wlb_client_config_load(struct wlb_client_config *config, struct wlb_error *error);

/* Parses one or two addresses, "host:port" or "[v6]:port", with a comma between them, into the config, which replace
 * those that it had. Returns -1 with the value, the rule and an example; the config is unchanged then. */
int wlb_client_config_addresses(struct wlb_client_config *config, const char *addresses, struct wlb_error *error);

/* Sets the account whose proofs are accepted. Returns -1 if this host does not know the name. */
int wlb_client_config_user(struct wlb_client_config *config, const char *user, struct wlb_error *error);

#endif
