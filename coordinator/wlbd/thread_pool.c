#include "coordinator/wlbd/thread_pool.h"

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
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/log.h"

enum {
	THREADS_MAX = 8,
	REFUSED_LOG_MS = 10000,
};

struct queue {
	struct wlbd_task *first;
	struct wlbd_task **end; /* where the next one is linked */
};

struct wlbd_thread_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct queue waiting;
	struct wlbd_task *running[THREADS_MAX]; /* NULL: none */
	int owner_max;                          /* of one owner, that run */
	struct wlbd_budget *places;             /* of the owners of tasks that wait, under the lock */
	int waiting_max;
	char name[32];
	int64_t refused_log_ms; /* when it was last logged that too many tasks wait */
	struct queue finished;
	bool stopping;
	bool is_abandoned; /* nobody takes what is finished */
	int users;         /* the threads, and the owner: the last one frees the pool */
	int event_fd;      /* readable for the loop when `finished` has an entry */
	struct event *event;
	pthread_t threads[THREADS_MAX];
	int thread_count;
};

static void queue_clear(struct queue *queue)
{
	queue->first = NULL;
	queue->end = &queue->first;
}

static void queue_put(struct queue *queue, struct wlbd_task *task)
{
	task->next = NULL;
	*queue->end = task;
	queue->end = &task->next;
}

/* `link`: where the task is linked. */
static struct wlbd_task *queue_take(struct queue *queue, struct wlbd_task **link)
{
	struct wlbd_task *task = *link;
	*link = task->next;
	if (queue->end == &task->next)
		queue->end = link;
	return task;
}

/* ---- which task is next, under the lock ------------------------------------------------------------------ */

static int running_count(const struct wlbd_thread_pool *pool, uid_t owner)
{
	int count = 0;
	for (int i = 0; owner != 0 && i < THREADS_MAX; i++)
		count += pool->running[i] != NULL && pool->running[i]->owner == owner;
	return count;
}

/* Returns where the task is linked; NULL: none may run. */
static struct wlbd_task **find_next(struct wlbd_thread_pool *pool)
{
	struct wlbd_task **best = NULL;
	int fewest = pool->owner_max;
	for (struct wlbd_task **link = &pool->waiting.first; *link != NULL && fewest > 0; link = &(*link)->next) {
		int count = running_count(pool, (*link)->owner);
		if (count < fewest) {
			best = link;
			fewest = count;
		}
	}
	return best;
}

static int find_place(struct wlbd_task *const *running, const struct wlbd_task *task)
{
	int place = 0;
	while (running[place] != task)
		place++;
	return place;
}

/* Returns NULL where none may run. */
static struct wlbd_task *take_next(struct wlbd_thread_pool *pool)
{
	struct wlbd_task **link = find_next(pool);
	if (link == NULL)
		return NULL;
	struct wlbd_task *task = queue_take(&pool->waiting, link);
	wlbd_budget_leave(pool->places, task->owner);
	pool->running[find_place(pool->running, NULL)] = task;
	return task;
}

/* ---- the threads ------------------------------------------------------------------------------------------ */

static void release(struct wlbd_thread_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	bool is_last = --pool->users == 0;
	pthread_mutex_unlock(&pool->lock);
	if (!is_last)
		return;
	if (pool->event_fd >= 0)
		close(pool->event_fd);
	wlbd_budget_free(pool->places);
	pthread_cond_destroy(&pool->wake);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

static void finish(struct wlbd_thread_pool *pool, struct wlbd_task *task)
{
	uint64_t one = 1;
	pthread_mutex_lock(&pool->lock);
	pool->running[find_place(pool->running, task)] = NULL;
	bool is_abandoned = pool->is_abandoned;
	if (!is_abandoned)
		queue_put(&pool->finished, task);
	pthread_mutex_unlock(&pool->lock);
	if (is_abandoned) {
		task->discard(task);
		return;
	}
	while (write(pool->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void *thread_main(void *context)
{
	struct wlbd_thread_pool *pool = context;
	for (;;) {
		pthread_mutex_lock(&pool->lock);
		struct wlbd_task *task = NULL;
		while (!pool->stopping && (task = take_next(pool)) == NULL)
			pthread_cond_wait(&pool->wake, &pool->lock);
		pthread_mutex_unlock(&pool->lock);
		if (task == NULL)
			break;
		task->run(task);
		finish(pool, task);
	}
	release(pool);
	return NULL;
}

static void finish_all(struct wlbd_thread_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	struct wlbd_task *task = pool->finished.first;
	queue_clear(&pool->finished);
	pthread_mutex_unlock(&pool->lock);
	while (task != NULL) {
		struct wlbd_task *next = task->next; /* `done` may free the task */
		task->done(task);
		task = next;
	}
}

static void on_finished(evutil_socket_t fd, short what, void *context)
{
	uint64_t count;
	(void)what;
	if (read(fd, &count, sizeof(count)) >= 0)
		finish_all(context);
}

/* The threads start with all signals blocked: the event loop handles signals. */
static int start_threads(struct wlbd_thread_pool *pool, int threads)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = 0;
	while (rc == 0 && pool->thread_count < threads) {
		rc = pthread_create(&pool->threads[pool->thread_count], NULL, thread_main, pool);
		pool->thread_count += rc == 0;
		pool->users += rc == 0; /* a thread releases the pool once it is stopping */
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

struct wlbd_thread_pool *wlbd_thread_pool_new(struct event_base *base, const char *name, int threads, int max,
                                              struct wlb_error *error)
{
	const struct wlbd_budget_limits limits = {
		.user_count = (size_t)max, .all_count = (size_t)max, .reserved_count = (size_t)max / 8};
	struct wlbd_thread_pool *pool = calloc(1, sizeof(*pool));
	if (pool != NULL)
		pool->places = wlbd_budget_new(&limits);
	if (pool == NULL || pool->places == NULL) {
		wlb_fail(error, "out of memory");
		free(pool);
		return NULL;
	}
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->wake, NULL);
	queue_clear(&pool->waiting);
	queue_clear(&pool->finished);
	snprintf(pool->name, sizeof(pool->name), "%s", name);
	pool->waiting_max = max;
	pool->owner_max = threads > 1 ? threads - 1 : 1;
	pool->users = 1;
	pool->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pool->event = event_new(base, pool->event_fd, EV_READ | EV_PERSIST, on_finished, pool);
	int rc = pool->event_fd < 0 || pool->event == NULL ? errno : start_threads(pool, threads);
	if (rc != 0) {
		wlb_fail(error, "threads cannot be started: %s", strerror(rc));
		wlbd_thread_pool_free(pool);
		return NULL;
	}
	event_add(pool->event, NULL);
	return pool;
}

static void stop_threads(struct wlbd_thread_pool *pool, bool is_abandoned)
{
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	pool->is_abandoned = is_abandoned;
	pthread_cond_broadcast(&pool->wake);
	pthread_mutex_unlock(&pool->lock);
}

/* The tasks that no thread runs any more. */
static void end_tasks(struct wlbd_thread_pool *pool)
{
	finish_all(pool);
	while (pool->waiting.first != NULL) {
		struct wlbd_task *task = queue_take(&pool->waiting, &pool->waiting.first);
		task->discard(task);
	}
	if (pool->event != NULL)
		event_free(pool->event);
}

void wlbd_thread_pool_free(struct wlbd_thread_pool *pool)
{
	if (pool == NULL)
		return;
	stop_threads(pool, false);
	for (int i = 0; i < pool->thread_count; i++)
		pthread_join(pool->threads[i], NULL);
	end_tasks(pool);
	release(pool);
}

void wlbd_thread_pool_abandon(struct wlbd_thread_pool *pool)
{
	if (pool == NULL)
		return;
	stop_threads(pool, true);
	for (int i = 0; i < pool->thread_count; i++)
		pthread_detach(pool->threads[i]);
	end_tasks(pool);
	release(pool);
}

/* ---- tasks that are too many ------------------------------------------------------------------------------ */

static void refuse(struct wlbd_thread_pool *pool, struct wlbd_task *task)
{
	int64_t now_ms = wlb_clock_ms();
	if (pool->refused_log_ms == 0 || now_ms - pool->refused_log_ms > REFUSED_LOG_MS) {
		pool->refused_log_ms = now_ms;
		wlbd_log(WLBD_LOG_WARNING,
		         "%s: a task is refused, since too many wait, of its owner or in all, of which %d may",
		         pool->name, pool->waiting_max);
	}
	task->discard(task);
}

void wlbd_thread_pool_submit(struct wlbd_thread_pool *pool, struct wlbd_task *task)
{
	pthread_mutex_lock(&pool->lock);
	bool has_place = wlbd_budget_enter(pool->places, task->owner) == WLBD_BUDGET_TAKEN;
	if (has_place)
		queue_put(&pool->waiting, task);
	pthread_cond_signal(&pool->wake);
	pthread_mutex_unlock(&pool->lock);
	if (!has_place)
		refuse(pool, task);
}
