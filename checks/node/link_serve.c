#include "checks/node/link_serve.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checks/node/link_accept.h"
#include "checks/node/link_message.h"
#include "common/command.h"
#include "common/number.h"
#include "common/seconds.h"

static int open_port(int port, struct wlb_error *error)
{
	const int yes = 1, no = 0;
	struct sockaddr_in6 address = {
		.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
	struct sockaddr_in address4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ip6 = fd >= 0;
	if (!ip6) /* a kernel without IPv6 */
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return wlb_fail(error, "--serve %d: %s", port, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (ip6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	const struct sockaddr *at = ip6 ? (const struct sockaddr *)&address : (const struct sockaddr *)&address4;
	if (bind(fd, at, ip6 ? sizeof(address) : sizeof(address4)) == 0 && listen(fd, WLB_LINK_WAITING_MOST) == 0)
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
	return wlb_link_send_blocks(fd, until_s, &blocks, error);
}

static int serve(int listener, const char *token, double seconds, struct wlb_error *error)
{
	double until_s = wlb_now_s() + seconds;
	int fd = wlb_link_accept(listener, token, until_s, error);
	int rc = fd >= 0 ? answer(fd, until_s, error) : -1;
	if (fd >= 0)
		close(fd);
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
