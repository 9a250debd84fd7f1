#include "coordinator/wlbd/liveness/launchers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/wlbd/liveness/attempts.h"
#include "coordinator/wlbd/wlbd.h"

enum { JOB = 12, RUN = 7, USER = 1000, SILENCE_MS = 10000 };

struct fixture {
	struct wlbd wlbd;
	struct wlbd_attempts attempts;
	struct wlbd_attempt attempt;
	struct wlbd_reporter launcher;
	char connection; /* only its address is used */
};

static struct fixture *begin(struct fixture *f)
{
	wlbd_launchers_free(f->wlbd.launchers); /* of the one before */
	memset(f, 0, sizeof(*f));
	TAILQ_INIT(&f->attempts.list);
	TAILQ_INIT(&f->attempt.reporters);
	TAILQ_INSERT_TAIL(&f->attempts.list, &f->attempt, link);
	TAILQ_INSERT_TAIL(&f->attempt.reporters, &f->launcher, link);
	f->wlbd.attempts = &f->attempts;
	f->wlbd.config.silence_ms = SILENCE_MS;
	f->wlbd.launchers = wlbd_launchers_new();
	f->attempt.wlbd = &f->wlbd;
	f->attempt.run_pk = RUN;
	f->attempt.job_id = JOB;
	f->attempt.uid = USER;
	f->launcher = (struct wlbd_reporter){.link = f->launcher.link,
	                                     .attempt = &f->attempt,
	                                     .rank = WLBD_LAUNCHER,
	                                     .connection = (struct wlbd_connection *)&f->connection,
	                                     .reported_ms = wlb_clock_ms()};
	return f;
}

static bool has(struct fixture *f)
{
	return wlbd_launchers_has(&f->wlbd, JOB, USER);
}

static void a_launcher_that_reports(void **state)
{
	struct fixture f = {0};
	(void)state;
	begin(&f);
	assert_true(has(&f));
	assert_false(wlbd_launchers_has(&f.wlbd, JOB + 1, USER));
	assert_false(wlbd_launchers_has(&f.wlbd, JOB, USER + 1)); /* who claims the job of another user */
	f.launcher.reported_ms -= SILENCE_MS;                     /* its node may be frozen */
	assert_false(has(&f));
	begin(&f)->launcher.connection = NULL;
	assert_false(has(&f));
	begin(&f)->launcher.goodbye = true;
	assert_false(has(&f));
	begin(&f)->launcher.rank = 0; /* a rank of the run is no launcher */
	assert_false(has(&f));
	wlbd_launchers_free(f.wlbd.launchers);
}

static void any_run_of_the_job_counts(void **state)
{
	struct fixture f = {0};
	struct wlbd_reporter ended;
	struct wlbd_attempt earlier;
	(void)state;
	begin(&f);
	earlier = (struct wlbd_attempt){.wlbd = &f.wlbd, .run_pk = RUN - 1, .job_id = JOB, .uid = USER};
	ended = f.launcher;
	ended.goodbye = true;
	TAILQ_INIT(&earlier.reporters);
	TAILQ_INSERT_TAIL(&earlier.reporters, &ended, link);
	TAILQ_INSERT_HEAD(&f.attempts.list, &earlier, link);
	assert_true(has(&f));
	wlbd_launchers_free(f.wlbd.launchers);
}

static void the_runs_whose_launchers_work(void **state)
{
	struct fixture f = {0};
	char list[WLBD_WORKING_RUNS_BYTES];
	(void)state;
	begin(&f);
	wlbd_launchers_working(&f.wlbd, JOB, list);
	assert_string_equal(list, "{7}");
	wlbd_launchers_working(&f.wlbd, JOB + 1, list);
	assert_string_equal(list, "{}");
	f.launcher.connection = NULL; /* it was killed, after it had asked for an attempt */
	wlbd_launchers_asked(f.wlbd.launchers, JOB, USER);
	wlbd_launchers_working(&f.wlbd, JOB, list);
	assert_string_equal(list, "{}");
	wlbd_launchers_free(f.wlbd.launchers);
}

static void the_list_of_working_runs_is_bounded(void **state)
{
	enum { ATTEMPTS = 200 };
	struct fixture f = {0};
	char list[WLBD_WORKING_RUNS_BYTES];
	struct wlbd_attempt *attempts = calloc(ATTEMPTS, sizeof(*attempts));
	struct wlbd_reporter *launchers = calloc(ATTEMPTS, sizeof(*launchers));
	(void)state;
	begin(&f);
	for (int i = 0; i < ATTEMPTS; i++) {
		attempts[i] = (struct wlbd_attempt){.wlbd = &f.wlbd, .job_id = JOB, .run_pk = INT64_MAX - i};
		launchers[i] = f.launcher;
		TAILQ_INIT(&attempts[i].reporters);
		TAILQ_INSERT_TAIL(&attempts[i].reporters, &launchers[i], link);
		TAILQ_INSERT_TAIL(&f.attempts.list, &attempts[i], link);
	}
	wlbd_launchers_working(&f.wlbd, JOB, list);
	assert_memory_equal(list, "{7,9223372036854775807,", 23);
	assert_in_range(strlen(list), WLBD_WORKING_RUNS_BYTES - 30, WLBD_WORKING_RUNS_BYTES - 1);
	assert_int_equal(list[strlen(list) - 1], '}');
	wlbd_launchers_free(f.wlbd.launchers);
	free(launchers);
	free(attempts);
}

static void a_launcher_that_asks_for_an_attempt(void **state)
{
	struct fixture f = {0};
	(void)state;
	begin(&f)->launcher.goodbye = true;
	for (int i = 0; i < 3; i++)
		wlbd_launchers_asked(f.wlbd.launchers, JOB, USER);
	assert_true(has(&f));
	assert_false(wlbd_launchers_has(&f.wlbd, JOB + 1, USER));
	assert_false(wlbd_launchers_has(&f.wlbd, JOB, USER + 1));
	wlbd_launchers_free(f.wlbd.launchers);
}

static void only_the_newest_are_kept(void **state)
{
	struct fixture f = {0};
	(void)state;
	begin(&f)->launcher.goodbye = true;
	wlbd_launchers_asked(f.wlbd.launchers, JOB, USER);
	for (int i = 1; i <= 4096; i++)
		wlbd_launchers_asked(f.wlbd.launchers, JOB + i, USER);
	assert_false(has(&f));
	assert_true(wlbd_launchers_has(&f.wlbd, JOB + 1, USER));
	wlbd_launchers_free(f.wlbd.launchers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launcher_that_reports),
		cmocka_unit_test(any_run_of_the_job_counts),
		cmocka_unit_test(the_runs_whose_launchers_work),
		cmocka_unit_test(the_list_of_working_runs_is_bounded),
		cmocka_unit_test(a_launcher_that_asks_for_an_attempt),
		cmocka_unit_test(only_the_newest_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
