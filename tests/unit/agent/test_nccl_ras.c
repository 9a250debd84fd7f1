/* What the agent asks NCCL's RAS service, of servers that speak its protocol and of others. The protocol is NCCL's
 * (src/ras/client.cc); no NCCL has answered here. */
#include "coordinator/agent/nccl_ras.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"

#define REPORT "NCCL version 2.27.3\n\nCommunicators... (1.00s)\n  0x7f 8 ranks\tINCOMPLETE\n"

enum { SIZE = 4096, LIMIT_MS = 1500, LONG_LIMIT_MS = 30000 };

enum kind { HEALTHY, OTHER_SERVER, SILENT_FIRST, SILENT, ENDLESS, SLOW, STOPS };

struct server {
	enum kind kind;
	int fd, port, served;
	atomic_int stops;
	char asked[256]; /* what a client has sent */
	pthread_t thread;
};

static void put(int fd, const char *text)
{
	ssize_t ignored = send(fd, text, strlen(text), MSG_NOSIGNAL);
	(void)ignored;
}

/* Returns 0 where the client has gone. */
static int take_line(struct server *s, int fd)
{
	size_t length = strlen(s->asked);
	while (length + 1 < sizeof(s->asked) && recv(fd, &s->asked[length], 1, 0) == 1)
		if (s->asked[length++] == '\n')
			return 1;
	return 0;
}

static void send_report(const struct server *s, int fd)
{
	if (s->kind == STOPS) {
		put(fd, "half of a rep");
		while (!atomic_load(&s->stops))
			wlb_clock_sleep_ms(5);
	}
	for (int i = 0; s->kind == SLOW && REPORT[i] != '\0'; i++) {
		put(fd, (char[]){REPORT[i], '\0'});
		wlb_clock_sleep_ms(2);
	}
	while (s->kind == ENDLESS && send(fd, "again and again\n", 16, MSG_NOSIGNAL) == 16)
		;
	if (s->kind == HEALTHY || s->kind == SILENT_FIRST)
		put(fd, REPORT);
}

static void talk(struct server *s, int fd)
{
	char gone;
	if (s->kind == SILENT || (s->kind == SILENT_FIRST && s->served == 1)) {
		while (recv(fd, &gone, 1, 0) == 1)
			;
		return;
	}
	memset(s->asked, 0, sizeof(s->asked));
	if (!take_line(s, fd))
		return;
	put(fd, s->kind == OTHER_SERVER ? "HTTP/1.1 400 Bad Request\r\n\r\n" : "SERVER PROTOCOL 3\n");
	if (s->kind == OTHER_SERVER || !take_line(s, fd))
		return;
	put(fd, "OK\n");
	if (take_line(s, fd))
		send_report(s, fd);
}

static void *serve(void *server)
{
	struct server *s = server;
	int fd;
	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		s->served++;
		talk(s, fd);
		close(fd);
	}
	return NULL;
}

enum at { LOOPBACK_4, LOOPBACK_6, ALL_4, ALL_6, MAPPED };

/* Port 0: any. Returns a socket that listens; what is not there at the end of the process is closed by the kernel. */
static int listen_at(enum at at, int *port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port)};
	int is_4 = at == LOOPBACK_4 || at == ALL_4, only_6 = at == LOOPBACK_6;
	int fd = socket(is_4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	v4.sin_addr.s_addr = htonl(at == LOOPBACK_4 ? INADDR_LOOPBACK : INADDR_ANY);
	if (at == LOOPBACK_6)
		v6.sin6_addr = in6addr_loopback;
	if (at == MAPPED)
		inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
	if (!is_4)
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_6, sizeof(only_6)), 0);
	struct sockaddr *address = is_4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t size = is_4 ? sizeof(v4) : sizeof(v6);
	assert_int_equal(bind(fd, address, size), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, address, &size), 0);
	*port = ntohs(is_4 ? v4.sin_port : v6.sin6_port);
	return fd;
}

static void begin_at(struct server *s, enum kind kind, enum at at, int port)
{
	*s = (struct server){.kind = kind, .port = port};
	s->fd = listen_at(at, &s->port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void begin(struct server *s, enum kind kind)
{
	begin_at(s, kind, LOOPBACK_4, 0);
}

static void end(struct server *s)
{
	atomic_store(&s->stops, 1);
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

static size_t ask_within(int limit_ms, const char *host, int port, char text[SIZE])
{
	char address[128];
	snprintf(address, sizeof(address), "%s:%d", host, port);
	return wlb_nccl_ras_ask(address, wlb_clock_ms() + limit_ms, text, SIZE);
}

/* Returns the length of the report, within the limit. */
static size_t ask(const char *host, int port, char text[SIZE])
{
	int64_t from_ms = wlb_clock_ms();
	size_t length = ask_within(LIMIT_MS, host, port, text);
	assert_true(wlb_clock_ms() - from_ms < LIMIT_MS + 1000);
	return length;
}

static void expect_report(const char *text, size_t length)
{
	assert_int_equal(length, strlen(REPORT));
	assert_memory_equal(text, REPORT, length);
}

static void a_report_is_read_to_its_end(void **state)
{
	(void)state;
	static const enum kind kinds[] = {HEALTHY, SLOW, SILENT_FIRST};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct server s;
		char text[SIZE];
		begin(&s, kinds[i]);
		size_t length = ask_within(LONG_LIMIT_MS, i == 0 ? "localhost" : "127.0.0.1", s.port, text);
		end(&s);
		expect_report(text, length);
		assert_string_equal(s.asked, "CLIENT PROTOCOL 2\nTIMEOUT 2\nVERBOSE STATUS\n");
	}
}

static void other_servers_say_nothing(void **state)
{
	(void)state;
	static const enum kind kinds[] = {OTHER_SERVER, SILENT};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct server s;
		char text[SIZE];
		begin(&s, kinds[i]);
		assert_int_equal(ask("127.0.0.1", s.port, text), 0);
		end(&s);
		assert_int_equal(ask("127.0.0.1", s.port, text), 0); /* nobody listens there any more */
	}
}

/* Another user's server, which would report. Its first client ends it with code 1. Port 0: any. */
static pid_t begin_of_another_user(enum at at, int *port)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		struct server s = {.kind = HEALTHY, .port = *port};
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (syscall(SYS_setresuid, 65534, 65534, 65534) != 0)
			_exit(2);
		s.fd = listen_at(at, &s.port);
		if (write(ends[1], &s.port, sizeof(s.port)) != sizeof(s.port))
			_exit(2);
		int fd = accept(s.fd, NULL, NULL);
		talk(&s, fd);
		_exit(1);
	}
	assert_int_equal(read(ends[0], port, sizeof(*port)), sizeof(*port));
	close(ends[0]);
	close(ends[1]);
	return child;
}

/* Returns whether nobody has connected to it. */
static int end_of_another_user(pid_t child)
{
	int status;
	wlb_clock_sleep_ms(20);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

/* It may have the port of a rank's service that has ended, or that is at the other address of localhost. */
static void another_users_server_is_not_asked(void **state)
{
	static const enum at places[] = {LOOPBACK_4, LOOPBACK_6, ALL_4, ALL_6, MAPPED};
	static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"};
	char text[SIZE];
	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int port = 0;
		pid_t child = begin_of_another_user(places[i], &port);
		for (size_t k = 0; k < sizeof(hosts) / sizeof(hosts[0]); k++)
			assert_int_equal(ask(hosts[k], port, text), 0);
		assert_true(end_of_another_user(child));
	}
	for (size_t i = 0; i < 2; i++) {
		struct server s;
		begin_at(&s, HEALTHY, i == 0 ? LOOPBACK_6 : LOOPBACK_4, 0);
		pid_t child = begin_of_another_user(i == 0 ? LOOPBACK_4 : LOOPBACK_6, &s.port);
		size_t length = ask("localhost", s.port, text);
		end(&s);
		assert_true(end_of_another_user(child));
		expect_report(text, length);
	}
}

static void our_server_is_asked_wherever_it_listens(void **state)
{
	static const struct {
		enum at at;
		const char *host;
	} cases[] = {{ALL_4, "127.0.0.1"},  {ALL_6, "127.0.0.1"},      {ALL_6, "[::1]"},
	             {MAPPED, "localhost"}, {LOOPBACK_6, "localhost"}, {LOOPBACK_4, "[::ffff:127.0.0.1]"}};
	char text[SIZE];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct server s;
		begin_at(&s, HEALTHY, cases[i].at, 0);
		size_t length = ask(cases[i].host, s.port, text);
		end(&s);
		expect_report(text, length);
	}
}

static void a_report_without_an_end_is_cut(void **state)
{
	(void)state;
	struct server s;
	char text[SIZE];
	begin(&s, ENDLESS);
	assert_int_equal(ask("127.0.0.1", s.port, text), SIZE);
	end(&s);
	begin(&s, STOPS);
	assert_int_equal(ask("127.0.0.1", s.port, text), strlen("half of a rep"));
	end(&s);
}

static void addresses_that_are_none(void **state)
{
	(void)state;
	char text[SIZE], address[300];
	static const char *const bad[] = {"",      ":", "28028", "node17:28028", "127.0.0.1:http", "127.0.0.1:99999999",
	                                  "[::1:1"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(wlb_nccl_ras_ask(bad[i], wlb_clock_ms() + LIMIT_MS, text, SIZE), 0);
	memset(address, '1', sizeof(address));
	snprintf(address + 290, 10, ":28028");
	assert_int_equal(wlb_nccl_ras_ask(address, wlb_clock_ms() + LIMIT_MS, text, SIZE), 0);
}

static void lines_are_printable_and_few(void **state)
{
	(void)state;
	char text[300 * 1024];
	json_t *lines = wlb_nccl_ras_lines("a\tb\n\n\x1b[2J\xc3\n\"end", 15, 1000);
	assert_int_equal(json_array_size(lines), 4);
	assert_string_equal(json_string_value(json_array_get(lines, 0)), "a b");
	assert_string_equal(json_string_value(json_array_get(lines, 1)), "");
	assert_string_equal(json_string_value(json_array_get(lines, 2)), "?[2J?");
	assert_string_equal(json_string_value(json_array_get(lines, 3)), "\"end");
	json_decref(lines);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 1000 == 999 ? '\n' : "\\\"x"[i % 3];
	lines = wlb_nccl_ras_lines(text, sizeof(text), 64 * 1024);
	assert_in_range(json_dumpb(lines, NULL, 0, JSON_COMPACT), 63 * 1024, 64 * 1024);
	assert_int_equal(json_string_length(json_array_get(lines, 0)), WLB_NCCL_RAS_LINE);
	json_decref(lines);
	for (size_t most = 1000; most < 1300; most++) {
		lines = wlb_nccl_ras_lines(text, sizeof(text), most);
		assert_in_range(json_dumpb(lines, NULL, 0, JSON_COMPACT), most - 450, most);
		json_decref(lines);
	}
	memset(text, '\n', sizeof(text));
	lines = wlb_nccl_ras_lines(text, sizeof(text), 64 * 1024);
	assert_int_equal(json_array_size(lines), WLB_NCCL_RAS_LINES);
	json_decref(lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_is_read_to_its_end),
		cmocka_unit_test(other_servers_say_nothing),
		cmocka_unit_test(a_report_without_an_end_is_cut),
		cmocka_unit_test(addresses_that_are_none),
		cmocka_unit_test(lines_are_printable_and_few),
		cmocka_unit_test(another_users_server_is_not_asked),
		cmocka_unit_test(our_server_is_asked_wherever_it_listens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
