#include "server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/digest.h"
#include "coordinator/client/credential.h"
#include "munged.h"

enum { CONNECTIONS = 16, REQUEST_BYTES = 1 << 20 };

struct server {
	answer_function *answer;
	void *context;
	int listener;
	int stop_fd;
	int port;
	atomic_int connections;
	pthread_t thread;
	struct pollfd polls[2 + CONNECTIONS]; /* stop, listener, connections; the thread's own */
	int numbers[2 + CONNECTIONS];
};

void server_write(int fd, const char *text)
{
	for (size_t left = strlen(text); left > 0;) {
		ssize_t n = send(fd, text, left, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		text += n;
		left -= (size_t)n;
	}
}

char *server_proof(const struct request *request, int status, const char *body)
{
	char digest[WLB_DIGEST_SIZE];
	wlb_digest_reply(request->credential, status, request->method, request->path, body, strlen(body), digest);
	return wlb_credential_make_for(munged_socket(), getuid(), digest, WLB_DIGEST_SIZE - 1, NULL);
}

bool server_reply_with(int fd, const char *proof, int status, const char *body)
{
	char head[2048], header[1536] = "";
	if (proof != NULL)
		snprintf(header, sizeof(header), "WLB-Proof: MUNGE %s\r\n", proof);
	snprintf(head, sizeof(head), "HTTP/1.1 %d Test\r\n%sContent-Length: %zu\r\n\r\n", status, header, strlen(body));
	server_write(fd, head);
	server_write(fd, body);
	return true;
}

bool server_reply(int fd, const struct request *request, int status, const char *body)
{
	char *proof = server_proof(request, status, body);
	server_reply_with(fd, proof, status, body);
	free(proof);
	return true;
}

/* Reads one whole request; false when the connection ended first. */
static bool read_request(int fd, struct request *request)
{
	char *text = calloc(1, REQUEST_BYTES);
	size_t have = 0, length = 0;
	char *blank = NULL;
	while (blank == NULL || have < (size_t)(blank + 4 - text) + length) {
		ssize_t n = recv(fd, text + have, REQUEST_BYTES - 1 - have, 0);
		if (n <= 0) {
			free(text);
			return false;
		}
		have += (size_t)n;
		blank = strstr(text, "\r\n\r\n");
		char *field = strstr(text, "Content-Length: ");
		length = field != NULL ? strtoul(field + 16, NULL, 10) : 0;
	}
	sscanf(text, "%15s %255s", request->method, request->path);
	char *field = strstr(text, "Authorization: MUNGE ");
	request->credential[0] = '\0';
	if (field != NULL)
		sscanf(field + 21, "%1023[^\r]", request->credential);
	request->body = strdup(blank + 4);
	free(text);
	return true;
}

static void accept_connection(struct server *s)
{
	int fd = accept(s->listener, NULL, NULL);
	int number = atomic_fetch_add(&s->connections, 1) + 1;
	for (int i = 2; i < 2 + CONNECTIONS; i++) {
		if (s->polls[i].fd >= 0)
			continue;
		s->polls[i].fd = fd;
		s->numbers[i] = number;
		return;
	}
	close(fd);
}

static void serve(struct server *s, int i)
{
	struct request request = {.connection = s->numbers[i]};
	bool keep = read_request(s->polls[i].fd, &request);
	if (keep)
		keep = s->answer(s->context, s->polls[i].fd, &request);
	free(request.body);
	if (!keep) {
		close(s->polls[i].fd);
		s->polls[i].fd = -1;
	}
}

static void *server_thread(void *argument)
{
	struct server *s = argument;
	while (poll(s->polls, 2 + CONNECTIONS, -1) > 0 && s->polls[0].revents == 0) {
		for (int i = 2; i < 2 + CONNECTIONS; i++)
			if (s->polls[i].fd >= 0 && s->polls[i].revents != 0)
				serve(s, i);
		if (s->polls[1].revents != 0)
			accept_connection(s);
	}
	for (int i = 1; i < 2 + CONNECTIONS; i++)
		if (s->polls[i].fd >= 0)
			close(s->polls[i].fd);
	return NULL;
}

struct server *server_restart(int port, answer_function *answer, void *context)
{
	struct server *s = calloc(1, sizeof(*s));
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_port = htons((uint16_t)port),
	                              .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	int on = 1;
	s->answer = answer;
	s->context = context;
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s->listener, (struct sockaddr *)&address, size) != 0 || listen(s->listener, CONNECTIONS) != 0) {
		perror("test server");
		abort();
	}
	getsockname(s->listener, (struct sockaddr *)&address, &size);
	s->port = ntohs(address.sin_port);
	for (int i = 0; i < 2 + CONNECTIONS; i++)
		s->polls[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	s->polls[0].fd = s->stop_fd;
	s->polls[1].fd = s->listener;
	pthread_create(&s->thread, NULL, server_thread, s);
	return s;
}

struct server *server_start(answer_function *answer, void *context)
{
	return server_restart(0, answer, context);
}

void server_stop(struct server *server)
{
	eventfd_write(server->stop_fd, 1);
	pthread_join(server->thread, NULL);
	close(server->stop_fd);
	free(server);
}

int server_port(const struct server *server)
{
	return server->port;
}

int server_connections(const struct server *server)
{
	return atomic_load(&server->connections);
}

struct wlb_client_config server_config(const struct server *server)
{
	struct wlb_client_config config = {
		.coordinators = {{.host = "127.0.0.1"}}, .coordinator_count = 1, .coordinator_uid = getuid()};
	snprintf(config.coordinators[0].port, sizeof(config.coordinators[0].port), "%d", server->port);
	snprintf(config.munge_socket, sizeof(config.munge_socket), "%s", munged_socket());
	return config;
}
