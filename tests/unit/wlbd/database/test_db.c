/* Connecting to a database whose host has a name, while the name server answers, hangs, and answers again; and to the
 * second of two hosts, the first of which is a standby. */
#include "coordinator/wlbd/database/db.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"

enum {
	TIMEOUT_MS = 300,
	TICK_MS = 10,
	WAIT_MAX_MS = 20000, /* on a busy machine */
};

static const char *const host = "db.test";

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool hangs;
	bool knows;       /* the name */
	int count;        /* of questions */
	int answered;     /* of those */
	bool on_the_loop; /* one was asked on the event loop's thread */
	pthread_t loop;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

typedef int resolver(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found);

/* The name has two addresses, at the first of which nobody listens. */
static int resolve_test_name(resolver *real, const struct addrinfo *hints, struct addrinfo **found)
{
	struct addrinfo numeric = *hints, *second = NULL;
	numeric.ai_flags |= AI_NUMERICHOST;
	int rc = real("127.0.0.2", NULL, &numeric, found);
	if (rc == 0)
		rc = real("127.0.0.1", NULL, &numeric, &second);
	if (rc == 0)
		(*found)->ai_next = second;
	return rc;
}

/* Stands in for that of the C library, also for libpq. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	resolver *real = (resolver *)dlsym(RTLD_NEXT, "getaddrinfo");
	if (strcmp(name, host) != 0 || (hints->ai_flags & AI_NUMERICHOST) != 0)
		return real(name, service, hints, found);
	pthread_mutex_lock(&names.lock);
	names.count++;
	names.on_the_loop = names.on_the_loop || pthread_equal(names.loop, pthread_self());
	while (names.hangs && !pthread_equal(names.loop, pthread_self()))
		pthread_cond_wait(&names.changed, &names.lock);
	bool knows = names.knows;
	names.answered++;
	pthread_cond_broadcast(&names.changed);
	pthread_mutex_unlock(&names.lock);
	return knows ? resolve_test_name(real, hints, found) : EAI_NONAME;
}

static void set_hanging(bool hangs)
{
	pthread_mutex_lock(&names.lock);
	names.hangs = hangs;
	pthread_cond_broadcast(&names.changed);
	pthread_mutex_unlock(&names.lock);
}

static int questions(void)
{
	pthread_mutex_lock(&names.lock);
	int count = names.count;
	pthread_mutex_unlock(&names.lock);
	return count;
}

/* ---- the fixture --------------------------------------------------------------------------------- */

struct fixture {
	struct event_base *base;
	struct event *ticker, *accepting;
	int listener, port;
	int ticks, accepted, losses;
	char detail[512]; /* of the last loss */
	struct wlbd_db_server *server;
	struct wlbd_db *db;
};

static void on_tick(evutil_socket_t fd, short what, void *context)
{
	struct fixture *f = context;
	(void)fd;
	(void)what;
	f->ticks++;
}

static void on_accept(evutil_socket_t fd, short what, void *context)
{
	struct fixture *f = context;
	(void)what;
	int connection = accept(fd, NULL, NULL);
	if (connection >= 0)
		close(connection);
	f->accepted++;
}

/* What a server sends to a new connection: it accepts every user, is in recovery, and is ready. */
static const char standby_greeting[] = "R\0\0\0\10\0\0\0\0"
				       "S\0\0\0\30server_version\00015.0\0"
				       "S\0\0\0\46default_transaction_read_only\0off\0"
				       "S\0\0\0\26in_hot_standby\0on\0"
				       "Z\0\0\0\5I";

static void on_accept_by_standby(evutil_socket_t fd, short what, void *context)
{
	int *connection = context;
	(void)what;
	if (*connection >= 0)
		close(*connection);
	*connection = accept(fd, NULL, NULL);
	assert_int_equal(write(*connection, standby_greeting, sizeof(standby_greeting) - 1),
	                 (ssize_t)sizeof(standby_greeting) - 1);
}

static const struct refusal {
	const char *sqlstate, *message, *reason;
} refusals[] = {
	{"28P01", "password authentication failed for user \"SECRET\"", "its server refuses wlbd's login"},
	{"28000", "no pg_hba.conf entry for host \"SECRET\"", "its server refuses wlbd's login"},
	{"3D000", "database \"SECRET\" does not exist", "its server has no such database"},
	{"53300", "SECRET: sorry, too many clients already", "its server has too many connections"},
	{"57P03", "the SECRET system is starting up", "its server is starting, or in recovery"},
	{"58P01", "could not open file \"SECRET\"", "its data are damaged"},
	{"XX001", "invalid page in SECRET", "its data are damaged"},
	{"42P17", "SECRET:  28P01 is no SQLSTATE", "no connection"},
};
enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

/* A server that refuses its clients, each for the next reason. */
struct refusing_server {
	int connections[REFUSALS], count;
};

static void on_accept_to_refuse(evutil_socket_t fd, short what, void *context)
{
	struct refusing_server *server = context;
	char answer[256] = "E";
	(void)what;
	int connection = accept(fd, NULL, NULL);
	if (server->count == REFUSALS) {
		close(connection);
		return;
	}
	const struct refusal *refusal = &refusals[server->count];
	int length = 5 + snprintf(answer + 5, sizeof(answer) - 5, "SFATAL%cVFATAL%cC%s%cM%s%c%c", 0, 0,
	                          refusal->sqlstate, 0, refusal->message, 0, 0);
	answer[4] = (char)(length - 1);
	assert_int_equal(write(connection, answer, (size_t)length), length);
	server->connections[server->count++] = connection;
}

static void on_unavailable(void *context, const char *detail)
{
	struct fixture *f = context;
	f->losses++;
	snprintf(f->detail, sizeof(f->detail), "%s", detail);
}

static int listen_on_any_port(int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

/* `port`: one, or a list of as many as hosts. */
static void open_database(struct fixture *f, const char *to, const char *port)
{
	struct wlbd_db_hooks hooks = {.unavailable = on_unavailable, .context = f};
	char conninfo[256];
	snprintf(conninfo, sizeof(conninfo), "host=%s port=%s user=wlb password=none sslmode=disable", to, port);
	f->server = wlbd_db_server_new(f->base, conninfo, NULL);
	assert_non_null(f->server);
	f->db = wlbd_db_new(f->base, f->server, TIMEOUT_MS, &hooks, NULL);
	assert_non_null(f->db);
}

static void begin(struct fixture *f, const char *to, bool hangs, bool knows)
{
	const struct timeval tick = {0, TICK_MS * 1000};
	char port[16];
	*f = (struct fixture){.base = event_base_new()};
	names.hangs = hangs;
	names.knows = knows;
	names.count = names.answered = 0;
	names.on_the_loop = false;
	names.loop = pthread_self();
	f->listener = listen_on_any_port(&f->port);
	f->accepting = event_new(f->base, f->listener, EV_READ | EV_PERSIST, on_accept, f);
	f->ticker = event_new(f->base, -1, EV_PERSIST, on_tick, f);
	event_add(f->accepting, NULL);
	event_add(f->ticker, &tick);
	snprintf(port, sizeof(port), "%d", f->port);
	open_database(f, to, port);
}

static void close_database(struct fixture *f)
{
	wlbd_db_free(f->db);
	wlbd_db_server_free(f->server);
	f->db = NULL;
	f->server = NULL;
}

static void end(struct fixture *f)
{
	close_database(f);
	event_free(f->accepting);
	event_free(f->ticker);
	close(f->listener);
	event_base_free(f->base);
	assert_false(names.on_the_loop);
}

/* Runs the loop until `*count` is that. */
static void await(struct fixture *f, const int *count, int most)
{
	int64_t deadline_ms = wlb_clock_ms() + WAIT_MAX_MS;
	while (*count < most && wlb_clock_ms() < deadline_ms)
		event_base_loop(f->base, EVLOOP_ONCE);
	assert_true(*count >= most);
}

/* Lets the thread that is left to itself end. */
static void await_answers(int count)
{
	set_hanging(false);
	pthread_mutex_lock(&names.lock);
	while (names.answered < count)
		pthread_cond_wait(&names.changed, &names.lock);
	pthread_mutex_unlock(&names.lock);
	wlb_clock_sleep_ms(50); /* it frees its memory then */
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void a_name_leads_to_the_server_at_its_second_address(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, host, false, true);
	await(&f, &f.accepted, 1);
	assert_true(questions() >= 1);
	end(&f);
}

static void an_address_needs_no_look_up(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "127.0.0.1", true, true);
	await(&f, &f.accepted, 1);
	assert_int_equal(questions(), 0);
	end(&f);
}

static void a_name_that_is_not_known_is_the_reason(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, host, false, false);
	await(&f, &f.losses, 2);
	assert_non_null(strstr(f.detail, host));
	assert_non_null(strstr(f.detail, gai_strerror(EAI_NONAME)));
	assert_string_equal(wlbd_db_reason(f.db), "its host's name cannot be resolved");
	assert_int_equal(f.accepted, 0);
	/* Once it is known the next try succeeds. */
	pthread_mutex_lock(&names.lock);
	names.knows = true;
	pthread_mutex_unlock(&names.lock);
	await(&f, &f.accepted, 1);
	end(&f);
}

/* The loop goes on, each try ends at its limit, and nothing is queued behind the question however many tries there are.
 */
static void a_name_server_that_hangs_stops_nothing(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, host, true, true);
	int64_t begin_ms = wlb_clock_ms();
	await(&f, &f.losses, 1);
	assert_true(wlb_clock_ms() - begin_ms >= TIMEOUT_MS);
	assert_true(f.ticks >= TIMEOUT_MS / TICK_MS / 4);
	assert_non_null(strstr(f.detail, host));
	assert_non_null(strstr(f.detail, "in time"));
	assert_string_equal(wlbd_db_reason(f.db), "the name server does not answer in time");
	await(&f, &f.losses, 3);
	wlbd_db_free(f.db);
	f.db = NULL;
	await_answers(1);
	assert_int_equal(questions(), 1);
	assert_int_equal(f.accepted, 0);
	end(&f);
}

/* A name server may always take longer than a try. */
static void an_answer_that_is_late_serves_the_next_try(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, host, true, true);
	await(&f, &f.losses, 2); /* after which there is a pause of 200 ms */
	await_answers(1);
	event_base_loop(f.base, EVLOOP_NONBLOCK);
	set_hanging(true);
	await(&f, &f.accepted, 1);
	end(&f);
	await_answers(questions());
}

static void stopping_waits_for_no_name_server(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, host, true, true);
	while (questions() == 0)
		event_base_loop(f.base, EVLOOP_ONCE);
	wlbd_db_stop(f.db);
	assert_int_equal(f.losses, 1);
	assert_string_equal(f.detail, "wlbd is stopping");
	close_database(&f); /* would not return if it waited */
	await_answers(1);
	event_base_loop(f.base, EVLOOP_NONBLOCK);
	assert_int_equal(f.losses, 1);
	assert_int_equal(f.accepted, 0);
	end(&f);
}

/* Two connections wait for one look-up; one is freed meanwhile, and the other gets the answer. */
static void connections_share_a_look_up(void **state)
{
	static const struct wlbd_db_hooks none;
	struct fixture f;
	(void)state;
	begin(&f, host, true, true);
	struct wlbd_db *other = wlbd_db_new(f.base, f.server, TIMEOUT_MS, &none, NULL);
	await(&f, &f.ticks, 5);
	assert_int_equal(questions(), 1);
	wlbd_db_free(other);
	set_hanging(false);
	await(&f, &f.accepted, 1);
	end(&f);
}

static void a_standby_is_passed_over(void **state)
{
	struct fixture f;
	char ports[32];
	int port, connection = -1;
	(void)state;
	begin(&f, "127.0.0.1", false, true);
	close_database(&f);
	int standby = listen_on_any_port(&port);
	struct event *accepting = event_new(f.base, standby, EV_READ | EV_PERSIST, on_accept_by_standby, &connection);
	event_add(accepting, NULL);
	snprintf(ports, sizeof(ports), "%d,%d", port, f.port);
	open_database(&f, "127.0.0.1,127.0.0.1", ports);
	await(&f, &f.accepted, 1);
	assert_true(connection >= 0);
	assert_false(wlbd_db_ready(f.db));
	end(&f);
	event_free(accepting);
	close(connection);
	close(standby);
}

static void note_answer(void *context, const struct wlbd_db_result *result)
{
	snprintf(context, 256, "%s", result->message);
}

/* What the server says is for the log. */
static void clients_are_told_of_a_refusal_in_own_words(void **state)
{
	static const struct wlbd_params none;
	struct fixture f;
	struct refusing_server server = {.count = 0};
	char port[16], answer[256], expected[256];
	int number;
	(void)state;
	begin(&f, "127.0.0.1", false, true);
	close_database(&f);
	f.losses = 0;
	int listener = listen_on_any_port(&number);
	struct event *accepting = event_new(f.base, listener, EV_READ | EV_PERSIST, on_accept_to_refuse, &server);
	event_add(accepting, NULL);
	snprintf(port, sizeof(port), "%d", number);
	open_database(&f, "127.0.0.1", port);
	for (int i = 0; i < REFUSALS; i++) {
		await(&f, &f.losses, i + 1);
		assert_non_null(strstr(f.detail, refusals[i].message));
		assert_string_equal(wlbd_db_reason(f.db), refusals[i].reason);
		wlbd_db_execute(f.db, "select 1", &none, note_answer, answer);
		snprintf(expected, sizeof(expected), "the database is unavailable (%s); try again", refusals[i].reason);
		assert_string_equal(answer, expected);
		close(server.connections[i]);
	}
	end(&f);
	event_free(accepting);
	close(listener);
}

/* The answer has arrived, and the event loop has not seen it. */
static void an_answer_may_wait_while_all_is_freed(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, host, true, true);
	while (questions() == 0)
		event_base_loop(f.base, EVLOOP_ONCE);
	await_answers(1);
	end(&f);
	assert_int_equal(f.accepted, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_leads_to_the_server_at_its_second_address),
		cmocka_unit_test(an_address_needs_no_look_up),
		cmocka_unit_test(a_name_that_is_not_known_is_the_reason),
		cmocka_unit_test(a_name_server_that_hangs_stops_nothing),
		cmocka_unit_test(an_answer_that_is_late_serves_the_next_try),
		cmocka_unit_test(stopping_waits_for_no_name_server),
		cmocka_unit_test(connections_share_a_look_up),
		cmocka_unit_test(a_standby_is_passed_over),
		cmocka_unit_test(clients_are_told_of_a_refusal_in_own_words),
		cmocka_unit_test(an_answer_may_wait_while_all_is_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
