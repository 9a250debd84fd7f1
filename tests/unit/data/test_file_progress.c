/* A call on a file that takes too long is seen by another thread, one after the other is not. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/seconds.h"
#include "worker/data/file_thread.h"

static void only_a_call_under_way_takes_too_long(void **state)
{
	struct wlb_file_progress progress;
	struct wlb_error error = {0};
	wlb_file_report("reading", "nowhere"); /* no progress is used: nothing happens */
	wlb_file_progress_init(&progress);
	wlb_file_progress_use(&progress);
	assert_int_equal(wlb_file_progress_check(&progress, 0.0, &error), 0);
	wlb_file_report("reading", "some/file");
	assert_int_equal(wlb_file_progress_check(&progress, 50.0, &error), 0);
	progress.reported_s -= 100.0;
	assert_int_equal(wlb_file_progress_check(&progress, 50.0, &error), -1);
	assert_non_null(strstr(error.message, "some/file: reading has made no progress for 100."));
	assert_non_null(strstr(error.message, " s, more than --storage-timeout-minutes 0.833333: "));
	wlb_file_report("reading", "some/file"); /* the next call begins: that is progress */
	assert_int_equal(wlb_file_progress_check(&progress, 50.0, &error), 0);
	progress.reported_s -= 100.0;
	wlb_file_report_end();
	progress.reported_s -= 100.0;
	assert_int_equal(wlb_file_progress_check(&progress, 50.0, &error), 0);
	wlb_file_progress_use(NULL);
	wlb_file_progress_destroy(&progress);
	(void)state;
}

static void calls_that_read_are_timed(void **state)
{
	struct wlb_file_progress progress;
	wlb_file_read_begins(); /* no progress is used: nothing happens */
	wlb_file_read_ends();
	wlb_file_progress_init(&progress);
	wlb_file_progress_use(&progress);
	assert_true(wlb_file_progress_read_s(&progress) == 0.0);
	wlb_file_read_begins();
	progress.reading_s -= 100.0;
	double read_s = wlb_file_progress_read_s(&progress);
	assert_true(read_s >= 100.0 && read_s < 110.0);
	wlb_file_read_ends();
	read_s = wlb_file_progress_read_s(&progress);
	assert_true(read_s >= 100.0 && read_s == wlb_file_progress_read_s(&progress));
	wlb_file_read_begins();
	progress.reading_s -= 50.0;
	wlb_file_read_ends();
	assert_true(wlb_file_progress_read_s(&progress) >= read_s + 50.0);
	wlb_file_progress_use(NULL);
	wlb_file_progress_destroy(&progress);
	(void)state;
}

static void a_path_is_cut_not_overrun(void **state)
{
	struct wlb_file_progress progress;
	struct wlb_error error = {0};
	char path[5000];
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	wlb_file_progress_init(&progress);
	wlb_file_progress_use(&progress);
	wlb_file_report("writing", path);
	progress.reported_s -= 100.0;
	assert_int_equal(wlb_file_progress_check(&progress, 50.0, &error), -1);
	assert_non_null(strstr(error.message, "x: writing has"));
	wlb_file_progress_use(NULL);
	wlb_file_progress_destroy(&progress);
	(void)state;
}

struct gate {
	atomic_int may_end;
	sigset_t blocked;
};

static void wait_at_gate(void *argument)
{
	struct gate *gate = argument;
	pthread_sigmask(SIG_SETMASK, NULL, &gate->blocked);
	wlb_file_report("syncing", "gate");
	while (!atomic_load(&gate->may_end))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void a_thread_reports_until_it_is_joined(void **state)
{
	struct wlb_file_thread thread;
	struct wlb_error error = {0};
	struct gate gate = {0};
	assert_int_equal(wlb_file_thread_start(&thread, "the test", wait_at_gate, &gate, &error), 0);
	double began_s = wlb_now_s();
	assert_int_equal(wlb_file_thread_join_within(&thread, 0.1), 0);
	assert_true(wlb_now_s() - began_s >= 0.1);
	assert_int_equal(wlb_file_progress_check(&thread.progress, 0.01, &error), -1);
	assert_non_null(strstr(error.message, "gate: syncing has"));
	atomic_store(&gate.may_end, 1);
	assert_int_equal(wlb_file_thread_join_within(&thread, 60.0), 1);
	assert_true(sigismember(&gate.blocked, SIGTERM) && sigismember(&gate.blocked, SIGUSR1));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_call_under_way_takes_too_long),
		cmocka_unit_test(calls_that_read_are_timed),
		cmocka_unit_test(a_path_is_cut_not_overrun),
		cmocka_unit_test(a_thread_reports_until_it_is_joined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
