#include "coordinator/wlbd/liveness/job_poll.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SHORT_MS = 50, LONG_MS = 600000, SOON_MS = 1000, SLACK_MS = 400 };

struct fixture {
	struct event_base *base;
	struct wlbd_job_poll *poll;
	int calls;
};

static void count(void *context)
{
	((struct fixture *)context)->calls++;
}

static struct fixture *begin(struct fixture *f, int interval_ms)
{
	*f = (struct fixture){.base = event_base_new()};
	f->poll = wlbd_job_poll_new(f->base, interval_ms, count, f);
	assert_non_null(f->poll);
	return f;
}

static void end(struct fixture *f)
{
	wlbd_job_poll_free(f->poll);
	event_base_free(f->base);
}

static void run_for(struct fixture *f, int ms)
{
	struct timeval limit = {ms / 1000, ms % 1000 * 1000};
	event_base_loopexit(f->base, &limit);
	event_base_dispatch(f->base);
}

static void a_poll_waits_for_the_one_before(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, SHORT_MS);
	run_for(&f, SHORT_MS + SLACK_MS);
	assert_int_equal(f.calls, 1);
	wlbd_job_poll_soon(f.poll); /* it is under way: no second one beside it */
	run_for(&f, SOON_MS + SLACK_MS);
	assert_int_equal(f.calls, 1);
	end(&f);
}

static void the_next_poll_comes_after_the_interval(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, SHORT_MS);
	run_for(&f, SHORT_MS + SLACK_MS);
	wlbd_job_poll_done(f.poll);
	assert_int_equal(f.calls, 1);
	run_for(&f, SHORT_MS + SLACK_MS);
	assert_int_equal(f.calls, 2);
	end(&f);
}

static void an_interval_that_is_shorter_stays(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, SHORT_MS);
	run_for(&f, SHORT_MS + SLACK_MS);
	wlbd_job_poll_done(f.poll);
	wlbd_job_poll_soon(f.poll);
	run_for(&f, SHORT_MS + SLACK_MS);
	assert_int_equal(f.calls, 2);
	wlbd_job_poll_done(f.poll);
	run_for(&f, SHORT_MS + SLACK_MS);
	assert_int_equal(f.calls, 3);
	end(&f);
}

static void something_that_happened_is_looked_at_within_a_second(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, LONG_MS);
	run_for(&f, SLACK_MS);
	assert_int_equal(f.calls, 0);
	wlbd_job_poll_soon(f.poll);
	run_for(&f, SOON_MS - SLACK_MS);
	assert_int_equal(f.calls, 0);
	run_for(&f, 2 * SLACK_MS);
	assert_int_equal(f.calls, 1);
	wlbd_job_poll_done(f.poll); /* and again, for half a minute */
	run_for(&f, SOON_MS + SLACK_MS);
	assert_int_equal(f.calls, 2);
	end(&f);
}

/* Things that happen again and again do not postpone it. */
static void a_poll_that_is_due_sooner_is_not_postponed(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, LONG_MS);
	for (int i = 0; i < 4; i++) {
		wlbd_job_poll_soon(f.poll);
		run_for(&f, SOON_MS / 2 - SLACK_MS / 4);
	}
	assert_int_equal(f.calls, 1);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_waits_for_the_one_before),
		cmocka_unit_test(the_next_poll_comes_after_the_interval),
		cmocka_unit_test(an_interval_that_is_shorter_stays),
		cmocka_unit_test(a_poll_that_is_due_sooner_is_not_postponed),
		cmocka_unit_test(something_that_happened_is_looked_at_within_a_second),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
