#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <munge.h>

#include "common/clock.h"
#include "common/digest.h"
#include "coordinator/client/client.h"
#include "coordinator/client/resolve.h"
#include "munged.h"
#include "server.h"

/* One server, one connection, and how the server answers. */
struct fixture {
	struct server *server;
	struct wlb_connection *connection;
	struct wlb_reply reply;
	struct wlb_error error;
	char credentials[2][1024];
	int requests;
	const char *text; /* what answer_text and answer_proved_by send */
	const char *path;
	char *proof; /* what answer_proved_by proves it with */
};

static void begin(struct fixture *f, answer_function *answer)
{
	*f = (struct fixture){.path = "/v1/x?y=1"};
	f->server = server_start(answer, f);
	struct wlb_client_config config = server_config(f->server);
	f->connection = wlb_connection_new(&config);
}

static void end(struct fixture *f)
{
	free(f->reply.body);
	wlb_connection_free(f->connection);
	server_stop(f->server);
}

static int call(struct fixture *f, const char *body, int timeout_ms)
{
	free(f->reply.body);
	return wlb_connection_request(f->connection, "POST", f->path, body, timeout_ms, &f->reply, &f->error);
}

static bool echo(void *context, int fd, const struct request *request)
{
	struct fixture *f = context;
	snprintf(f->credentials[f->requests % 2], sizeof(f->credentials[0]), "%s", request->credential);
	f->requests++;
	return server_reply(fd, request, 201, request->body);
}

static bool answer_text(void *context, int fd, const struct request *request)
{
	struct fixture *f = context;
	(void)request;
	server_write(fd, f->text);
	return false;
}

static bool say_nothing(void *context, int fd, const struct request *request)
{
	(void)context;
	(void)fd;
	(void)request;
	return true;
}

/* The first connection ends after one reply, as an idle one that the server has closed. */
static bool reply_and_close(void *context, int fd, const struct request *request)
{
	echo(context, fd, request);
	return request->connection > 1;
}

static void assert_proves(const char *credential, const char *digest)
{
	munge_ctx_t context = munge_ctx_create();
	void *payload;
	int length;
	uid_t uid;
	gid_t gid;
	munge_ctx_set(context, MUNGE_OPT_SOCKET, munged_socket());
	assert_int_equal(munge_decode(credential, context, &payload, &length, &uid, &gid), EMUNGE_SUCCESS);
	munge_ctx_destroy(context);
	assert_int_equal(length, WLB_DIGEST_SIZE - 1);
	assert_memory_equal(payload, digest, (size_t)length);
	assert_int_equal(uid, getuid());
	free(payload);
}

static void a_reply_comes_and_the_connection_stays(void **state)
{
	struct fixture f;
	char digest[WLB_DIGEST_SIZE];
	(void)state;
	begin(&f, echo);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(call(&f, "{\"a\":1}", 5000), 0);
		assert_int_equal(f.reply.status, 201);
		assert_string_equal(f.reply.body, "{\"a\":1}");
		assert_int_equal(f.reply.length, 7);
	}
	assert_int_equal(call(&f, NULL, 5000), 0);
	assert_string_equal(f.reply.body, "");
	assert_int_equal(server_connections(f.server), 1);
	wlb_digest_request("POST", "/v1/x?y=1", "{\"a\":1}", 7, digest);
	assert_proves(f.credentials[0], digest);
	assert_string_not_equal(f.credentials[0], f.credentials[1]);
	end(&f);
}

static void a_large_body_goes_both_ways(void **state)
{
	struct fixture f;
	enum { BYTES = 900000 };
	char *body = malloc(BYTES + 1);
	(void)state;
	memset(body, 'x', BYTES);
	body[BYTES] = '\0';
	begin(&f, echo);
	assert_int_equal(call(&f, body, 10000), 0);
	assert_int_equal(f.reply.length, BYTES);
	assert_string_equal(f.reply.body, body);
	end(&f);
	free(body);
}

static void a_closed_connection_is_opened_again(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, reply_and_close);
	assert_int_equal(call(&f, "1", 5000), 0);
	assert_int_equal(call(&f, "2", 5000), 0);
	assert_string_equal(f.reply.body, "2");
	assert_int_equal(server_connections(f.server), 2);
	end(&f);
}

static void the_deadline_holds(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, say_nothing);
	int64_t before_ms = wlb_clock_ms();
	assert_int_equal(call(&f, "1", 200), -1);
	int64_t took_ms = wlb_clock_ms() - before_ms;
	assert_true(took_ms >= 190 && took_ms < 1000);
	assert_non_null(strstr(f.error.message, "200 ms"));
	end(&f);
}

/* Whether another byte of a reply that has begun is always there, and how many were taken. */
static _Thread_local bool is_endless, has_begun;
static int taken;

enum { TAKEN_MAX = 2000, BYTE_US = 1000 };

ssize_t __real_recv(int fd, void *data, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags)
{
	ssize_t n = __real_recv(fd, data, size, flags);
	has_begun = has_begun || n > 0;
	if (!is_endless || !has_begun || n >= 0)
		return n;
	assert_true(++taken < TAKEN_MAX);
	usleep(BYTE_US);
	*(char *)data = 'x';
	return 1;
}

static bool begin_reply(void *context, int fd, const struct request *request)
{
	(void)context;
	(void)request;
	server_write(fd, "HTTP/1.0 200 OK\r\n\r\n");
	return true;
}

static void the_deadline_holds_for_a_reply_without_end(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, begin_reply);
	has_begun = false;
	is_endless = true;
	int rc = call(&f, "1", 100);
	is_endless = false;
	assert_int_equal(rc, -1);
	assert_non_null(strstr(f.error.message, "no answer within 100 ms"));
	end(&f);
}

static void a_readable_fd_ends_the_call(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, say_nothing);
	int fd = eventfd(1, EFD_CLOEXEC);
	wlb_connection_cancel_on(f.connection, fd);
	int64_t before_ms = wlb_clock_ms();
	assert_int_equal(call(&f, "1", 20000), -1);
	assert_true(wlb_clock_ms() - before_ms < 5000);
	assert_non_null(strstr(f.error.message, "the request was cancelled, because the program is exiting"));
	close(fd);
	end(&f);
}

static void broken_replies_are_errors(void **state)
{
	static const struct {
		const char *text, *found;
	} bad[] = {
		{"", "before the reply was whole"},
		{"HTTP/1.1 200 OK\r\nContent-Le", "before the reply was whole"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "before the reply was whole"},
		{"SSH-2.0-OpenSSH\r\n\r\n", "SSH-2.0"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nlonger", "more bytes"},
	};
	struct fixture f;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin(&f, answer_text);
		f.text = bad[i].text;
		assert_int_equal(call(&f, "1", 5000), -1);
		assert_non_null(strstr(f.error.message, bad[i].found));
		end(&f);
	}
}

static void a_body_may_end_with_the_connection(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, answer_text);
	f.text = "HTTP/1.0 200 OK\r\n\r\nall of it";
	f.path = "/healthz";
	assert_int_equal(call(&f, "1", 5000), 0);
	assert_string_equal(f.reply.body, "all of it");
	end(&f);
}

static void nobody_listens(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, echo);
	struct wlb_client_config config = server_config(f.server);
	server_stop(f.server);
	assert_int_equal(call(&f, "1", 5000), -1);
	assert_non_null(strstr(f.error.message, config.coordinators[0].port));
	f.server = server_restart(atoi(config.coordinators[0].port), echo, &f);
	assert_int_equal(call(&f, "1", 5000), 0);
	end(&f);
}

static void without_munged_nothing_is_sent(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, echo);
	struct wlb_client_config config = server_config(f.server);
	strcpy(config.munge_socket, "/nowhere/munge.sock");
	wlb_connection_free(f.connection);
	f.connection = wlb_connection_new(&config);
	assert_int_equal(call(&f, "1", 5000), -1);
	assert_non_null(strstr(f.error.message, "munge"));
	assert_int_equal(f.requests, 0);
	end(&f);
}

static void a_name_that_is_none(void **state)
{
	struct wlb_client_config config;
	struct wlb_reply reply;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_client_config_addresses(&config, "no-such-host.invalid:80", &error), 0);
	struct wlb_connection *connection = wlb_connection_new(&config);
	int64_t before_ms = wlb_clock_ms();
	assert_int_equal(wlb_connection_request(connection, "GET", "/", NULL, 300, &reply, &error), -1);
	assert_true(wlb_clock_ms() - before_ms < 1500);
	assert_non_null(strstr(error.message, "no-such-host.invalid"));
	wlb_connection_free(connection);
}

/* ---- two coordinators ---------------------------------------------------------------------------------------------
 */

static bool stand_by(void *context, int fd, const struct request *request)
{
	struct fixture *f = context;
	f->requests++;
	return server_reply(fd, request, 503, "{\"standby\":true,\"error\":\"x\"}");
}

static bool stand_by_unproved(void *context, int fd, const struct request *request)
{
	(void)context;
	(void)request;
	return server_reply_with(fd, NULL, 503, "{\"standby\":true,\"error\":\"x\"}");
}

static bool be_unavailable(void *context, int fd, const struct request *request)
{
	(void)context;
	return server_reply(fd, request, 503, "{\"error\":\"the database is unavailable; try again\"}");
}

/* f->connection goes to f->server first, then to the other. */
static struct server *begin_two(struct fixture *f, answer_function *first, answer_function *second)
{
	begin(f, first);
	struct server *other = server_start(second, f);
	struct wlb_client_config config = server_config(f->server);
	config.coordinators[1] = server_config(other).coordinators[0];
	config.coordinator_count = 2;
	wlb_connection_free(f->connection);
	f->connection = wlb_connection_new(&config);
	return other;
}

static void end_two(struct fixture *f, struct server *other)
{
	end(f);
	server_stop(other);
}

static void the_one_that_acts_is_asked(void **state)
{
	static answer_function *const first[] = {stand_by, stand_by_unproved, say_nothing};
	struct fixture f;
	(void)state;
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		struct server *other = begin_two(&f, first[i], echo);
		int64_t before_ms = wlb_clock_ms();
		assert_int_equal(call(&f, "1", 600), 0);
		assert_true(wlb_clock_ms() - before_ms < 600);
		assert_int_equal(f.reply.status, 201);
		int connections = server_connections(f.server);
		assert_int_equal(call(&f, "2", 600), 0);
		assert_string_equal(f.reply.body, "2");
		assert_int_equal(server_connections(f.server), connections);
		assert_int_equal(server_connections(other), 1);
		end_two(&f, other);
	}
}

/* Connections to it are not accepted, as of a host that is dead: the kernel drops what asks for one. */
static int listen_without_answer(int clients[3])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	for (int i = 0; i < 3; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		connect(clients[i], (struct sockaddr *)&address, size);
	}
	return listener;
}

static void a_dead_host_takes_little_time(void **state)
{
	struct fixture f;
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	int clients[3], dead = listen_without_answer(clients);
	(void)state;
	begin(&f, echo);
	struct wlb_client_config config = server_config(f.server);
	config.coordinators[1] = config.coordinators[0];
	config.coordinator_count = 2;
	assert_int_equal(getsockname(dead, (struct sockaddr *)&address, &size), 0);
	snprintf(config.coordinators[0].port, sizeof(config.coordinators[0].port), "%d", ntohs(address.sin_port));
	wlb_connection_free(f.connection);
	f.connection = wlb_connection_new(&config);
	int64_t before_ms = wlb_clock_ms();
	assert_int_equal(call(&f, "1", 30000), 0);
	int64_t took_ms = wlb_clock_ms() - before_ms;
	assert_true(took_ms >= 1900 && took_ms < 10000);
	end(&f);
	for (int i = 0; i < 3; i++)
		close(clients[i]);
	close(dead);
}

/* What the one that acts says counts, also where it cannot serve. */
static void a_busy_coordinator_is_not_left(void **state)
{
	struct fixture f;
	(void)state;
	struct server *other = begin_two(&f, be_unavailable, echo);
	assert_int_equal(call(&f, "1", 5000), 0);
	assert_int_equal(f.reply.status, 503);
	assert_int_equal(server_connections(other), 0);
	end_two(&f, other);
}

static void where_none_acts_there_is_no_reply(void **state)
{
	struct fixture f;
	(void)state;
	struct server *other = begin_two(&f, stand_by, stand_by);
	assert_int_equal(call(&f, "1", 5000), -1);
	assert_null(f.reply.body);
	assert_int_equal(f.requests, 2);
	for (int i = 0; i < 2; i++) {
		char at[64];
		snprintf(at, sizeof(at), "127.0.0.1:%d: stands by", server_port(i == 0 ? f.server : other));
		assert_non_null(strstr(f.error.message, at));
	}
	end_two(&f, other);
}

/* It has all of the time of a request, after which the other is asked. */
static void one_that_acted_and_says_nothing_is_left(void **state)
{
	struct fixture f;
	(void)state;
	struct server *other = begin_two(&f, echo, echo);
	assert_int_equal(call(&f, "1", 5000), 0);
	int port = server_port(f.server);
	server_stop(f.server);
	f.server = server_restart(port, say_nothing, &f);
	assert_int_equal(call(&f, "2", 400), -1);
	assert_non_null(strstr(f.error.message, "no answer within 400 ms"));
	assert_int_equal(server_connections(other), 0);
	assert_int_equal(call(&f, "3", 5000), 0);
	assert_string_equal(f.reply.body, "3");
	assert_int_equal(server_connections(other), 1);
	server_stop(other);
	other = server_restart(0, echo, &f);
	server_stop(f.server);
	f.server = server_restart(port, echo, &f);
	assert_int_equal(call(&f, "4", 5000), 0); /* the one that acted is gone: the same request goes back */
	assert_string_equal(f.reply.body, "4");
	end_two(&f, other);
}

/* ---- who answers --------------------------------------------------------------------------------------------------
 */

static bool answer_proved_by(void *context, int fd, const struct request *request)
{
	struct fixture *f = context;
	(void)request;
	return server_reply_with(fd, f->proof, 200, f->text);
}

static void a_reply_without_a_proof_is_none(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, answer_proved_by);
	f.text = "{\"order\":\"end\",\"reason\":\"x\"}";
	f.path = "/v1/runs/12/report";
	assert_int_equal(call(&f, "1", 5000), -1);
	assert_non_null(strstr(f.error.message, "did not prove that it is wlbd"));
	assert_null(f.reply.body);
	f.path = "/v1/runs/12/records";
	f.text = "{\"order\":\"continue\"}";
	assert_int_equal(call(&f, "1", 5000), -1);
	f.text = "{\"acked_seq\":44}";
	assert_int_equal(call(&f, "1", 5000), -1);
	f.proof = "MUNGE:garbage:";
	assert_int_equal(call(&f, "1", 5000), -1);
	assert_non_null(strstr(f.error.message, "munge"));
	end(&f);
}

static void to_go_on_needs_no_proof_and_acknowledges_nothing(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, answer_proved_by);
	f.text = "{\"order\":\"continue\"}\n";
	f.path = "/v1/runs/12/report";
	assert_int_equal(call(&f, "1", 5000), 0);
	assert_false(f.reply.proved);
	f.text = "{\"order\":\"continue\"} {\"order\":\"end\"}";
	assert_int_equal(call(&f, "1", 5000), -1);
	f.path = "/healthz";
	assert_int_equal(call(&f, NULL, 5000), 0);
	assert_false(f.reply.proved);
	end(&f);
}

static bool keep_and_answer(void *context, int fd, const struct request *request)
{
	struct fixture *f = context;
	f->requests++;
	free(f->proof);
	f->proof = server_proof(request, 200, f->text);
	return server_reply_with(fd, f->proof, 200, f->text);
}

static void a_proof_is_of_one_reply_to_one_request(void **state)
{
	struct fixture f;
	struct request asked = {.method = "POST", .path = "/v1/x?y=1", .credential = "of another request"};
	(void)state;
	begin(&f, keep_and_answer);
	int port = server_port(f.server);
	f.text = "{\"acked_seq\":44}";
	assert_int_equal(call(&f, "1", 5000), 0);
	assert_true(f.reply.proved);
	server_stop(f.server);
	f.server = server_restart(port, answer_proved_by, &f);
	assert_int_equal(call(&f, "1", 5000), -1); /* the same reply with the same proof again */
	assert_non_null(strstr(f.error.message, "did not prove"));
	free(f.proof);
	f.proof = server_proof(&asked, 200, f.text);
	assert_int_equal(call(&f, "1", 5000), -1);
	assert_non_null(strstr(f.error.message, "made for another message"));
	free(f.proof);
	end(&f);
}

static bool prove_otherwise(void *context, int fd, const struct request *request)
{
	struct fixture *f = context;
	struct request asked = *request;
	int status = 200;
	const char *said = f->text;
	switch (f->requests++) {
	case 0:
		status = 201;
		break;
	case 1:
		strcpy(asked.method, "PUT");
		break;
	case 2:
		strcpy(asked.path, "/v1/x?y=2");
		break;
	case 3:
		said = "{}";
		break;
	}
	char *proof = server_proof(&asked, status, said);
	server_reply_with(fd, proof, 200, f->text);
	free(proof);
	return true;
}

static void a_proof_covers_status_request_and_body(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, prove_otherwise);
	f.text = "{\"acked_seq\":44}";
	for (int i = 0; i < 4; i++) {
		assert_int_equal(call(&f, "1", 5000), -1);
		assert_non_null(strstr(f.error.message, "made for another message"));
	}
	assert_int_equal(call(&f, "1", 5000), 0);
	assert_true(f.reply.proved);
	end(&f);
}

/* Makes two addresses of the coordinator where a test sets the port of the first. */
static int first_port;

int __real_wlb_resolve(const char *host, const char *port, int64_t deadline_ms, struct addrinfo **addresses,
                       struct wlb_error *error);

int __wrap_wlb_resolve(const char *host, const char *port, int64_t deadline_ms, struct addrinfo **addresses,
                       struct wlb_error *error)
{
	char first[16];
	snprintf(first, sizeof(first), "%d", first_port);
	if (first_port == 0)
		return __real_wlb_resolve(host, port, deadline_ms, addresses, error);
	assert_int_equal(__real_wlb_resolve("127.0.0.1", first, deadline_ms, addresses, error), 0);
	return __real_wlb_resolve(host, port, deadline_ms, &(*addresses)->ai_next, error);
}

/* A listener whose queue is full: the kernel drops what else is sent to it, as a network may. */
static int full_listener(int fillers[4])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	for (int i = 0; i < 4; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(fillers[i], (struct sockaddr *)&at, size);
	}
	first_port = ntohs(at.sin_port);
	return fd;
}

static void an_address_that_does_not_answer_leaves_time_for_the_next(void **state)
{
	struct fixture f;
	int fillers[4], listener = full_listener(fillers);
	(void)state;
	begin(&f, echo);
	int64_t began_ms = wlb_clock_ms();
	assert_int_equal(call(&f, "1", 4000), 0);
	assert_int_equal(f.reply.status, 201);
	assert_in_range(wlb_clock_ms() - began_ms, 1900, 3900);
	first_port = 0;
	for (int i = 0; i < 4; i++)
		close(fillers[i]);
	close(listener);
	end(&f);
}

static void another_account_is_not_believed(void **state)
{
	struct fixture f;
	struct wlb_error error;
	char uid[32];
	(void)state;
	begin(&f, echo);
	struct wlb_client_config config = server_config(f.server);
	assert_int_equal(wlb_client_config_user(&config, "4242", &error), 0);
	wlb_connection_free(f.connection);
	f.connection = wlb_connection_new(&config);
	assert_int_equal(call(&f, "1", 5000), -1);
	snprintf(uid, sizeof(uid), "as uid %u,", getuid());
	assert_non_null(strstr(f.error.message, uid));
	assert_non_null(strstr(f.error.message, "trusted is 4242"));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_comes_and_the_connection_stays),
		cmocka_unit_test(a_large_body_goes_both_ways),
		cmocka_unit_test(a_closed_connection_is_opened_again),
		cmocka_unit_test(the_deadline_holds),
		cmocka_unit_test(the_deadline_holds_for_a_reply_without_end),
		cmocka_unit_test(a_readable_fd_ends_the_call),
		cmocka_unit_test(broken_replies_are_errors),
		cmocka_unit_test(a_body_may_end_with_the_connection),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(without_munged_nothing_is_sent),
		cmocka_unit_test(a_name_that_is_none),
		cmocka_unit_test(the_one_that_acts_is_asked),
		cmocka_unit_test(a_dead_host_takes_little_time),
		cmocka_unit_test(a_busy_coordinator_is_not_left),
		cmocka_unit_test(where_none_acts_there_is_no_reply),
		cmocka_unit_test(one_that_acted_and_says_nothing_is_left),
		cmocka_unit_test(a_reply_without_a_proof_is_none),
		cmocka_unit_test(to_go_on_needs_no_proof_and_acknowledges_nothing),
		cmocka_unit_test(a_proof_is_of_one_reply_to_one_request),
		cmocka_unit_test(a_proof_covers_status_request_and_body),
		cmocka_unit_test(an_address_that_does_not_answer_leaves_time_for_the_next),
		cmocka_unit_test(another_account_is_not_believed),
	};
	return cmocka_run_group_tests(tests, munged_start, munged_stop);
}
