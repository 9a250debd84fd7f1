#include "worker/check_node/link_serve.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/command.h"
#include "common/number.h"
#include "common/seconds.h"
#include "worker/check_node/link_message.h"

/* How long a peer may take to prove that it has the token. */
static const double PROOF_S = 2.0;

static int open_port(int port, struct wlb_error *error)
{
	const int yes = 1, no = 0;
	struct sockaddr_in6 address = {
		.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
	struct sockaddr_in address4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), ip6 = fd >= 0;
	if (!ip6) /* a kernel without IPv6 */
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return wlb_fail(error, "--serve %d: %s", port, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (ip6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	const struct sockaddr *at = ip6 ? (const struct sockaddr *)&address : (const struct sockaddr *)&address4;
	if (bind(fd, at, ip6 ? sizeof(address) : sizeof(address4)) == 0 && listen(fd, 4) == 0)
		return fd;
	wlb_fail(error, "--serve %d: %s; choose another port", port, strerror(errno));
	close(fd);
	return -1;
}

/* Both families keep the port at the same place. */
static int port_of(int fd)
{
	struct sockaddr_in6 address = {0};
	socklen_t size = sizeof(address);
	return getsockname(fd, (struct sockaddr *)&address, &size) == 0 ? ntohs(address.sin6_port) : 0;
}

/* Compares in a time that does not depend on where they differ. */
static int same(const char *a, const char *b, size_t size)
{
	unsigned char differ = 0;
	for (size_t i = 0; i < size; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return differ == 0;
}

/* Returns 0 where the peer has proved that it has the token. */
static int accept_peer(int fd, const char *token, double until_s, struct wlb_error *error)
{
	char nonce[WLB_LINK_NONCE_BYTES], expected[WLB_DIGEST_SIZE], proof[WLB_DIGEST_SIZE];
	const char accepted = WLB_LINK_ACCEPTED;
	if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return wlb_fail(error, "random numbers: %s", strerror(errno));
	wlb_link_prove(token, nonce, expected);
	if (wlb_link_prepare(fd, error) < 0 || wlb_link_send(fd, nonce, sizeof(nonce), until_s, error) < 0 ||
	    wlb_link_receive(fd, proof, WLB_DIGEST_SIZE - 1, until_s, error) < 0)
		return -1;
	if (!same(proof, expected, WLB_DIGEST_SIZE - 1))
		return wlb_fail(error, "a peer has another WLB_CHECK_NODE_TOKEN");
	return wlb_link_send(fd, &accepted, 1, until_s, error);
}

static int answer(int fd, double until_s, struct wlb_error *error)
{
	char ping[WLB_LINK_PING_BYTES], turn;
	uint64_t blocks, sent;
	for (int i = 0; i < WLB_LINK_PINGS; i++)
		if (wlb_link_receive(fd, ping, sizeof(ping), until_s, error) < 0 ||
		    wlb_link_send(fd, ping, sizeof(ping), until_s, error) < 0)
			return -1;
	if (wlb_link_receive_blocks(fd, until_s, &blocks, error) < 0)
		return -1;
	sent = htobe64(blocks);
	if (wlb_link_send(fd, &sent, sizeof(sent), until_s, error) < 0 ||
	    wlb_link_receive(fd, &turn, 1, until_s, error) < 0)
		return -1;
	return wlb_link_send_blocks(fd, until_s, error);
}

/* Waits for a connection; returns it, or -1 when the time is over. */
static int next_connection(int listener, double until_s)
{
	double left_s;
	while ((left_s = until_s - wlb_now_s()) > 0.0) {
		struct pollfd ready = {.fd = listener, .events = POLLIN};
		if (poll(&ready, 1, (int)(1e3 * left_s) + 1) <= 0)
			continue;
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* A connection that proves nothing is closed, and the next one is waited for. */
static int serve(int listener, const char *token, double seconds, struct wlb_error *error)
{
	double until_s = wlb_now_s() + seconds;
	int fd, rc = 1;
	wlb_fail(error, "no peer came");
	while (rc > 0 && (fd = next_connection(listener, until_s)) >= 0) {
		if (accept_peer(fd, token, fmin(until_s, wlb_now_s() + PROOF_S), error) == 0)
			rc = answer(fd, until_s, error);
		close(fd);
	}
	return rc == 0 ? 0 : wlb_fail_in(error, "--serve, within %g s", seconds);
}

int wlb_link_serve(const struct wlb_check_options *options, struct wlb_error *error)
{
	int64_t port;
	const char *token = wlb_link_token(error);
	if (token == NULL || wlb_number_parse("--serve", options->serve, 0, 65535, &port, error) < 0)
		return WLB_EXIT_USAGE;
	int listener = open_port((int)port, error);
	if (listener < 0)
		return WLB_EXIT_USAGE;
	printf("serving at port %d for %g s\n", port_of(listener), options->seconds);
	fflush(stdout);
	int rc = serve(listener, token, options->seconds, error);
	close(listener);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
}
