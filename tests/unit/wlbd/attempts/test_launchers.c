#include "coordinator/wlbd/attempts/launchers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
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
	TAILQ_INIT(&f->attempt.reporters.list);
	TAILQ_INSERT_TAIL(&f->attempts.list, &f->attempt, link);
	TAILQ_INSERT_TAIL(&f->attempt.reporters.list, &f->launcher, link);
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
	TAILQ_INIT(&earlier.reporters.list);
	TAILQ_INSERT_TAIL(&earlier.reporters.list, &ended, link);
	TAILQ_INSERT_HEAD(&f.attempts.list, &earlier, link);
	assert_true(has(&f));
	wlbd_launchers_free(f.wlbd.launchers);
}

static void a_launcher_that_asks_for_an_attempt(void **state)
{
	struct fixture f = {0};
	(void)state;
	begin(&f)->launcher.goodbye = true;
	for (int i = 0; i < 3; i++)
		wlbd_launchers_note_request(f.wlbd.launchers, JOB, USER);
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
	wlbd_launchers_note_request(f.wlbd.launchers, JOB, USER);
	for (int i = 1; i <= 4096; i++)
		wlbd_launchers_note_request(f.wlbd.launchers, JOB + i, USER);
	assert_false(has(&f));
	assert_true(wlbd_launchers_has(&f.wlbd, JOB + 1, USER));
	wlbd_launchers_free(f.wlbd.launchers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launcher_that_reports),
		cmocka_unit_test(any_run_of_the_job_counts),
		cmocka_unit_test(a_launcher_that_asks_for_an_attempt),
		cmocka_unit_test(only_the_newest_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
