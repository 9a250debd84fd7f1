/* Calls that a device runs while the host goes on, told by one thread while another looks at them: each is told once
 * and in order, the last one is always seen, and the thread that tells neither locks, allocates nor waits. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "worker/comm/queued.h"

enum { CALLS = 200000, GROUP_RANKS = 2 };

/* A device with one queue, which ends its work when the test says so. */
struct wlb_event {
	atomic_int in_use; /* by a function of the device: one at a time */
	uint64_t at;       /* the work that it is behind; 0: none */
};

static atomic_ullong queued, done;
static atomic_int holds, held; /* event_done waits while `holds` */
static _Thread_local int counts;
static _Thread_local uint64_t locks, allocations;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	locks += (uint64_t)counts;
	return __real_pthread_mutex_lock(mutex);
}

void *__wrap_malloc(size_t bytes)
{
	allocations += (uint64_t)counts;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	allocations += (uint64_t)counts;
	return __real_calloc(count, bytes);
}

static struct wlb_event *event_new(struct wlb_device *device, int timed, struct wlb_error *error)
{
	(void)device;
	(void)timed;
	(void)error;
	return calloc(1, sizeof(struct wlb_event));
}

static void event_free(struct wlb_device *device, struct wlb_event *event)
{
	(void)device;
	free(event);
}

static void event_record(struct wlb_device *device, struct wlb_event *event, struct wlb_queue *queue)
{
	(void)device;
	(void)queue;
	assert_int_equal(atomic_exchange(&event->in_use, 1), 0);
	event->at = atomic_fetch_add(&queued, 1) + 1;
	atomic_store(&event->in_use, 0);
}

static int event_done(struct wlb_device *device, struct wlb_event *event)
{
	(void)device;
	assert_int_equal(atomic_exchange(&event->in_use, 1), 0);
	int has_ended = event->at <= atomic_load(&done);
	atomic_store(&event->in_use, 0);
	while (atomic_load(&holds) && !counts)
		atomic_store(&held, 1);
	return has_ended;
}

static const struct wlb_ops ops = {
	.event_new = event_new, .event_free = event_free, .event_record = event_record, .event_done = event_done};
static const struct wlb_transport transport = {.on_queue = 1};

struct fixture {
	struct wlb_device device;
	struct wlb_comm_trace *trace;
	struct wlb_queued *queued;
	int group;
	uint64_t told;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){.device = {.ops = &ops}, .trace = wlb_comm_trace_new()};
	assert_non_null(f->trace);
	f->group = wlb_rank_trace_add_group(wlb_comm_trace_memory(f->trace), "data", GROUP_RANKS);
	f->queued = wlb_queued_new(f->trace, &f->device, NULL, &transport, NULL, NULL);
	assert_non_null(f->queued);
	atomic_store(&queued, 0);
	atomic_store(&done, 0);
}

static void end(struct fixture *f)
{
	wlb_queued_free(f->queued);
	wlb_comm_trace_free(f->trace);
}

/* The training thread: a call each time. */
static void tell(struct fixture *f)
{
	struct wlb_trace_event call = {
		.kind = WLB_COMM_ALL_GATHER, .group = f->group, .seq = ++f->told, .entered_s = 1.0};
	counts = 1;
	wlb_rank_trace_started(wlb_comm_trace_memory(f->trace), f->group, call.seq);
	wlb_queued_add(f->queued, &call);
	counts = 0;
}

static uint64_t left(const struct fixture *f)
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	wlb_rank_trace_groups(wlb_comm_trace_memory(f->trace), groups);
	return groups[f->group].left;
}

struct looker {
	struct fixture *f;
	atomic_int stops, looks;
	uint64_t last;
};

/* The watchdog, and the device, which ends work in bursts. */
static void *look(void *argument)
{
	struct looker *l = argument;
	uint64_t ticks = 0;
	while (!atomic_load(&l->stops)) {
		struct wlb_trace_event call;
		atomic_store(&l->looks, 1);
		if (++ticks % 7 == 0)
			atomic_store(&done, atomic_load(&queued));
		if (!wlb_comm_trace_waiting(l->f->trace, &call))
			continue;
		assert_true(call.seq >= l->last);
		l->last = call.seq;
	}
	return NULL;
}

static void a_thread_looks_while_another_tells(void **state)
{
	(void)state;
	struct fixture f;
	struct wlb_trace_event call;
	pthread_t thread;
	begin(&f);
	struct looker l = {.f = &f};
	assert_int_equal(pthread_create(&thread, NULL, look, &l), 0);
	while (!atomic_load(&l.looks))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	for (int i = 0; i < CALLS; i++)
		tell(&f);
	atomic_store(&l.stops, 1);
	pthread_join(thread, NULL);
	atomic_store(&done, atomic_load(&queued));
	assert_int_equal(wlb_comm_trace_waiting(f.trace, &call), 0);
	assert_int_equal(left(&f), CALLS);
	assert_int_equal(locks + allocations, 0);
	end(&f);
}

/* The host is further ahead than there are marks: the oldest call is the one that is waited for, and when it ends the
 * newest is. */
static void the_last_call_is_watched(void **state)
{
	(void)state;
	struct fixture f;
	struct wlb_trace_event call;
	begin(&f);
	for (int i = 0; i < 1000; i++)
		tell(&f);
	assert_int_equal(wlb_comm_trace_waiting(f.trace, &call), 1);
	assert_int_equal(call.seq, 1);
	atomic_store(&done, 999);
	assert_int_equal(wlb_comm_trace_waiting(f.trace, &call), 1);
	assert_int_equal(call.seq, 1000);
	tell(&f); /* behind it */
	atomic_store(&done, 1000);
	assert_int_equal(wlb_comm_trace_waiting(f.trace, &call), 1);
	assert_int_equal(call.seq, 1001);
	atomic_store(&done, 1001);
	assert_int_equal(wlb_comm_trace_waiting(f.trace, &call), 0);
	assert_int_equal(left(&f), 1001);
	end(&f);
}

static void *look_once(void *fixture)
{
	struct fixture *f = fixture;
	struct wlb_trace_event call;
	wlb_comm_trace_waiting(f->trace, &call);
	return NULL;
}

/* The thread that looks is stopped in the middle of it, inside the device's function. */
static void a_thread_that_looks_stops_nobody(void **state)
{
	(void)state;
	struct fixture f;
	pthread_t thread;
	begin(&f);
	tell(&f);
	atomic_store(&holds, 1);
	assert_int_equal(pthread_create(&thread, NULL, look_once, &f), 0);
	while (!atomic_load(&held))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	for (int i = 1; i < 1000; i++)
		tell(&f);
	assert_int_equal(f.told, 1000);
	assert_int_equal(atomic_load(&holds), 1);
	atomic_store(&holds, 0);
	pthread_join(thread, NULL);
	atomic_store(&done, atomic_load(&queued));
	look_once(&f);
	assert_int_equal(left(&f), 1000);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_call_is_watched),
		cmocka_unit_test(a_thread_that_looks_stops_nobody),
		cmocka_unit_test(a_thread_looks_while_another_tells),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
