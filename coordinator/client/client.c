#include "coordinator/client/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/digest.h"
#include "coordinator/client/credential.h"
#include "coordinator/client/http.h"
#include "coordinator/client/resolve.h"

enum {
	CONNECT_MS = 2000, /* to one of two coordinators */
	HEAD_LIMIT_BYTES = 16 * 1024,
	BODY_LIMIT_BYTES = 512 * 1024 * 1024, /* all steps of a long run are tens of MiB */
};

struct wlb_connection {
	struct wlb_client_config config;
	int current;    /* the coordinator that is asked first */
	bool is_acting; /* it was, when it last answered */
	int fd;         /* -1: not connected */
	int cancel_fd;  /* -1: none */
};

/* One request in progress; `answered` says whether it may be sent again on a new connection. */
struct request {
	struct wlb_connection *connection;
	const char *method;
	const char *path;
	const char *body;
	char *credential;          /* of the newest try */
	struct wlb_http_head head; /* of its reply */
	int64_t deadline_ms;       /* of the newest try, and how long that may take */
	int timeout_ms;
	bool answered; /* the first byte of the reply came */
	struct wlb_error *error;
};

struct wlb_connection *wlb_connection_new(const struct wlb_client_config *config)
{
	struct wlb_connection *connection = calloc(1, sizeof(*connection));
	if (connection == NULL)
		return NULL;
	connection->config = *config;
	connection->fd = -1;
	connection->cancel_fd = -1;
	return connection;
}

static void disconnect(struct wlb_connection *connection)
{
	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
}

void wlb_connection_free(struct wlb_connection *connection)
{
	if (connection == NULL)
		return;
	disconnect(connection);
	free(connection);
}

void wlb_connection_cancel_on(struct wlb_connection *connection, int fd)
{
	connection->cancel_fd = fd;
}

static const struct wlb_client_address *address_of(const struct request *request)
{
	return &request->connection->config.coordinators[request->connection->current];
}

static int fail_at(const struct request *request, const char *what, const char *why)
{
	const struct wlb_client_address *at = address_of(request);
	return wlb_fail(request->error, "coordinator %s:%s: %s: %s", at->host, at->port, what, why);
}

static int fail_late(const struct request *request, const char *what)
{
	char why[64];
	snprintf(why, sizeof(why), "no answer within %d ms", request->timeout_ms);
	return fail_at(request, what, why);
}

/* Waits until the socket is ready for `events`, until `until_ms` at most. */
static int wait_until(const struct request *request, int fd, short events, const char *what, int64_t until_ms)
{
	struct pollfd ready[2] = {{.fd = fd, .events = events},
	                          {.fd = request->connection->cancel_fd, .events = POLLIN}};
	for (;;) {
		int n = poll(ready, 2, wlb_clock_left_ms(until_ms));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_at(request, what, strerror(errno));
		if (ready[1].revents != 0)
			return fail_at(request, what, "the request was cancelled, because the program is exiting");
		return n > 0 ? 0 : fail_late(request, what);
	}
}

static int wait_for(const struct request *request, int fd, short events, const char *what)
{
	return wait_until(request, fd, events, what, request->deadline_ms);
}

static int connect_address(const struct request *request, const struct addrinfo *address, int64_t until_ms)
{
	int fd = socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address->ai_protocol);
	if (fd < 0)
		return fail_at(request, "connect", strerror(errno));
	int why = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
	if (why == EINPROGRESS) {
		socklen_t size = sizeof(why);
		if (wait_until(request, fd, POLLOUT, "connect", until_ms) != 0) {
			close(fd);
			return -1;
		}
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) != 0)
			why = errno;
	}
	if (why != 0) {
		close(fd);
		return fail_at(request, "connect", strerror(why));
	}
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* A network that drops what is sent to one address must not take the time of the others. */
static int64_t until_of(const struct request *request, const struct addrinfo *address)
{
	int addresses = 0;
	for (const struct addrinfo *candidate = address; candidate != NULL; candidate = candidate->ai_next)
		addresses++;
	return wlb_clock_ms() + wlb_clock_left_ms(request->deadline_ms) / addresses;
}

/* The request, whose time ends earlier: the host of one coordinator may be dead, and the other answers. */
static struct request within_connect_time(const struct request *request)
{
	struct request earlier = *request;
	int64_t end_ms = wlb_clock_ms() + CONNECT_MS;
	if (request->connection->config.coordinator_count > 1 && end_ms < request->deadline_ms) {
		earlier.deadline_ms = end_ms;
		earlier.timeout_ms = CONNECT_MS;
	}
	return earlier;
}

static int connect_any(const struct request *request)
{
	struct wlb_connection *connection = request->connection;
	const struct wlb_client_address *at = address_of(request);
	const struct request within = within_connect_time(request);
	struct addrinfo *addresses;
	if (wlb_resolve(at->host, at->port, within.deadline_ms, &addresses, request->error) != 0)
		return wlb_fail_in(request->error, "coordinator");
	for (const struct addrinfo *candidate = addresses; candidate != NULL && connection->fd < 0;
	     candidate = candidate->ai_next)
		connection->fd = connect_address(&within, candidate, until_of(&within, candidate));
	freeaddrinfo(addresses);
	return connection->fd >= 0 ? 0 : -1;
}

static int send_all(const struct request *request, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t n = send(request->connection->fd, data, length, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			if (wait_for(request, request->connection->fd, POLLOUT, "send") != 0)
				return -1;
			continue;
		}
		if (n < 0)
			return fail_at(request, "send", strerror(errno));
		data += n;
		length -= (size_t)n;
	}
	return 0;
}

/* At least one byte, or 0 at the end of the stream, or -1. */
static ssize_t receive_some(struct request *request, char *data, size_t size)
{
	/* One that sends without end has no more time than any other. */
	if (request->answered && wlb_clock_left_ms(request->deadline_ms) == 0)
		return fail_late(request, "receive");
	for (;;) {
		ssize_t n = recv(request->connection->fd, data, size, 0);
		if (n >= 0) {
			request->answered = request->answered || n > 0;
			return n;
		}
		if (errno != EAGAIN && errno != EINTR)
			return fail_at(request, "receive", strerror(errno));
		if (errno == EAGAIN && wait_for(request, request->connection->fd, POLLIN, "receive") != 0)
			return -1;
	}
}

static char *request_head(struct request *request, size_t length)
{
	const struct wlb_client_address *at = address_of(request);
	char digest[WLB_DIGEST_SIZE];
	char *head = NULL;

	wlb_digest_request(request->method, request->path, request->body, length, digest);
	free(request->credential);
	request->credential = wlb_credential_make(request->connection->config.munge_socket, digest, WLB_DIGEST_SIZE - 1,
	                                          request->error);
	if (request->credential == NULL)
		return NULL;
	bool v6 = strchr(at->host, ':') != NULL;
	int n = asprintf(&head,
	                 "%s %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: wlb/" WLB_VERSION "\r\n"
	                 "Authorization: MUNGE %s\r\nContent-Type: application/json\r\n"
	                 "Content-Length: %zu\r\n\r\n",
	                 request->method, request->path, v6 ? "[" : "", at->host, v6 ? "]" : "", at->port,
	                 request->credential, length);
	if (n < 0) {
		wlb_fail(request->error, "out of memory for a request");
		return NULL;
	}
	return head;
}

/* Reads up to the blank line. `head` also holds the part of the body that came with it: *have bytes in all, the body
 * beginning at the returned offset, 0 on error. */
static size_t receive_head(struct request *request, char *head, size_t size, size_t *have)
{
	*have = 0;
	for (;;) {
		if (*have == size - 1) {
			fail_at(request, "receive", "the reply's header has no end");
			return 0;
		}
		ssize_t n = receive_some(request, head + *have, size - 1 - *have);
		if (n == 0)
			fail_at(request, "receive", "the connection was closed before the reply was whole");
		if (n <= 0)
			return 0;
		*have += (size_t)n;
		head[*have] = '\0';
		char *end = memmem(head, *have, "\r\n\r\n", 4);
		if (end != NULL) {
			*end = '\0';
			return (size_t)(end - head) + 4;
		}
	}
}

/* Body of known length: `have` bytes of it are in `body` already. */
static int receive_body(struct request *request, char *body, size_t have, size_t length)
{
	while (have < length) {
		ssize_t n = receive_some(request, body + have, length - have);
		if (n == 0)
			return fail_at(request, "receive", "the connection was closed before the reply was whole");
		if (n < 0)
			return -1;
		have += (size_t)n;
	}
	return 0;
}

static int receive_until_close(struct request *request, char **body, size_t have, size_t *length)
{
	size_t size = have + 1;
	for (;;) {
		if (have + 1 >= size) {
			size = size * 2 + 4096;
			char *larger = size > BODY_LIMIT_BYTES ? NULL : realloc(*body, size);
			if (larger == NULL)
				return fail_at(request, "receive", "the reply is too long");
			*body = larger;
		}
		ssize_t n = receive_some(request, *body + have, size - 1 - have);
		if (n < 0)
			return -1;
		have += (size_t)n;
		if (n == 0) {
			*length = have;
			return 0;
		}
	}
}

static int receive_reply(struct request *request, struct wlb_reply *reply)
{
	char text[HEAD_LIMIT_BYTES];
	size_t have;
	struct wlb_http_head *head = &request->head;
	size_t begin = receive_head(request, text, sizeof(text), &have);
	if (begin == 0)
		return -1;
	if (wlb_http_head_parse(text, BODY_LIMIT_BYTES, head, request->error) != 0)
		return wlb_fail_in(request->error, "coordinator %s:%s", address_of(request)->host,
		                   address_of(request)->port);
	size_t early = have - begin;
	if (!head->until_close && early > head->body_bytes)
		return fail_at(request, "receive", "more bytes came than the reply announced");
	size_t length = head->until_close ? early : head->body_bytes;
	char *body = malloc(length + 1);
	if (body == NULL)
		return fail_at(request, "receive", "out of memory for the reply");
	memcpy(body, text + begin, early);
	int rc = head->until_close ? receive_until_close(request, &body, early, &length)
	                           : receive_body(request, body, early, length);
	if (rc != 0) {
		free(body);
		return -1;
	}
	body[length] = '\0';
	*reply = (struct wlb_reply){.status = head->status, .body = body, .length = length};
	if (!head->keep_alive || head->until_close)
		disconnect(request->connection);
	return 0;
}

static int exchange(struct request *request, struct wlb_reply *reply)
{
	size_t length = request->body != NULL ? strlen(request->body) : 0;
	if (request->connection->fd < 0 && connect_any(request) != 0)
		return -1;
	char *head = request_head(request, length);
	if (head == NULL)
		return -1;
	int rc = send_all(request, head, strlen(head));
	free(head);
	if (rc == 0)
		rc = send_all(request, request->body, length);
	if (rc == 0)
		rc = receive_reply(request, reply);
	if (rc != 0)
		disconnect(request->connection);
	return rc;
}

/*
 * The proof that a reply is the coordinator's. wlbd adds to its replies the header WLB-Proof: a MUNGE credential of
 * its own account over the request's credential, which is used once, and over the reply. A proof is therefore valid
 * for one reply to one request, and another program that listens on wlbd's port cannot make one.
 */

/* Other replies, such as that to /healthz, have no proof, and one that stands by gives them, too. */
static bool is_of_api(const struct request *request)
{
	return strncmp(request->path, "/v1/", 4) == 0;
}

/* Whether the reply orders nothing but to continue, and therefore needs no proof: each node receives one each second.
 */
static bool needs_no_proof(const struct request *request, const struct wlb_reply *reply)
{
	static const char plain[] = "{\"order\":\"continue\"}";
	size_t path = strlen(request->path), bytes = sizeof(plain) - 1;
	return path > 7 && strcmp(request->path + path - 7, "/report") == 0 && reply->status == 200 &&
	       reply->length >= bytes && memcmp(reply->body, plain, bytes) == 0 &&
	       strspn(reply->body + bytes, "\r\n") == reply->length - bytes;
}

static int refuse(const struct request *request)
{
	return wlb_fail_in(request->error, "the coordinator %s:%s did not prove that it is wlbd",
	                   address_of(request)->host, address_of(request)->port);
}

static int refuse_unproved(const struct request *request, const struct wlb_reply *reply)
{
	if (reply->status == 200)
		wlb_fail(request->error, "its reply has no proof; upgrade wlbd, or somebody else listens there");
	else
		wlb_fail(request->error, "it answers %d without a proof: %.300s", reply->status, reply->body);
	return refuse(request);
}

/* Sets reply->proved. Returns -1 if the reply decides something and is not proved; the message says why. */
static int check_proof(const struct request *request, struct wlb_reply *reply)
{
	const struct wlb_client_config *config = &request->connection->config;
	char digest[WLB_DIGEST_SIZE];
	uid_t uid;
	reply->proved = false;
	if (!is_of_api(request) || (request->head.proof[0] == '\0' && needs_no_proof(request, reply)))
		return 0;
	if (request->head.proof[0] == '\0')
		return refuse_unproved(request, reply);
	wlb_digest_reply(request->credential, reply->status, request->method, request->path, reply->body, reply->length,
	                 digest);
	if (wlb_credential_check(config->munge_socket, request->head.proof, digest, WLB_DIGEST_SIZE - 1, &uid,
	                         request->error) != 0)
		return refuse(request);
	if (uid != config->coordinator_uid) {
		wlb_fail(request->error,
		         "it runs as uid %u, trusted is %s; set coordinator_user in wlb.conf, or somebody else "
		         "listens there",
		         uid, config->coordinator_user[0] != '\0' ? config->coordinator_user : "root");
		return refuse(request);
	}
	reply->proved = true;
	return 0;
}

/* Whether the sender of a reply that is proved says that it stands by (docs/api.md). */
static bool is_from_standby(const struct wlb_reply *reply)
{
	static const char begin[] = "{\"standby\":true";
	return reply->status == 503 && strncmp(reply->body, begin, strlen(begin)) == 0;
}

/* A reply that is not proved to be wlbd's counts as none, and so does that of a wlbd that stands by. */
static int take_proved(struct request *request, struct wlb_reply *reply)
{
	int rc = check_proof(request, reply);
	if (rc == 0 && is_from_standby(reply))
		rc = fail_at(request, "stands by", "another wlbd acts, or none does at the moment");
	if (rc == 0)
		return 0;
	disconnect(request->connection);
	free(reply->body);
	*reply = (struct wlb_reply){0};
	return -1;
}

/* ---- one coordinator after the other --------------------------------------------------------------------- */

/* Asks the current one within request->timeout_ms. */
static int ask_current(struct request *request, struct wlb_reply *reply)
{
	bool reused = request->connection->fd >= 0;
	request->deadline_ms = wlb_clock_ms() + request->timeout_ms;
	request->answered = false;
	int rc = exchange(request, reply);
	/* A connection kept open may have been closed by the other end meanwhile: that is no failure. The
	 * credential is made anew, so a request that did arrive is not mistaken for a replay. */
	if (rc != 0 && reused && !request->answered && wlb_clock_left_ms(request->deadline_ms) > 0)
		rc = exchange(request, reply);
	if (rc == 0)
		rc = take_proved(request, reply);
	request->connection->is_acting = rc == 0 && is_of_api(request);
	return rc;
}

/* Whether another coordinator is to be asked, which becomes the current one. */
static bool turn_to_next(struct wlb_connection *connection, int asked, int64_t deadline_ms)
{
	struct pollfd cancelled = {.fd = connection->cancel_fd, .events = POLLIN};
	disconnect(connection);
	connection->current = (connection->current + 1) % connection->config.coordinator_count;
	return asked < connection->config.coordinator_count && wlb_clock_left_ms(deadline_ms) > 0 &&
	       poll(&cancelled, 1, 0) <= 0;
}

int wlb_connection_request(struct wlb_connection *connection, const char *method, const char *path, const char *body,
                           int timeout_ms, struct wlb_reply *reply, struct wlb_error *error)
{
	struct wlb_error why = {0}, before = {0};
	struct request request = {
		.connection = connection, .method = method, .path = path, .body = body, .error = &why};
	int64_t deadline_ms = wlb_clock_ms() + timeout_ms;
	int asked = 0, rc;
	*reply = (struct wlb_reply){0};
	do {
		/* One that is not known to act must not take the time of the other. */
		int parts = connection->is_acting ? 1 : connection->config.coordinator_count - asked;
		before = why;
		request.timeout_ms = asked == 0 && parts == 1 ? timeout_ms : wlb_clock_left_ms(deadline_ms) / parts;
		rc = ask_current(&request, reply);
	} while (rc != 0 && turn_to_next(connection, ++asked, deadline_ms));
	if (rc != 0)
		wlb_fail(error, before.message[0] != '\0' ? "%s; %s" : "%s%s", before.message, why.message);
	free(request.credential);
	return rc;
}
