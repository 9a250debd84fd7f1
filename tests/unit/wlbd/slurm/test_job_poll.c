#include "coordinator/wlbd/slurm/job_poll.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SHORT_MS = 50, LONG_MS = 600000, SOON_MS = 1000, SLACK_MS = 400, JOB = 12, JOBS = 100 };

struct fixture {
	struct event_base *base;
	struct wlbd_job_poll *poll;
	int calls;
	int job_questions, node_questions; /* of ask_slurm */
};

static void count(void *context)
{
	((struct fixture *)context)->calls++;
}

/* As jobs.c does, of JOBS jobs. */
static void ask_slurm(void *context)
{
	struct fixture *f = context;
	for (uint32_t job_id = 1; job_id <= JOBS; job_id++)
		f->job_questions += wlbd_job_poll_has(f->poll, job_id);
	f->node_questions += wlbd_job_poll_has_nodes(f->poll);
	f->calls++;
	wlbd_job_poll_done(f->poll);
}

static void begin_with(struct fixture *f, int interval_ms, void (*poll)(void *context))
{
	*f = (struct fixture){.base = event_base_new()};
	f->poll = wlbd_job_poll_new(f->base, interval_ms, poll, f);
	assert_non_null(f->poll);
}

static void begin(struct fixture *f, int interval_ms)
{
	begin_with(f, interval_ms, count);
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
	wlbd_job_poll_soon(f.poll, JOB, false); /* it is under way: no second one beside it */
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
	wlbd_job_poll_soon(f.poll, JOB, false);
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
	wlbd_job_poll_soon(f.poll, JOB, false);
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
		wlbd_job_poll_soon(f.poll, JOB, false);
		run_for(&f, SOON_MS / 2 - SLACK_MS / 4);
	}
	assert_int_equal(f.calls, 1);
	end(&f);
}

static void only_what_something_happened_to_is_asked_for_each_second(void **state)
{
	struct fixture f;
	(void)state;
	for (int with_nodes = 0; with_nodes < 2; with_nodes++) {
		begin_with(&f, LONG_MS, ask_slurm);
		wlbd_job_poll_soon(f.poll, JOB, with_nodes);
		run_for(&f, 5 * SOON_MS / 2);
		assert_int_equal(f.calls, 2);
		assert_int_equal(f.job_questions, f.calls);
		assert_int_equal(f.node_questions, with_nodes ? f.calls : 0);
		end(&f);
	}
}

/* Whatever happens to one of them. */
static void all_are_asked_for_after_the_interval(void **state)
{
	struct fixture f;
	(void)state;
	begin_with(&f, 2 * SOON_MS + SLACK_MS, ask_slurm);
	wlbd_job_poll_soon(f.poll, JOB, false);
	run_for(&f, 2 * SOON_MS + 2 * SLACK_MS);
	assert_int_equal(f.calls, 3);
	assert_int_equal(f.job_questions, 2 + JOBS);
	assert_int_equal(f.node_questions, 1);
	end(&f);
}

static void all_can_be_asked_for_at_once(void **state)
{
	struct fixture f;
	(void)state;
	begin_with(&f, LONG_MS, ask_slurm);
	wlbd_job_poll_all(f.poll);
	run_for(&f, SOON_MS / 2);
	wlbd_job_poll_all(f.poll);
	run_for(&f, SOON_MS / 2 + SLACK_MS);
	assert_int_equal(f.job_questions, JOBS);
	run_for(&f, 3 * SOON_MS / 2);
	assert_int_equal(f.job_questions, JOBS); /* and once */
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_waits_for_the_one_before),
		cmocka_unit_test(the_next_poll_comes_after_the_interval),
		cmocka_unit_test(an_interval_that_is_shorter_stays),
		cmocka_unit_test(a_poll_that_is_due_sooner_is_not_postponed),
		cmocka_unit_test(only_what_something_happened_to_is_asked_for_each_second),
		cmocka_unit_test(all_are_asked_for_after_the_interval),
		cmocka_unit_test(all_can_be_asked_for_at_once),
		cmocka_unit_test(something_that_happened_is_looked_at_within_a_second),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
