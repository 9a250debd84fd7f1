#include "worker/train/stop_signals.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double LONGEST_HOLD_S = 60.0;

static atomic_int is_asked, save_is_asked, ignores_term;

/* Set before the thread is started. */
static sigset_t awaited;
static struct timespec hold; /* zero: SIGTERM is not awaited */

/* Ends the process as SIGTERM does where nobody waits for it. */
static void end_by_term(void)
{
	sigset_t term;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	signal(SIGTERM, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &term, NULL);
	kill(getpid(), SIGTERM);
}

/* SIGTERM has come. Returns when the process goes on. */
static void hold_term(void)
{
	if (atomic_load(&ignores_term))
		return;
	if (sigtimedwait(&awaited, NULL, &hold) == SIGUSR1)
		atomic_store(&is_asked, 1);
	else if (!atomic_load(&ignores_term))
		end_by_term();
}

static void *wait_for_signals(void *unused)
{
	int number;
	(void)unused;
	for (;;) {
		if (sigwait(&awaited, &number) != 0)
			continue;
		if (number == SIGUSR1)
			atomic_store(&is_asked, 1);
		else if (number == SIGUSR2)
			atomic_store(&save_is_asked, 1);
		else
			hold_term();
	}
	return NULL;
}

static void read_hold(void)
{
	const char *text = getenv("WLB_TERM_HOLD_S");
	double seconds = text != NULL ? atof(text) : 0.0;
	if (!(seconds > 0.0))
		return;
	seconds = fmin(seconds, LONGEST_HOLD_S);
	hold.tv_sec = (time_t)seconds;
	hold.tv_nsec = (long)(1e9 * (seconds - (double)hold.tv_sec));
	sigaddset(&awaited, SIGTERM);
}

int wlb_stop_signals_open(struct wlb_error *error)
{
	pthread_t thread;
	sigset_t all, others;
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGUSR1);
	sigaddset(&awaited, SIGUSR2);
	read_hold();
	pthread_sigmask(SIG_BLOCK, &awaited, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &others);
	int rc = pthread_create(&thread, NULL, wait_for_signals, NULL);
	pthread_sigmask(SIG_SETMASK, &others, NULL);
	if (rc != 0)
		return wlb_fail(error, "no thread that waits for signals: %s", strerror(rc));
	pthread_setname_np(thread, "signals");
	pthread_detach(thread);
	return 0;
}

int wlb_stop_is_asked(void)
{
	return atomic_load(&is_asked);
}

int wlb_save_is_asked(void)
{
	return atomic_exchange(&save_is_asked, 0);
}

void wlb_stop_signals_ignore_term(void)
{
	signal(SIGTERM, SIG_IGN);
	atomic_store(&ignores_term, 1);
}
