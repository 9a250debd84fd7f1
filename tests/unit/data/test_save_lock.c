/* The lock of the run that saves into a directory. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/seconds.h"
#include "tests/unit/data/fixture.h"
#include "worker/checkpoint/save_lock.h"

static const struct wlb_save_claim first = {.run = "12", .node = "n1", .follows = 1};
static const struct wlb_save_claim of_same_run = {
	.run = "12", .node = "n2", .follows = 1, .former_s = 0.3, .other_s = 60.0};
static const struct wlb_save_claim of_other_run = {
	.run = "13", .node = "n2", .follows = 1, .former_s = 60.0, .other_s = 0.3};

static void take(void **state, struct wlb_save_lock *lock, const struct wlb_save_claim *claim)
{
	struct wlb_error error;
	if (wlb_save_lock_take(lock, *state, claim, &error) < 0)
		fail_msg("%s", error.message);
}

static void test_other_run_is_refused(void **state)
{
	struct wlb_save_lock a, b;
	struct wlb_error error;
	take(state, &a, &first);
	assert_true(wlb_save_lock_is_held(&a));
	assert_int_equal(wlb_save_lock_take(&b, *state, &of_other_run, &error), -1);
	assert_says(error.message, ": run 12 on n1, process ");
	assert_says(error.message, "end that run or give another directory");
	assert_false(wlb_save_lock_is_held(&b));
	wlb_save_lock_release(&b);
	assert_true(fixture_exists(fixture_path(state, ".lock")));
	wlb_save_lock_release(&a);
	assert_int_equal(fixture_entries(*state), 0);
	take(state, &b, &of_other_run);
	assert_true(wlb_save_lock_is_held(&b));
	wlb_save_lock_release(&b);
}

/* An attempt follows one that is over, whose rank 0 may hang on a node that is lost: it goes on without the lock, and
 * has it when that one has ended. */
static void test_next_attempt_goes_on(void **state)
{
	struct wlb_save_lock a, b;
	take(state, &a, &first);
	take(state, &b, &of_same_run);
	assert_false(wlb_save_lock_is_held(&b));
	wlb_save_lock_release(&b);
	assert_true(fixture_exists(fixture_path(state, ".lock")));
	wlb_save_lock_release(&a);
	assert_true(wlb_save_lock_is_held(&b));
	wlb_save_lock_release(&b);
}

/* A plain srun in the job has the run's name and no coordinator that knows whether another one has ended. */
static void test_same_name_without_a_coordinator(void **state)
{
	struct wlb_save_claim plain = of_other_run;
	struct wlb_save_lock a, b;
	struct wlb_error error;
	plain.run = first.run;
	plain.follows = 0;
	take(state, &a, &first);
	assert_int_equal(wlb_save_lock_take(&b, *state, &plain, &error), -1);
	plain.run = NULL;
	assert_int_equal(wlb_save_lock_take(&b, *state, &plain, &error), -1);
	wlb_save_lock_release(&a);
}

/* Rank 0 of the former attempt is still ending when the next begins: the lock is waited for. */
static void test_owner_that_is_killed(void **state)
{
	struct wlb_save_claim waits = of_other_run;
	struct wlb_save_lock lock;
	int ends[2];
	char ready;
	waits.other_s = 60.0;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		take(state, &lock, &first);
		if (write(ends[1], "r", 1) != 1)
			_exit(1);
		usleep(500000);
		raise(SIGKILL);
	}
	assert_int_equal(read(ends[0], &ready, 1), 1);
	double began_s = wlb_now_s();
	take(state, &lock, &waits);
	assert_true(wlb_now_s() - began_s > 0.2);
	assert_true(wlb_save_lock_is_held(&lock));
	assert_int_equal(waitpid(child, NULL, 0), child);
	wlb_save_lock_release(&lock);
	close(ends[0]);
	close(ends[1]);
}

/* A file that cannot be made is one of a file system that has no locks: a line is printed, and the run goes on. */
static void test_without_locks(void **state)
{
	struct wlb_save_lock lock;
	assert_int_equal(symlink("elsewhere", fixture_path(state, ".lock")), 0);
	take(state, &lock, &first);
	assert_false(wlb_save_lock_is_held(&lock));
	wlb_save_lock_release(&lock);
}

/* It learns who has the lock, also without taking it. */
static void test_a_program_does_not_wait(void **state)
{
	struct wlb_save_lock run, program;
	char owner[512];
	assert_false(wlb_save_lock_find_owner(*state, owner));
	assert_int_equal(fixture_entries(*state), 0);
	take(state, &run, &first);
	assert_true(wlb_save_lock_find_owner(*state, owner));
	assert_says(owner, "run 12 on n1, process ");
	owner[0] = '\0';
	assert_int_equal(wlb_save_lock_try(&program, *state, "a program", "n2", owner), EWOULDBLOCK);
	assert_says(owner, "run 12 on n1, process ");
	wlb_save_lock_release(&program);
	assert_true(wlb_save_lock_is_held(&run));
	wlb_save_lock_release(&run);
	assert_int_equal(wlb_save_lock_try(&program, *state, "a program", "n2", owner), 0);
	assert_true(wlb_save_lock_find_owner(*state, owner));
	assert_says(owner, "a program on n2, process ");
	wlb_save_lock_release(&program);
	assert_int_equal(fixture_entries(*state), 0);
	assert_int_equal(symlink("elsewhere", fixture_path(state, ".lock")), 0);
	assert_int_equal(wlb_save_lock_try(&program, *state, "a program", "n2", owner), ELOOP);
	assert_false(wlb_save_lock_find_owner(*state, owner));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_other_run_is_refused, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_next_attempt_goes_on, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_same_name_without_a_coordinator, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_owner_that_is_killed, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_without_locks, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_program_does_not_wait, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("save_lock", tests, NULL, NULL);
}
