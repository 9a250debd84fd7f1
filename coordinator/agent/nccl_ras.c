#include "coordinator/agent/nccl_ras.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/agent/listening_sockets.h"

enum {
	TRIES = 3,
	ANSWER_MS = 1000, /* to connect, and for each line before the report */
	LINE_BYTES = 256,
};

static const char default_address[] = "localhost:28028";

/* ---- the connection ---------------------------------------------------------------------------------------------- */

/* Returns 0 where nothing has happened by then. */
static int await(int fd, short events, int64_t until_ms)
{
	struct pollfd wait = {.fd = fd, .events = events};
	int left_ms, got;
	do {
		left_ms = wlb_clock_left_ms(until_ms);
		got = left_ms > 0 ? poll(&wait, 1, left_ms) : 0;
	} while (got < 0 && errno == EINTR);
	return got > 0;
}

/* Returns a socket that is connected, -1 where nobody of our user listens, or nobody answers by then. Who listens is
 * looked at again once it is connected: meanwhile ours may have ended, and another user's process have taken its port.
 */
static int connect_to(const struct addrinfo *to, int64_t until_ms)
{
	int failure = 0;
	socklen_t size = sizeof(failure);
	int fd = wlb_listening_user_is(to->ai_addr, geteuid())
	                 ? socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
	                 : -1;
	if (fd < 0)
		return -1;
	bool is_connected = connect(fd, to->ai_addr, to->ai_addrlen) == 0 ||
	                    (errno == EINPROGRESS && await(fd, POLLOUT, until_ms) &&
	                     getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0);
	if (is_connected && wlb_listening_user_is(to->ai_addr, geteuid()))
		return fd;
	close(fd);
	return -1;
}

/* Splits ADDRESS:PORT, where an address may be in brackets. Returns -1 where it is none. */
static int split(const char *address, char host[64], char port[8])
{
	const char *colon = strrchr(address, ':'), *end = colon;
	if (colon == NULL || strlen(colon + 1) >= 8)
		return -1;
	if (address[0] == '[' && end > address && end[-1] == ']') {
		address++;
		end--;
	}
	snprintf(port, 8, "%s", colon + 1);
	snprintf(host, 64, "%.*s", (int)(end - address), address);
	return end - address < 64 ? 0 : -1;
}

static int connect_host(const char *host, const char *port, int64_t until_ms)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *to;
	if (getaddrinfo(host, port, &hints, &to) != 0)
		return -1;
	int fd = connect_to(to, until_ms);
	freeaddrinfo(to);
	return fd;
}

static int connect_ras(const char *address, int64_t until_ms)
{
	char host[64], port[8];
	if (split(address, host, port) != 0)
		return -1;
	if (strcmp(host, "localhost") != 0)
		return connect_host(host, port, until_ms);
	int fd = connect_host("127.0.0.1", port, until_ms);
	return fd >= 0 ? fd : connect_host("::1", port, until_ms);
}

/* ---- the protocol ------------------------------------------------------------------------------------------------ */

static int send_line(int fd, const char *line, int64_t until_ms)
{
	size_t sent = 0, length = strlen(line);
	while (sent < length && await(fd, POLLOUT, until_ms)) {
		ssize_t n = send(fd, line + sent, length - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -1;
		sent += n > 0 ? (size_t)n : 0;
	}
	return sent == length ? 0 : -1;
}

/* Reads a line, without its end; what follows it stays in the socket. Returns -1 where none comes by then. */
static int read_line(int fd, char line[LINE_BYTES], int64_t until_ms)
{
	for (int length = 0; length < LINE_BYTES && await(fd, POLLIN, until_ms);) {
		ssize_t n = recv(fd, &line[length], 1, 0);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return -1;
		if (n == 1 && line[length] == '\n') {
			line[length] = '\0';
			return 0;
		}
		length += n == 1;
	}
	return -1;
}

/* Returns whether the answer to a line begins so. */
static int says(int fd, const char *line, const char *answer, int64_t until_ms)
{
	char got[LINE_BYTES];
	return send_line(fd, line, until_ms) == 0 && read_line(fd, got, until_ms) == 0 &&
	       strncasecmp(got, answer, strlen(answer)) == 0;
}

static size_t read_report(int fd, int64_t until_ms, char *text, size_t size)
{
	size_t length = 0;
	while (length < size && await(fd, POLLIN, until_ms)) {
		ssize_t n = recv(fd, text + length, size - length, 0);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			break;
		length += n > 0 ? (size_t)n : 0;
	}
	return length;
}

static int64_t soon_ms(int64_t until_ms)
{
	int64_t soon = wlb_clock_ms() + ANSWER_MS;
	return soon < until_ms ? soon : until_ms;
}

/* All processes of the job on this node share the port, and the kernel chooses one for each connection: one that is
 * stopped does not answer, and the next may. NCCL itself waits 2 s for other processes then. */
size_t wlb_nccl_ras_ask(const char *address, int64_t until_ms, char *text, size_t size)
{
	size_t length = 0;
	for (int i = 0; i < TRIES && length == 0; i++) {
		int fd = connect_ras(address != NULL ? address : default_address, soon_ms(until_ms));
		if (fd < 0)
			return 0;
		if (says(fd, "CLIENT PROTOCOL 2\n", "SERVER PROTOCOL ", soon_ms(until_ms)) &&
		    says(fd, "TIMEOUT 2\n", "OK", soon_ms(until_ms)) &&
		    send_line(fd, "VERBOSE STATUS\n", soon_ms(until_ms)) == 0)
			length = read_report(fd, until_ms, text, size);
		close(fd);
	}
	return length;
}

/* ---- its lines --------------------------------------------------------------------------------------------------- */

static size_t line_length(const char *text, size_t length)
{
	const char *newline = memchr(text, '\n', length);
	size_t max = newline != NULL ? (size_t)(newline - text) : length;
	return max < WLB_NCCL_RAS_LINE ? max : WLB_NCCL_RAS_LINE;
}

json_t *wlb_nccl_ras_lines(const char *text, size_t length, size_t max)
{
	json_t *lines = json_array();
	size_t bytes = 2;
	for (size_t offset = 0; offset < length && json_array_size(lines) < WLB_NCCL_RAS_LINES;) {
		char line[WLB_NCCL_RAS_LINE + 1];
		size_t count = line_length(text + offset, length - offset);
		for (size_t i = 0; i < count; i++) {
			char c = text[offset + i];
			line[i] = c == '\t' ? ' ' : c >= ' ' && c <= '~' ? c : '?';
			bytes += line[i] == '"' || line[i] == '\\' ? 2 : 1;
		}
		line[count] = '\0';
		bytes += 3;
		if (bytes > max)
			break;
		json_array_append_new(lines, json_string(line));
		offset += count;
		offset += offset < length && text[offset] == '\n';
	}
	return lines;
}
