#include "coordinator/wlbd/lease_end.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The member of struct sigevent that glibc names only since 2.41. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { DESCRIPTORS_MAX = 16384 }; /* more than connections and what is kept beside them (http/http.c) */

static char **arguments;
static _Atomic int64_t end_ms; /* of the lease; 0: there is none */
static atomic_bool is_stopping;
static _Thread_local timer_t timer; /* of a thread that is watched */
static _Thread_local bool has_timer;

int64_t wlbd_lease_clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Closing a socket sends what waits in it, which may be an order, unless it is reset. */
static void reset_connections(void)
{
	const struct linger reset = {.l_onoff = 1, .l_linger = 0};
	for (int fd = 3; fd < DESCRIPTORS_MAX; fd++)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

/* Calls only what a signal's handler may call. All descriptors but those of standard streams are closed by exec. */
_Noreturn void wlbd_lease_end_now(void)
{
	static const char text[] = "wlbd: its lease is over, and another may act: starts again and stands by\n";
	sigset_t none;
	reset_connections();
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!atomic_load(&is_stopping))
		execve("/proc/self/exe", arguments, environ);
	_exit(EXIT_FAILURE);
}

static void set_timer(void)
{
	int64_t until_ms = atomic_load(&end_ms);
	const struct itimerspec at = {.it_value = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000}};
	timer_settime(timer, TIMER_ABSTIME, &at, NULL);
}

/* Runs in the thread that the timer is of. The lease may have been renewed since that was set. */
static void on_timer(int number)
{
	int error = errno;
	(void)number;
	if (wlbd_lease_clock_ms() >= atomic_load(&end_ms))
		wlbd_lease_end_now();
	set_timer();
	errno = error;
}

void wlbd_lease_end_prepare(char **argv)
{
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	arguments = argv;
	prctl(PR_SET_NAME, program_invocation_short_name); /* a start through /proc/self/exe takes that for the name */
	sigemptyset(&action.sa_mask);
	sigaction(SIGRTMIN, &action, NULL);
}

static int make_timer(struct wlb_error *error)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	sigset_t own;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_BOOTTIME, &event, &timer) != 0)
		return wlb_fail(error, "no timer for the end of the lease: %s", strerror(errno));
	has_timer = true;
	sigemptyset(&own);
	sigaddset(&own, SIGRTMIN);
	pthread_sigmask(SIG_UNBLOCK, &own, NULL);
	return 0;
}

int wlbd_lease_end_set(int64_t until_ms, struct wlb_error *error)
{
	atomic_store(&end_ms, until_ms);
	if (!has_timer && make_timer(error) != 0)
		return -1;
	set_timer();
	return 0;
}

int wlbd_lease_end_watch(struct wlb_error *error)
{
	if (atomic_load(&end_ms) == 0)
		return 0;
	if (!has_timer && make_timer(error) != 0)
		return -1;
	set_timer();
	if (wlbd_lease_clock_ms() >= atomic_load(&end_ms))
		wlbd_lease_end_now();
	return 0;
}

void wlbd_lease_end_exits(void)
{
	atomic_store(&is_stopping, true);
}
