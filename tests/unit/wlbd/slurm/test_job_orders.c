/* Orders that wait for the thread which gives them to Slurm, and that it never gives. */
#include "coordinator/wlbd/slurm/job_orders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/wlbd/thread_pool.h"
#include "coordinator/wlbd/wlbd.h"

enum { JOB = 12, BUSY_MS = 700 };

struct fixture {
	struct wlbd wlbd;
	struct wlbd_task busy;
	int answers;
	char failure[80]; /* of the last answer; "": Slurm has carried the order out */
};

static void be_busy(struct wlbd_task *task)
{
	(void)task;
	wlb_clock_sleep_ms(BUSY_MS);
}

static void ignore(struct wlbd_task *task)
{
	(void)task;
}

static void note(void *context, const char *failure)
{
	struct fixture *f = context;
	f->answers++;
	snprintf(f->failure, sizeof(f->failure), "%s", failure != NULL ? failure : "");
}

static void begin(struct fixture *f, int waiting_most)
{
	memset(f, 0, sizeof(*f));
	f->wlbd.base = event_base_new();
	f->wlbd.slurm_orders = wlbd_thread_pool_new(f->wlbd.base, "orders", 1, waiting_most, NULL);
	f->wlbd.job_orders = wlbd_job_orders_new();
	assert_non_null(f->wlbd.slurm_orders);
	assert_non_null(f->wlbd.job_orders);
}

static void end(struct fixture *f)
{
	wlbd_thread_pool_free(f->wlbd.slurm_orders);
	wlbd_job_orders_free(f->wlbd.job_orders);
	event_base_free(f->wlbd.base);
}

static void one_that_waits_is_under_way(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, 10);
	f.busy = (struct wlbd_task){.run = be_busy, .done = ignore, .discard = ignore};
	wlbd_thread_pool_submit(f.wlbd.slurm_orders, &f.busy);
	wlbd_job_orders_give(&f.wlbd, WLBD_JOB_REQUEUE, JOB, "it is a test", note, &f);
	wlbd_job_orders_give(&f.wlbd, WLBD_JOB_KILL, JOB + 1, "it is a test", NULL, NULL);
	assert_true(wlbd_job_orders_has(f.wlbd.job_orders, JOB));
	assert_true(wlbd_job_orders_has(f.wlbd.job_orders, JOB + 1));
	assert_false(wlbd_job_orders_has(f.wlbd.job_orders, JOB + 2));
	assert_int_equal(f.answers, 0);
	wlbd_thread_pool_free(f.wlbd.slurm_orders); /* discards what waits */
	f.wlbd.slurm_orders = NULL;
	assert_int_equal(f.answers, 1);
	assert_string_equal(f.failure, "not done, because wlbd is stopping or too many orders wait");
	assert_false(wlbd_job_orders_has(f.wlbd.job_orders, JOB));
	assert_false(wlbd_job_orders_has(f.wlbd.job_orders, JOB + 1));
	end(&f);
}

static void one_that_cannot_wait_has_failed(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, 0);
	wlbd_job_orders_give(&f.wlbd, WLBD_JOB_KILL, JOB, "it is a test", note, &f);
	assert_int_equal(f.answers, 1);
	assert_string_equal(f.failure, "not done, because wlbd is stopping or too many orders wait");
	assert_false(wlbd_job_orders_has(f.wlbd.job_orders, JOB));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_waits_is_under_way),
		cmocka_unit_test(one_that_cannot_wait_has_failed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
