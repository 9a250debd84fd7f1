#include "coordinator/wlbd/thread_pool.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { TASKS_MAX = 78 };

struct numbered {
	struct wlbd_task task;
	int number;
	sem_t *begun, *may_end; /* NULL: it ends at once */
	pthread_t ran_on;
};

/* The numbers of the tasks in the order of their ends; negative for those that were discarded. */
static int ended[TASKS_MAX];
static int ended_count;

static void run(struct wlbd_task *task)
{
	struct numbered *numbered = (struct numbered *)task;
	numbered->ran_on = pthread_self();
	if (numbered->begun != NULL)
		sem_post(numbered->begun);
	if (numbered->may_end != NULL)
		sem_wait(numbered->may_end);
}

static void note(int number)
{
	assert_true(ended_count < TASKS_MAX);
	ended[ended_count++] = number;
}

static void done(struct wlbd_task *task)
{
	note(((struct numbered *)task)->number);
}

static void discard(struct wlbd_task *task)
{
	note(-((struct numbered *)task)->number);
}

static struct numbered numbered(int number)
{
	return (struct numbered){.task = {.run = run, .done = done, .discard = discard}, .number = number};
}

static struct numbered numbered_of(int number, uid_t owner, sem_t *begun, sem_t *may_end)
{
	struct numbered task = numbered(number);
	task.task.owner = owner;
	task.begun = begun;
	task.may_end = may_end;
	return task;
}

static struct wlbd_thread_pool *begin(struct event_base **base, int threads, int most)
{
	struct wlb_error error = {0};
	ended_count = 0;
	*base = event_base_new();
	struct wlbd_thread_pool *pool = wlbd_thread_pool_new(*base, "test", threads, most, &error);
	assert_non_null(pool);
	return pool;
}

static void one_thread_runs_tasks_in_order(void **state)
{
	struct event_base *base;
	struct wlbd_thread_pool *pool = begin(&base, 1, TASKS_MAX);
	struct numbered tasks[5];
	(void)state;
	for (int i = 0; i < 5; i++) {
		tasks[i] = numbered(i + 1);
		wlbd_thread_pool_submit(pool, &tasks[i].task);
	}
	while (ended_count < 5)
		event_base_loop(base, EVLOOP_ONCE);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(ended[i], i + 1);
		assert_false(pthread_equal(tasks[i].ran_on, pthread_self()));
	}
	wlbd_thread_pool_free(pool);
	assert_int_equal(ended_count, 5);
	event_base_free(base);
}

/* One task runs, two wait, and the fourth is refused at once. */
static void tasks_beyond_the_bound_are_refused(void **state)
{
	struct event_base *base;
	struct wlbd_thread_pool *pool = begin(&base, 1, 2);
	struct numbered tasks[4];
	sem_t begun, may_end;
	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	for (int i = 0; i < 4; i++) {
		tasks[i] = numbered(i + 1);
		if (i == 0)
			tasks[i].begun = &begun, tasks[i].may_end = &may_end;
		wlbd_thread_pool_submit(pool, &tasks[i].task);
		if (i == 0)
			sem_wait(&begun);
	}
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended[0], -4);
	sem_post(&may_end);
	while (ended_count < 4)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(ended[3], 3);
	wlbd_thread_pool_free(pool);
	event_base_free(base);
}

/* One task runs, and 64 may wait: 49 of one owner, which leaves an eighth of what is not reserved, of that half for the
 * next, and all that is left for owner 0. */
static void owners_leave_places_to_others(void **state)
{
	static const struct {
		uid_t owner;
		int tasks, accepted;
	} owners[] = {{1, 60, 49}, {2, 4, 3}, {0, 13, 12}};
	struct event_base *base;
	struct wlbd_thread_pool *pool = begin(&base, 1, 64);
	static struct numbered tasks[TASKS_MAX];
	sem_t begun, may_end;
	int count = 1;
	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	tasks[0] = numbered_of(1, 9, &begun, &may_end);
	wlbd_thread_pool_submit(pool, &tasks[0].task);
	sem_wait(&begun);
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		int first = count, before = ended_count;
		for (; count < first + owners[i].tasks; count++) {
			tasks[count] = numbered_of(count + 1, owners[i].owner, NULL, NULL);
			wlbd_thread_pool_submit(pool, &tasks[count].task);
		}
		assert_int_equal(ended_count - before, owners[i].tasks - owners[i].accepted);
		assert_int_equal(ended[ended_count - 1], -count); /* the newest was refused */
	}
	sem_post(&may_end);
	while (ended_count < count)
		event_base_loop(base, EVLOOP_ONCE);
	wlbd_thread_pool_free(pool);
	event_base_free(base);
}

static void *let_it_end(void *may_end)
{
	sem_post(may_end);
	return NULL;
}

/* The task that runs is waited for, and those that wait are discarded: of each task one function is called. */
static void freeing_ends_every_task(void **state)
{
	struct event_base *base;
	struct wlbd_thread_pool *pool = begin(&base, 1, TASKS_MAX);
	struct numbered tasks[3];
	sem_t begun, may_end;
	pthread_t other;
	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	for (int i = 0; i < 3; i++) {
		tasks[i] = numbered(i + 1);
		/* The second waits too, should the thread take it before the pool is stopping. */
		tasks[i].begun = &begun, tasks[i].may_end = &may_end;
		wlbd_thread_pool_submit(pool, &tasks[i].task);
	}
	sem_wait(&begun);
	sem_post(&may_end);
	sem_post(&may_end);
	pthread_create(&other, NULL, let_it_end, &may_end);
	wlbd_thread_pool_free(pool);
	pthread_join(other, NULL);
	assert_int_equal(ended_count, 3);
	for (int i = 0; i < 3; i++)
		assert_true(ended[i] == i + 1 || ended[i] == -(i + 1));
	assert_int_equal(ended[0], 1);
	event_base_free(base);
}

/* Of three threads one owner's tasks, which hang, have two: another's task runs at once. */
static void an_owner_never_has_all_threads(void **state)
{
	struct event_base *base;
	struct wlbd_thread_pool *pool = begin(&base, 3, TASKS_MAX);
	struct numbered tasks[5], other = numbered_of(9, 2, NULL, NULL);
	sem_t begun, may_end;
	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	for (int i = 0; i < 5; i++) {
		tasks[i] = numbered_of(i + 1, 1, &begun, &may_end);
		wlbd_thread_pool_submit(pool, &tasks[i].task);
	}
	sem_wait(&begun);
	sem_wait(&begun);
	wlbd_thread_pool_submit(pool, &other.task);
	while (ended_count < 1)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(ended[0], 9);
	assert_int_not_equal(sem_trywait(&begun), 0);
	for (int i = 0; i < 5; i++)
		sem_post(&may_end);
	while (ended_count < 6)
		event_base_loop(base, EVLOOP_ONCE);
	wlbd_thread_pool_free(pool);
	event_base_free(base);
}

/* Each of two threads is held; when one is free, the next task is that of the owner who has none that runs, then the
 * oldest of those that may run. Tasks of owner 0 wait for no turn. */
static void the_next_task_is_of_who_has_fewest(void **state)
{
	struct event_base *base;
	struct wlbd_thread_pool *pool = begin(&base, 2, TASKS_MAX);
	sem_t begun, first_may_end, second_may_end, third_may_end;
	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&first_may_end, 0, 0);
	sem_init(&second_may_end, 0, 0);
	sem_init(&third_may_end, 0, 0);
	struct numbered tasks[] = {
		numbered_of(1, 1, &begun, &first_may_end),
		numbered_of(2, 2, &begun, &second_may_end),
		numbered_of(3, 1, NULL, NULL),
		numbered_of(4, 1, NULL, NULL),
		numbered_of(5, 3, NULL, NULL),
		numbered_of(6, 0, NULL, NULL),
		numbered_of(7, 0, &begun, &third_may_end),
	};
	for (int i = 0; i < 7; i++)
		wlbd_thread_pool_submit(pool, &tasks[i].task);
	sem_wait(&begun);
	sem_wait(&begun);
	sem_post(&second_may_end);
	sem_wait(&begun); /* the thread is held again, by the seventh */
	sem_post(&first_may_end);
	sem_post(&third_may_end);
	while (ended_count < 7)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(ended[0], 2);
	assert_int_equal(ended[1], 5);
	assert_int_equal(ended[2], 6);
	wlbd_thread_pool_free(pool);
	event_base_free(base);
}

static sem_t discarded;

static void discard_on_the_thread(struct wlbd_task *task)
{
	discard(task);
	sem_post(&discarded);
}

/* The task that runs is not waited for: it is discarded when it ends, after those that wait. */
static void abandoning_waits_for_no_task(void **state)
{
	struct event_base *base;
	struct wlbd_thread_pool *pool = begin(&base, 1, TASKS_MAX);
	struct numbered tasks[2];
	sem_t begun, may_end;
	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	sem_init(&discarded, 0, 0);
	for (int i = 0; i < 2; i++) {
		tasks[i] = numbered(i + 1);
		tasks[i].begun = &begun, tasks[i].may_end = &may_end;
		tasks[i].task.discard = discard_on_the_thread;
		wlbd_thread_pool_submit(pool, &tasks[i].task);
	}
	sem_wait(&begun);
	wlbd_thread_pool_abandon(pool);
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended[0], -2);
	event_base_free(base);
	sem_wait(&discarded);
	sem_post(&may_end);
	sem_wait(&discarded);
	assert_int_equal(ended_count, 2);
	assert_int_equal(ended[1], -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_runs_tasks_in_order),
		cmocka_unit_test(tasks_beyond_the_bound_are_refused),
		cmocka_unit_test(owners_leave_places_to_others),
		cmocka_unit_test(freeing_ends_every_task),
		cmocka_unit_test(abandoning_waits_for_no_task),
		cmocka_unit_test(an_owner_never_has_all_threads),
		cmocka_unit_test(the_next_task_is_of_who_has_fewest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
