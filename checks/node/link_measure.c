#include "checks/node/link_measure.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checks/node/children.h"
#include "checks/node/link_message.h"
#include "common/number.h"
#include "common/seconds.h"
#include "worker/calibrate/stopwatch.h"

/* How long connecting may take, and what follows; names are looked up in the process that is killed then. */
static const double CONNECT_S = 3.0, ALL_S = 10.0;

/* How long a peer may refuse connections: both sides may be started at once, and this one be the first. */
static const double REFUSED_S = 5.0, REFUSED_PAUSE_S = 0.1;

/* What a child returns of a peer that says nothing of the link. */
enum { PEER_UNFIT = 1 };

struct address {
	char host[256], port[12];
};

struct work {
	const struct address *address;
	const char *token;
};

struct result {
	bool is_found;       /* the name of the peer */
	double round_trip_s; /* the median */
	double to_bytes_per_s, from_bytes_per_s;
};

/* Splits HOST:PORT at its last colon; an IPv6 address is in brackets. */
static int split(const char *peer, struct address *address, struct wlb_error *error)
{
	const char *colon = strrchr(peer, ':');
	int64_t port;
	if (colon == NULL || colon == peer)
		return wlb_fail(error, "--peer '%.100s': must be HOST:PORT", peer);
	if (wlb_number_parse("port of --peer", colon + 1, 1, 65535, &port, error) < 0)
		return -1;
	size_t length = (size_t)(colon - peer);
	if (*peer == '[' && length > 2 && peer[length - 1] == ']') {
		peer++;
		length -= 2;
	}
	if (length >= sizeof(address->host))
		return wlb_fail(error, "--peer '%.100s...': a host has %zu bytes at most", peer,
		                sizeof(address->host) - 1);
	snprintf(address->host, sizeof(address->host), "%.*s", (int)length, peer);
	snprintf(address->port, sizeof(address->port), "%d", (int)port);
	return 0;
}

/* Waits for the end of connect(), CONNECT_S at most; returns 0 or its errno. */
static int finish_connect(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	int failed = 0;
	socklen_t size = sizeof(failed);
	if (poll(&ready, 1, (int)(1e3 * CONNECT_S)) <= 0)
		return ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
	return failed;
}

/* Returns a socket that is connected to the address, or -1; sets *refused where nobody listens there. */
static int connect_to(const struct addrinfo *to, bool *refused, struct wlb_error *error)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), failed = 0;
	if (fd < 0)
		return wlb_fail(error, "socket: %s", strerror(errno));
	if (connect(fd, to->ai_addr, to->ai_addrlen) < 0)
		failed = errno == EINPROGRESS ? finish_connect(fd) : errno;
	if (failed == 0 && wlb_link_prepare(fd, error) == 0)
		return fd;
	if (failed != 0)
		wlb_fail(error, "cannot be reached: %s", strerror(failed));
	*refused = *refused || failed == ECONNREFUSED;
	close(fd);
	return -1;
}

/* Connects to the first address that accepts, and again while one of them refuses. */
static int connect_any(const struct addrinfo *list, struct wlb_error *error)
{
	double until_s = wlb_now_s() + REFUSED_S;
	bool refused;
	int fd = -1;
	do {
		refused = false;
		for (const struct addrinfo *to = list; to != NULL && fd < 0; to = to->ai_next)
			fd = connect_to(to, &refused, error);
		if (fd < 0 && refused)
			usleep((useconds_t)(1e6 * REFUSED_PAUSE_S));
	} while (fd < 0 && refused && wlb_now_s() < until_s);
	return fd;
}

/* Returns 0, or PEER_UNFIT. */
static int look_up(const struct address *address, struct addrinfo **list, struct wlb_error *error)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	int rc = getaddrinfo(address->host, address->port, &hints, list);
	if (rc == 0)
		return 0;
	wlb_fail(error, "cannot be found: %s; give a host that this node can look up", gai_strerror(rc));
	return PEER_UNFIT;
}

static int unfit(struct wlb_error *error, const char *why)
{
	wlb_fail(error, "%s", why);
	return PEER_UNFIT;
}

static int receive_greeting(int fd, struct wlb_link_greeting *theirs, double until_s, struct wlb_error *error)
{
	int rc = wlb_link_receive(fd, theirs->version, sizeof(theirs->version), until_s, error);
	if (rc == 0 && !wlb_link_is_same_version(theirs))
		return unfit(error, "is no wlb check-node --serve of this version; run the same version on both sides");
	return rc == 0 ? wlb_link_receive(fd, theirs->nonce, sizeof(theirs->nonce), until_s, error) : rc;
}

static int receive_proof(int fd, const char proof[WLB_LINK_PROOF_BYTES], double until_s, struct wlb_error *error)
{
	struct wlb_link_answer answer;
	int rc = wlb_link_receive(fd, &answer.kind, sizeof(answer.kind), until_s, error);
	if (rc == 0 && answer.kind == WLB_LINK_REFUSED)
		return unfit(error, "it does not accept WLB_CHECK_NODE_TOKEN; give both sides the same");
	if (rc == 0)
		rc = wlb_link_receive(fd, answer.proof, sizeof(answer.proof), until_s, error);
	if (rc == 0 && !wlb_link_same_proof(answer.proof, proof))
		return unfit(error,
		             "it does not prove that it has WLB_CHECK_NODE_TOKEN; see which program is at its port");
	return rc;
}

static int exchange_proofs(int fd, const char *token, double until_s, struct wlb_error *error)
{
	struct wlb_link_greeting theirs;
	struct wlb_link_hello hello;
	char proof[WLB_LINK_PROOF_BYTES];
	int rc = receive_greeting(fd, &theirs, until_s, error);
	if (rc == 0)
		rc = wlb_link_greet(&hello.greeting, error);
	if (rc != 0)
		return rc;
	wlb_link_prove(WLB_LINK_PEER, token, &theirs, &hello.greeting, hello.proof);
	wlb_link_prove(WLB_LINK_SERVER, token, &theirs, &hello.greeting, proof);
	rc = wlb_link_send(fd, &hello, sizeof(hello), until_s, error);
	return rc == 0 ? receive_proof(fd, proof, until_s, error) : rc;
}

/* A peer that closes the connection before its proof may have another peer, or be at the end of its --seconds. */
static int prove(int fd, const char *token, double until_s, struct wlb_error *error)
{
	int rc = exchange_proofs(fd, token, until_s, error);
	if (rc < 0)
		wlb_fail_in(error, "before its proof");
	return rc == WLB_LINK_CLOSED ? PEER_UNFIT : rc;
}

static int measure_round_trip(int fd, double until_s, struct result *result, struct wlb_error *error)
{
	double times_s[WLB_LINK_PINGS];
	char ping[WLB_LINK_PING_BYTES] = {0};
	for (int i = 0; i < WLB_LINK_PINGS; i++) {
		double from_s = wlb_now_s();
		if (wlb_link_send(fd, ping, sizeof(ping), until_s, error) < 0 ||
		    wlb_link_receive(fd, ping, sizeof(ping), until_s, error) < 0)
			return wlb_fail_in(error, "round trip %d", i + 1);
		times_s[i] = wlb_now_s() - from_s;
	}
	result->round_trip_s = wlb_median(times_s, WLB_LINK_PINGS);
	return 0;
}

static int measure_blocks(int fd, double until_s, struct result *result, struct wlb_error *error)
{
	const char turn = WLB_LINK_TURN;
	uint64_t blocks, received;
	double from_s = wlb_now_s();
	if (wlb_link_send_blocks(fd, until_s, &blocks, error) < 0 ||
	    wlb_link_receive(fd, &received, sizeof(received), until_s, error) < 0)
		return wlb_fail_in(error, "sending to it");
	if (be64toh(received) != blocks) {
		wlb_fail(error,
		         "it says that %" PRIu64 " blocks came of %" PRIu64 "; run the same version on both sides",
		         be64toh(received), blocks);
		return PEER_UNFIT;
	}
	result->to_bytes_per_s = (double)blocks * WLB_LINK_BLOCK_BYTES / (wlb_now_s() - from_s);
	from_s = wlb_now_s();
	if (wlb_link_send(fd, &turn, 1, until_s, error) < 0 || wlb_link_receive_blocks(fd, until_s, &blocks, error) < 0)
		return wlb_fail_in(error, "receiving from it");
	result->from_bytes_per_s = (double)blocks * WLB_LINK_BLOCK_BYTES / (wlb_now_s() - from_s);
	return 0;
}

static int measure_connection(int fd, const char *token, struct result *result, struct wlb_error *error)
{
	double until_s = wlb_now_s() + ALL_S;
	int rc = prove(fd, token, until_s, error);
	if (rc == 0)
		rc = measure_round_trip(fd, until_s, result, error);
	return rc == 0 ? measure_blocks(fd, until_s, result, error) : rc;
}

static int measure_peer(int index, const void *context, void *shared, struct wlb_error *error)
{
	const struct work *work = context;
	struct result *result = shared;
	struct addrinfo *list;
	(void)index;
	int rc = look_up(work->address, &list, error);
	if (rc != 0)
		return rc;
	result->is_found = true;
	int fd = connect_any(list, error);
	freeaddrinfo(list);
	if (fd < 0)
		return -1;
	rc = measure_connection(fd, work->token, result, error);
	close(fd);
	return rc;
}

static void judge(const struct result *result, const char *check, double least_gbit_per_s,
                  struct wlb_check_report *report)
{
	double to = 8e-9 * result->to_bytes_per_s, from = 8e-9 * result->from_bytes_per_s;
	int slow = fmin(to, from) < least_gbit_per_s;
	struct wlb_finding *finding = wlb_report_add(report, check, slow ? WLB_CHECK_FAILED : WLB_CHECK_OK,
	                                             "%.3g Gbit/s to it, %.3g Gbit/s from it, round trip %.3g us", to,
	                                             from, 1e6 * result->round_trip_s);
	if (least_gbit_per_s > 0.0)
		wlb_finding_limit(finding, "%g Gbit/s", least_gbit_per_s);
}

/* Adds what is said of a link that was not measured. Returns -1 with the reason where that is no fault of it. */
static int add_unmeasured(const struct wlb_children *children, const char *check, struct wlb_check_report *report,
                          struct wlb_error *error)
{
	const struct result *result = wlb_child_result(children, 0);
	enum wlb_child_end end = children->list[0].end;
	bool is_searched = end == WLB_CHILD_LATE && !result->is_found;
	char text[WLB_FINDING_BYTES];
	wlb_child_describe(children, 0, text, sizeof(text));
	if (end != WLB_CHILD_IN_USE && !is_searched) {
		wlb_report_add(report, check, WLB_CHECK_FAILED, "%s", text);
		return 0;
	}
	wlb_fail(error, "%s: %s%.300s", check, is_searched ? "the look-up of its name: " : "", text);
	wlb_report_add(report, check, WLB_CHECK_NOT_CHECKED, "%s", error->message + strlen(check) + strlen(": "));
	return -1;
}

static int check_link(const struct wlb_check_options *options, const char *peer, const char *token,
                      struct wlb_check_report *report, struct wlb_error *error)
{
	struct address address;
	struct wlb_children children = {0};
	char check[80];
	if (split(peer, &address, error) < 0)
		return -1;
	const struct work work = {&address, token};
	int rc = wlb_children_run(&children, 1, sizeof(struct result), measure_peer, &work,
	                          REFUSED_S + CONNECT_S + ALL_S, error);
	snprintf(check, sizeof(check), "link %.70s", peer);
	if (rc == 0 && children.list[0].end == WLB_CHILD_DONE)
		judge(wlb_child_result(&children, 0), check, options->link_gbit_per_s, report);
	else if (rc == 0)
		rc = add_unmeasured(&children, check, report, error);
	wlb_children_free(&children);
	return rc;
}

int wlb_links_ready(const struct wlb_check_options *options, struct wlb_error *error)
{
	struct address address;
	if (wlb_link_token(error) == NULL)
		return -1;
	for (int i = 0; i < options->peers.count; i++)
		if (split(options->peers.texts[i], &address, error) < 0)
			return -1;
	return 0;
}

/* Measures all peers: one that could not be checked must not hide the broken link to another. */
int wlb_check_links(const struct wlb_check_options *options, struct wlb_check_report *report, struct wlb_error *error)
{
	const char *token = wlb_link_token(error);
	struct wlb_error why;
	int rc = token != NULL ? 0 : -1;
	for (int i = 0; i < options->peers.count && token != NULL; i++)
		if (check_link(options, options->peers.texts[i], token, report, &why) < 0 && rc == 0)
			rc = wlb_fail(error, "%s", why.message);
	return rc;
}
