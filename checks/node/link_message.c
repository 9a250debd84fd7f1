#include "checks/node/link_message.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/seconds.h"

enum { TOKEN_LEAST = 16, TOKEN_MOST = 256 };

/* Another number wherever the protocol changes, so that both sides can say why they do not understand each other. */
static const char VERSION[WLB_LINK_VERSION_BYTES + 1] = "WLBLINK2";

/* Before a block, and after the last. */
static const char BLOCK = 'B', END = 'E';

const char *wlb_link_token(struct wlb_error *error)
{
	const char *token = getenv("WLB_CHECK_NODE_TOKEN");
	size_t length = token != NULL ? strlen(token) : 0;
	if (length >= TOKEN_LEAST && length <= TOKEN_MOST)
		return token;
	wlb_fail(error,
	         "WLB_CHECK_NODE_TOKEN: has %zu bytes; set it to the same secret of %d to %d bytes on both sides of a "
	         "link",
	         length, TOKEN_LEAST, TOKEN_MOST);
	return NULL;
}

int wlb_link_greet(struct wlb_link_greeting *greeting, struct wlb_error *error)
{
	memcpy(greeting->version, VERSION, WLB_LINK_VERSION_BYTES);
	if (getrandom(greeting->nonce, WLB_LINK_NONCE_BYTES, 0) != WLB_LINK_NONCE_BYTES)
		return wlb_fail(error, "random numbers: %s", strerror(errno));
	return 0;
}

bool wlb_link_is_same_version(const struct wlb_link_greeting *greeting)
{
	return memcmp(greeting->version, VERSION, WLB_LINK_VERSION_BYTES) == 0;
}

void wlb_link_prove(enum wlb_link_side side, const char *token, const struct wlb_link_greeting *server,
                    const struct wlb_link_greeting *peer, char proof[WLB_LINK_PROOF_BYTES])
{
	char nonces[2 * WLB_LINK_NONCE_BYTES], digest[WLB_DIGEST_SIZE];
	memcpy(nonces, server->nonce, WLB_LINK_NONCE_BYTES);
	memcpy(nonces + WLB_LINK_NONCE_BYTES, peer->nonce, WLB_LINK_NONCE_BYTES);
	wlb_digest_request(side == WLB_LINK_SERVER ? "LINK SERVER" : "LINK PEER", token, nonces, sizeof(nonces),
	                   digest);
	memcpy(proof, digest, WLB_LINK_PROOF_BYTES);
}

bool wlb_link_same_proof(const char a[WLB_LINK_PROOF_BYTES], const char b[WLB_LINK_PROOF_BYTES])
{
	unsigned char differ = 0;
	for (int i = 0; i < WLB_LINK_PROOF_BYTES; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return differ == 0;
}

int wlb_link_prepare(int fd, struct wlb_error *error)
{
	const int yes = 1;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0)
		return wlb_fail(error, "socket: %s", strerror(errno));
	return 0;
}

/* Waits until the socket is ready for `events`. */
static int wait_ready(int fd, short events, double until_s, struct wlb_error *error)
{
	double left_s = until_s - wlb_now_s();
	struct pollfd ready = {.fd = fd, .events = events};
	int rc = left_s > 0.0 ? poll(&ready, 1, (int)(1e3 * left_s) + 1) : 0;
	if (rc > 0 || (rc < 0 && errno == EINTR))
		return 0;
	return rc == 0 ? wlb_fail(error, "no answer in time") : wlb_fail(error, "poll: %s", strerror(errno));
}

/* Moves all bytes by `call`, which sends or receives. */
static int move_all(int fd, char *data, size_t bytes, int receives, double until_s, struct wlb_error *error)
{
	while (bytes > 0) {
		ssize_t n = receives ? recv(fd, data, bytes, 0) : send(fd, data, bytes, MSG_NOSIGNAL);
		if ((n == 0 && receives) || (n < 0 && (errno == ECONNRESET || errno == EPIPE))) {
			wlb_fail(error, "the other side has closed the connection");
			return WLB_LINK_CLOSED;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return wlb_fail(error, "%s", strerror(errno));
		if (n < 0 && wait_ready(fd, receives ? POLLIN : POLLOUT, until_s, error) < 0)
			return -1;
		data += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
		if (bytes > 0 && wlb_now_s() > until_s)
			return wlb_fail(error, "the time is over with %zu bytes left", bytes);
	}
	return 0;
}

int wlb_link_send(int fd, const void *data, size_t bytes, double until_s, struct wlb_error *error)
{
	return move_all(fd, (char *)data, bytes, 0, until_s, error); /* send() only reads */
}

int wlb_link_receive(int fd, void *data, size_t bytes, double until_s, struct wlb_error *error)
{
	return move_all(fd, data, bytes, 1, until_s, error);
}

int wlb_link_send_blocks(int fd, double until_s, uint64_t *blocks, struct wlb_error *error)
{
	char *block = calloc(1, WLB_LINK_BLOCK_BYTES + 1);
	double end_s = wlb_now_s() + WLB_LINK_DIRECTION_S;
	int rc = block != NULL ? 0 : wlb_fail(error, "out of memory for a block");
	if (rc == 0)
		block[0] = BLOCK;
	for (*blocks = 0; *blocks < WLB_LINK_BLOCKS_MOST && rc == 0 && (*blocks == 0 || wlb_now_s() < end_s); ++*blocks)
		rc = wlb_link_send(fd, block, WLB_LINK_BLOCK_BYTES + 1, until_s, error);
	if (rc == 0)
		rc = wlb_link_send(fd, &END, 1, until_s, error);
	free(block);
	return rc;
}

int wlb_link_receive_blocks(int fd, double until_s, uint64_t *blocks, struct wlb_error *error)
{
	char kind, *block = malloc(WLB_LINK_BLOCK_BYTES);
	int rc = block != NULL ? 0 : wlb_fail(error, "out of memory for a block");
	for (*blocks = 0; rc == 0; ++*blocks) {
		rc = wlb_link_receive(fd, &kind, 1, until_s, error);
		if (rc == 0 && kind == END)
			break;
		if (rc == 0 && (kind != BLOCK || *blocks == WLB_LINK_BLOCKS_MOST))
			rc = wlb_fail(error, "the other side sends what is no block, or more than %d of them",
			              WLB_LINK_BLOCKS_MOST);
		if (rc == 0)
			rc = wlb_link_receive(fd, block, WLB_LINK_BLOCK_BYTES, until_s, error);
	}
	free(block);
	return rc;
}
