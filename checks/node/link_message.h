/* The messages of a link measurement over TCP. */
#ifndef CHECKS_NODE_LINK_MESSAGE_H
#define CHECKS_NODE_LINK_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "libwlb/wlb.h"

/*
 * The side that serves begins with the version and a nonce. The other answers with its own, and proves by both nonces
 * that it has the token, which is never sent; then the side that serves does so, too, or refuses by its answer's kind
 * alone. The other sends pings, which come back; blocks, whose number comes back; and a byte, for which it gets blocks.
 * No side sends more than WLB_LINK_BLOCKS_MOST blocks, or takes more.
 */
enum { WLB_LINK_VERSION_BYTES = 8, WLB_LINK_NONCE_BYTES = 32, WLB_LINK_PROOF_BYTES = WLB_DIGEST_SIZE - 1 };
enum { WLB_LINK_PINGS = 100, WLB_LINK_PING_BYTES = 8 };
enum { WLB_LINK_BLOCK_BYTES = 1 << 20, WLB_LINK_BLOCKS_MOST = 1 << 14 };
enum { WLB_LINK_ACCEPTED = 'A', WLB_LINK_REFUSED = 'R', WLB_LINK_TURN = 'T' };

/* What is sent as it is: bytes alone. */
struct wlb_link_greeting {
	char version[WLB_LINK_VERSION_BYTES], nonce[WLB_LINK_NONCE_BYTES];
};

struct wlb_link_hello {
	struct wlb_link_greeting greeting;
	char proof[WLB_LINK_PROOF_BYTES];
};

struct wlb_link_answer {
	char kind, proof[WLB_LINK_PROOF_BYTES];
};

enum wlb_link_side { WLB_LINK_SERVER, WLB_LINK_PEER };

/* How long each direction is measured. */
#define WLB_LINK_DIRECTION_S 0.5

/* The token that both sides are given, WLB_CHECK_NODE_TOKEN. NULL with the rule and the remedy where there is none. */
const char *wlb_link_token(struct wlb_error *error);

/* Sets this program's version and a new nonce. Returns -1 with the reason where there are no random numbers. */
int wlb_link_greet(struct wlb_link_greeting *greeting, struct wlb_error *error);

/* Whether the other side, of which at least the version is there, is the same version of the protocol. */
bool wlb_link_is_same_version(const struct wlb_link_greeting *greeting);

/* The proof of a side that it has the token, which no other side and no other pair of nonces has. */
void wlb_link_prove(enum wlb_link_side side, const char *token, const struct wlb_link_greeting *server,
                    const struct wlb_link_greeting *peer, char proof[WLB_LINK_PROOF_BYTES]);

/* Compares in a time that does not depend on where they differ. */
bool wlb_link_same_proof(const char a[WLB_LINK_PROOF_BYTES], const char b[WLB_LINK_PROOF_BYTES]);

/* A socket that does not block, of which each call below has a bound. */
int wlb_link_prepare(int fd, struct wlb_error *error);

/* What the calls below return where the other side has closed the connection. */
enum { WLB_LINK_CLOSED = -2 };

/* Sends or receives all bytes until that time of wlb_now_s. Return -1 or WLB_LINK_CLOSED with the reason. */
int wlb_link_send(int fd, const void *data, size_t bytes, double until_s, struct wlb_error *error);
int wlb_link_receive(int fd, void *data, size_t bytes, double until_s, struct wlb_error *error);

/* Sends blocks for WLB_LINK_DIRECTION_S, or receives such; set their number. */
int wlb_link_send_blocks(int fd, double until_s, uint64_t *blocks, struct wlb_error *error);
int wlb_link_receive_blocks(int fd, double until_s, uint64_t *blocks, struct wlb_error *error);

#endif
