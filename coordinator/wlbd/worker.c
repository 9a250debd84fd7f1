#include "coordinator/wlbd/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/wlbd/log.h"

enum {
	THREADS_MAX = 8,
	REFUSED_LOG_MS = 10000,
};

struct queue {
	struct wlbd_job *first;
	struct wlbd_job **end; /* where the next one is linked */
};

struct wlbd_worker {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct queue waiting;
	int waiting_count;
	int waiting_most;
	char name[32];
	int64_t refused_log_ms; /* when it was last said that there are too many */
	struct queue finished;
	bool stopping;
	int event_fd; /* tells the loop that `finished` has something */
	struct event *event;
	pthread_t threads[THREADS_MAX];
	int thread_count;
};

static void queue_clear(struct queue *queue)
{
	queue->first = NULL;
	queue->end = &queue->first;
}

static void queue_put(struct queue *queue, struct wlbd_job *job)
{
	job->next = NULL;
	*queue->end = job;
	queue->end = &job->next;
}

static struct wlbd_job *queue_take(struct queue *queue)
{
	struct wlbd_job *job = queue->first;
	queue->first = job->next;
	if (queue->first == NULL)
		queue->end = &queue->first;
	return job;
}

static void finish(struct wlbd_worker *worker, struct wlbd_job *job)
{
	uint64_t one = 1;
	pthread_mutex_lock(&worker->lock);
	queue_put(&worker->finished, job);
	pthread_mutex_unlock(&worker->lock);
	while (write(worker->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void *thread_main(void *context)
{
	struct wlbd_worker *worker = context;
	for (;;) {
		pthread_mutex_lock(&worker->lock);
		while (worker->waiting.first == NULL && !worker->stopping)
			pthread_cond_wait(&worker->wake, &worker->lock);
		struct wlbd_job *job = worker->stopping ? NULL : queue_take(&worker->waiting);
		worker->waiting_count -= job != NULL;
		pthread_mutex_unlock(&worker->lock);
		if (job == NULL)
			return NULL;
		job->run(job);
		finish(worker, job);
	}
}

static void finish_all(struct wlbd_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	struct wlbd_job *job = worker->finished.first;
	queue_clear(&worker->finished);
	pthread_mutex_unlock(&worker->lock);
	while (job != NULL) {
		struct wlbd_job *next = job->next; /* `done` may free the job */
		job->done(job);
		job = next;
	}
}

static void on_finished(evutil_socket_t fd, short what, void *context)
{
	uint64_t count;
	(void)what;
	if (read(fd, &count, sizeof(count)) >= 0)
		finish_all(context);
}

/* Signals are the event loop's: the threads are born with all of them blocked. */
static int start_threads(struct wlbd_worker *worker, int threads)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = 0;
	while (rc == 0 && worker->thread_count < threads) {
		rc = pthread_create(&worker->threads[worker->thread_count], NULL, thread_main, worker);
		worker->thread_count += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

struct wlbd_worker *wlbd_worker_new(struct event_base *base, const char *name, int threads, int most,
                                    struct wlb_error *error)
{
	struct wlbd_worker *worker = calloc(1, sizeof(*worker));
	if (worker == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->wake, NULL);
	queue_clear(&worker->waiting);
	queue_clear(&worker->finished);
	snprintf(worker->name, sizeof(worker->name), "%s", name);
	worker->waiting_most = most;
	worker->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	worker->event = event_new(base, worker->event_fd, EV_READ | EV_PERSIST, on_finished, worker);
	int rc = worker->event_fd < 0 || worker->event == NULL ? errno : start_threads(worker, threads);
	if (rc != 0) {
		wlb_fail(error, "threads cannot be started: %s", strerror(rc));
		wlbd_worker_free(worker);
		return NULL;
	}
	event_add(worker->event, NULL);
	return worker;
}

void wlbd_worker_free(struct wlbd_worker *worker)
{
	if (worker == NULL)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->stopping = true;
	pthread_cond_broadcast(&worker->wake);
	pthread_mutex_unlock(&worker->lock);
	for (int i = 0; i < worker->thread_count; i++)
		pthread_join(worker->threads[i], NULL);
	finish_all(worker);
	while (worker->waiting.first != NULL) {
		struct wlbd_job *job = queue_take(&worker->waiting);
		job->discard(job);
	}
	if (worker->event != NULL)
		event_free(worker->event);
	if (worker->event_fd >= 0)
		close(worker->event_fd);
	pthread_cond_destroy(&worker->wake);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

static void refuse(struct wlbd_worker *worker, struct wlbd_job *job)
{
	int64_t now_ms = wlb_clock_ms();
	if (worker->refused_log_ms == 0 || now_ms - worker->refused_log_ms > REFUSED_LOG_MS) {
		worker->refused_log_ms = now_ms;
		wlbd_log(WLBD_LOG_WARNING, "%s: %d wait already, which is the most; more are refused", worker->name,
		         worker->waiting_most);
	}
	job->discard(job);
}

void wlbd_worker_submit(struct wlbd_worker *worker, struct wlbd_job *job)
{
	pthread_mutex_lock(&worker->lock);
	bool full = worker->waiting_count >= worker->waiting_most;
	if (!full) {
		queue_put(&worker->waiting, job);
		worker->waiting_count++;
		pthread_cond_signal(&worker->wake);
	}
	pthread_mutex_unlock(&worker->lock);
	if (full)
		refuse(worker, job);
}
