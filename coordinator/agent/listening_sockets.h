/* Whose sockets listen on this node, from /proc/net/tcp and tcp6. */
#ifndef COORDINATOR_AGENT_LISTENING_SOCKETS_H
#define COORDINATOR_AGENT_LISTENING_SOCKETS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Returns whether a socket listens at this address of IPv4 or IPv6, and all that do are of this user: another user's
 * process may have the port of one of ours that is not there. False also where the kernel does not say it, or has more
 * sockets than are looked at. */
bool wlb_listening_user_is(const struct sockaddr *address, uid_t uid);

#endif
