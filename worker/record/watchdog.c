#include "worker/record/watchdog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/seconds.h"
#include "worker/data/file_progress.h"

enum { CHECK_EVERY_MS = 50, ABORT_MAX_S = 2 };

enum phase { CONNECTING, TRAINING, LEAVING };

struct wlb_watchdog {
	pthread_t thread;
	atomic_bool stopping;
	const struct wlb_launch *launch;
	double timeout_s;
	double storage_timeout_s;
	struct wlb_file_progress files; /* of the thread that started the watchdog */
	pthread_mutex_t lock;           /* of the members below */
	enum phase phase;
	double phase_began_s;
	struct wlb_recorder *recorder; /* NULL until there is one, and when leaving */
	struct wlb_comm_trace *trace;  /* NULL unless training */
};

static void describe_call(const struct wlb_comm_trace *trace, const struct wlb_trace_event *call, double waited_s,
                          char *text, size_t size)
{
	char name[WLB_TRACE_NAME_SIZE];
	wlb_comm_trace_name(trace, call, name);
	snprintf(text, size, "%s %llu of communicator %s (%llu bytes) has waited %.1f s",
	         wlb_comm_kind_name(call->kind), (unsigned long long)call->seq, name, (unsigned long long)call->bytes,
	         waited_s);
}

/* Returns 1 and a sentence that describes the wait where a wait exceeds its limit, else 0. */
static int waits_too_long(const struct wlb_watchdog *w, char *text, size_t size)
{
	struct wlb_trace_event event = {.blocked_s = w->phase_began_s};
	if (w->phase == TRAINING && !wlb_comm_trace_waiting(w->trace, &event))
		return 0;
	double waited_s = wlb_now_s() - event.blocked_s;
	if (waited_s <= w->timeout_s)
		return 0;
	if (w->phase == TRAINING)
		describe_call(w->trace, &event, waited_s, text, size);
	else
		snprintf(text, size, "%s the %d ranks has taken %.1f s",
		         w->phase == CONNECTING ? "connecting" : "disconnecting", w->launch->size, waited_s);
	return 1;
}

static void *abort_calls(void *trace)
{
	wlb_comm_trace_abort(trace);
	return NULL;
}

/* Ends calls that a GPU runs, so that it and the other ranks do not wait for this process. A thread does it, since it
 * may wait for a lock of the main thread or for the driver. */
static void end_calls(const struct wlb_watchdog *w)
{
	pthread_t thread;
	struct timespec until;
	if (w->phase != TRAINING || pthread_create(&thread, NULL, abort_calls, w->trace) != 0)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ABORT_MAX_S;
	pthread_timedjoin_np(thread, NULL, &until);
}

/* Records the end and ends the process without any cleanup, because the main thread may hold any lock of stdio or MPI.
 */
static void end(struct wlb_watchdog *w, const char *state, int exit_code, const char *reason)
{
	if (w->recorder != NULL)
		wlb_record_end(w->recorder, state, exit_code, reason);
	end_calls(w);
	_exit(exit_code);
}

/* Ends the process where the coordinator ordered it, or where a wait or a file exceeds its limit. */
static void check_waits(struct wlb_watchdog *w)
{
	const char *order = NULL;
	char text[256];
	int rank = w->launch->rank;
	if (w->recorder != NULL && wlb_recorder_must_end(w->recorder, &order)) {
		if (rank == 0)
			dprintf(STDERR_FILENO, "wlb-worker: ended by order of the coordinator: %s\n", order);
		end(w, "ended", WLB_EXIT_ORDERED, order);
	}
	if (waits_too_long(w, text, sizeof(text))) {
		dprintf(STDERR_FILENO, "wlb-worker: rank %d on %s: %s, more than --distributed-timeout-minutes %g\n",
		        rank, wlb_launch_node(w->launch, rank), text, w->timeout_s / 60.0);
		end(w, "failed", 1, text);
	}
	struct wlb_error error;
	if ((w->phase == TRAINING && wlb_comm_trace_check(w->trace, &error) < 0) ||
	    wlb_file_progress_check(&w->files, w->storage_timeout_s, &error) < 0) {
		dprintf(STDERR_FILENO, "wlb-worker: rank %d on %s: %s\n", rank, wlb_launch_node(w->launch, rank),
		        error.message);
		end(w, "failed", 1, error.message);
	}
}

static void *watch(void *argument)
{
	struct wlb_watchdog *w = argument;
	while (!atomic_load(&w->stopping)) {
		pthread_mutex_lock(&w->lock);
		check_waits(w);
		pthread_mutex_unlock(&w->lock);
		nanosleep(&(struct timespec){.tv_nsec = CHECK_EVERY_MS * 1000000L}, NULL);
	}
	return NULL;
}

struct wlb_watchdog *wlb_watchdog_start(const struct wlb_launch *launch, double timeout_s, double storage_timeout_s,
                                        struct wlb_error *error)
{
	struct wlb_watchdog *w = calloc(1, sizeof(*w));
	if (w == NULL) {
		wlb_fail(error, "out of memory for the watchdog");
		return NULL;
	}
	w->launch = launch;
	w->timeout_s = timeout_s;
	w->storage_timeout_s = storage_timeout_s;
	w->phase_began_s = wlb_now_s();
	pthread_mutex_init(&w->lock, NULL);
	wlb_file_progress_init(&w->files);
	if (pthread_create(&w->thread, NULL, watch, w) == 0) {
		wlb_file_progress_use(&w->files);
		return w;
	}
	wlb_fail(error, "the watchdog's thread cannot be started: too many threads?");
	wlb_file_progress_destroy(&w->files);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

static void enter_phase(struct wlb_watchdog *w, enum phase phase, struct wlb_comm_trace *trace)
{
	pthread_mutex_lock(&w->lock);
	w->phase = phase;
	w->phase_began_s = wlb_now_s();
	w->trace = trace;
	if (phase == LEAVING)
		w->recorder = NULL;
	pthread_mutex_unlock(&w->lock);
}

void wlb_watchdog_record(struct wlb_watchdog *w, struct wlb_recorder *recorder)
{
	pthread_mutex_lock(&w->lock);
	w->recorder = recorder;
	pthread_mutex_unlock(&w->lock);
}

void wlb_watchdog_watch_collectives(struct wlb_watchdog *w, struct wlb_comm_trace *trace)
{
	enter_phase(w, TRAINING, trace);
}

void wlb_watchdog_watch_exit(struct wlb_watchdog *w)
{
	if (w != NULL)
		enter_phase(w, LEAVING, NULL);
}

void wlb_watchdog_stop(struct wlb_watchdog *w)
{
	if (w == NULL)
		return;
	atomic_store(&w->stopping, true);
	pthread_join(w->thread, NULL);
	wlb_file_progress_use(NULL);
	wlb_file_progress_destroy(&w->files);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
