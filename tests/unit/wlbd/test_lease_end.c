/* The test's own program is what starts again: each case runs in a child, which says over a pipe what it has done. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/wlbd/lease_end.h"

enum { SAY_FD = 9, LEASE_MS = 400, ROUNDS = 3 };

static char **own_arguments;

static void say(const char *word)
{
	(void)!write(SAY_FD, word, strlen(word));
}

static void set_lease(int ms)
{
	if (wlbd_lease_end_set(wlbd_lease_clock_ms() + ms, NULL) != 0)
		_exit(9);
}

/* Runs `act` in a child that starts again as this program does with the variable WLB_TEST_STARTED_AGAIN. Returns what
 * it has said. `stops`: it stops itself once, and is continued when its lease is over. */
static const char *said_by(void (*act)(void), bool stops, int *status)
{
	static char text[256];
	int pipes[2], length = 0;
	ssize_t n;
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(pipes[1], SAY_FD);
		close(pipes[0]);
		close(pipes[1]);
		setenv("WLB_TEST_STARTED_AGAIN", "yes", 1);
		wlbd_lease_end_prepare(own_arguments);
		act();
		say("left ");
		_exit(0);
	}
	close(pipes[1]);
	if (stops) {
		assert_int_equal(waitpid(child, status, WUNTRACED), child);
		assert_true(WIFSTOPPED(*status));
		wlb_clock_sleep_ms(LEASE_MS + 20);
		kill(child, SIGCONT);
	}
	while ((n = read(pipes[0], text + length, sizeof(text) - 1 - (size_t)length)) > 0)
		length += (int)n;
	text[length] = '\0';
	close(pipes[0]);
	assert_int_equal(waitpid(child, status, 0), child);
	return text;
}

/* ---- the thread that acts, stopped between its look at the lease and its order ------------------------------------
 */

static void *give_order(void *context)
{
	(void)context;
	if (wlbd_lease_end_watch(NULL) != 0)
		_exit(9);
	raise(SIGSTOP);
	say("ordered ");
	return NULL;
}

static void act_on_a_thread(void)
{
	sigset_t all, before;
	pthread_t thread;
	set_lease(LEASE_MS);
	sigfillset(&all); /* as threads of wlbd begin */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&thread, NULL, give_order, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_join(thread, NULL);
	wlb_clock_sleep_ms(LEASE_MS);
}

static void a_stopped_thread_gives_no_order(void **state)
{
	int status;
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		assert_string_equal(said_by(act_on_a_thread, true, &status), "started again ");
		assert_int_equal(status, 0);
	}
}

static void act_on_the_loop(void)
{
	set_lease(LEASE_MS);
	raise(SIGSTOP);
	say("replied ");
}

static void a_stopped_event_loop_does_nothing(void **state)
{
	int status;
	(void)state;
	for (int i = 0; i < ROUNDS; i++)
		assert_string_equal(said_by(act_on_the_loop, true, &status), "started again ");
}

/* ---- the lease is renewed, or not ------------------------------------------------------------------------------ */

static void renew_for_a_while(void)
{
	set_lease(LEASE_MS);
	for (int i = 0; i < 10; i++) {
		wlb_clock_sleep_ms(LEASE_MS / 4);
		set_lease(LEASE_MS);
	}
	say("acted ");
	for (int i = 0; i < 100; i++)
		wlb_clock_sleep_ms(LEASE_MS / 4);
}

static void it_acts_until_it_is_not_renewed(void **state)
{
	int status;
	(void)state;
	int64_t began_ms = wlb_clock_ms();
	assert_string_equal(said_by(renew_for_a_while, false, &status), "acted started again ");
	int64_t took_ms = wlb_clock_ms() - began_ms;
	assert_true(took_ms >= 10 * (LEASE_MS / 4) + LEASE_MS - 5);
	assert_true(took_ms < 2000);
}

static void act_too_late(void)
{
	set_lease(-1);
	wlbd_lease_end_watch(NULL);
	say("ordered ");
}

static void act_without_a_lease(void)
{
	if (wlbd_lease_end_watch(NULL) == 0)
		say("ordered ");
}

static void a_lease_that_is_over(void **state)
{
	int status;
	(void)state;
	assert_string_equal(said_by(act_too_late, false, &status), "started again ");
	assert_string_equal(said_by(act_without_a_lease, false, &status), "ordered left ");
}

static void stop_too_slowly(void)
{
	set_lease(LEASE_MS);
	wlbd_lease_end_exits();
	for (int i = 0; i < 100; i++)
		wlb_clock_sleep_ms(LEASE_MS);
}

static void one_that_is_stopping_ends(void **state)
{
	int status;
	(void)state;
	assert_string_equal(said_by(stop_too_slowly, false, &status), "");
	assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
}

/* ---- what it has sent, and the other end has not taken ------------------------------------------------------------
 */

static struct sockaddr_in listener_address;

static void send_what_is_not_taken(void)
{
	char bytes[65536] = {0};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	connect(fd, (struct sockaddr *)&listener_address, sizeof(listener_address));
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	poll(&ready, 1, 1000);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	wlbd_lease_end_now();
}

static void what_waits_in_a_connection_is_not_sent(void **state)
{
	char bytes[65536];
	socklen_t size = sizeof(listener_address);
	int status, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n;
	(void)state;
	listener_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(listener, (struct sockaddr *)&listener_address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&listener_address, &size), 0);
	assert_string_equal(said_by(send_what_is_not_taken, false, &status), "started again ");
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		;
	assert_int_equal(n, -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
	close(listener);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_thread_gives_no_order),
		cmocka_unit_test(a_stopped_event_loop_does_nothing),
		cmocka_unit_test(it_acts_until_it_is_not_renewed),
		cmocka_unit_test(a_lease_that_is_over),
		cmocka_unit_test(one_that_is_stopping_ends),
		cmocka_unit_test(what_waits_in_a_connection_is_not_sent),
	};
	(void)argc;
	own_arguments = argv;
	if (getenv("WLB_TEST_STARTED_AGAIN") != NULL) {
		sigset_t blocked;
		sigprocmask(SIG_SETMASK, NULL, &blocked);
		say(sigismember(&blocked, SIGTERM) == 0 ? "started again " : "started again with signals blocked ");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
