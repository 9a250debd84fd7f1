/* Waits for the peer that has the token, among connections of others. */
#ifndef CHECKS_NODE_LINK_ACCEPT_H
#define CHECKS_NODE_LINK_ACCEPT_H

#include "libwlb/wlb.h"

/* How many connections that have proved nothing are kept; another one replaces the oldest. */
enum { WLB_LINK_WAITING_MOST = 64 };

/* Returns the connection of the first peer that has proved that it has the token, and has the proof of this side; -1
 * with the reason where none has until that time of wlb_now_s. Connections that have proved nothing are kept side by
 * side for 2 s at most, so that they delay no other. `listener` does not block. */
int wlb_link_accept(int listener, const char *token, double until_s, struct wlb_error *error);

#endif
