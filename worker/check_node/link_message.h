/* What the two sides of a measured link say to each other, over TCP. */
#ifndef WORKER_CHECK_NODE_LINK_MESSAGE_H
#define WORKER_CHECK_NODE_LINK_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "libwlb/wlb.h"

/*
 * The side that serves begins with a nonce. The other proves with it that it has the token, which is never sent, and
 * gets a byte. It sends pings, which come back; blocks, whose number comes back; and a byte, for which it gets blocks.
 * No side sends more than WLB_LINK_BLOCKS_MOST blocks, or takes more.
 */
enum { WLB_LINK_NONCE_BYTES = 32, WLB_LINK_PINGS = 100, WLB_LINK_PING_BYTES = 8 };
enum { WLB_LINK_BLOCK_BYTES = 1 << 20, WLB_LINK_BLOCKS_MOST = 1 << 14 };
enum { WLB_LINK_ACCEPTED = 'A', WLB_LINK_TURN = 'T' };

/* How long each direction is measured. */
#define WLB_LINK_DIRECTION_S 0.5

/* The token that both sides are given, WLB_CHECK_NODE_TOKEN. NULL with the rule and the remedy where there is none. */
const char *wlb_link_token(struct wlb_error *error);

void wlb_link_prove(const char *token, const char nonce[WLB_LINK_NONCE_BYTES], char proof[WLB_DIGEST_SIZE]);

/* A socket that does not block, of which each call below has a bound. */
int wlb_link_prepare(int fd, struct wlb_error *error);

/* Sends or receives all bytes until that time of wlb_now_s. Return -1 with the reason. */
int wlb_link_send(int fd, const void *data, size_t bytes, double until_s, struct wlb_error *error);
int wlb_link_receive(int fd, void *data, size_t bytes, double until_s, struct wlb_error *error);

/* Sends blocks for WLB_LINK_DIRECTION_S; receives such, and sets their number. */
int wlb_link_send_blocks(int fd, double until_s, struct wlb_error *error);
int wlb_link_receive_blocks(int fd, double until_s, uint64_t *blocks, struct wlb_error *error);

#endif
