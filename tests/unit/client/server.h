/* A coordinator for tests: one thread, as many connections as come; the test says how each request is answered. */
#ifndef TESTS_UNIT_CLIENT_SERVER_H
#define TESTS_UNIT_CLIENT_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/client/config.h"

struct request {
	char method[16];
	char path[256];
	char credential[1024]; /* of "Authorization: MUNGE ..." */
	char *body;
	int connection; /* 1 for the first that came */
};

/* Answers on `fd`, in whatever broken way the test wants; false closes the connection. */
typedef bool answer_function(void *context, int fd, const struct request *request);

struct server;

struct server *server_start(answer_function *answer, void *context);
void server_stop(struct server *server);
/* Listens on the port of before, after a stop. */
struct server *server_restart(int port, answer_function *answer, void *context);
int server_port(const struct server *server);
int server_connections(const struct server *server);

/* A whole, correct reply with wlbd's proof; returns true. */
bool server_reply(int fd, const struct request *request, int status, const char *body);
/* The same with this proof, or with none. */
bool server_reply_with(int fd, const char *proof, int status, const char *body);
/* What wlbd proves such a reply with; the caller frees it. */
char *server_proof(const struct request *request, int status, const char *body);
void server_write(int fd, const char *text);

/* The configuration of a client of this server, with the tests' munged; it believes who runs the tests. */
struct wlb_client_config server_config(const struct server *server);

#endif
