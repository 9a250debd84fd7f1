#include "coordinator/wlb/delivery/folder_lock.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const int day_s = 86400;

static char dir[] = "/tmp/wlb-lock-XXXXXX";
static char path[64];

static bool is_left(int64_t waited_ms, bool is_last)
{
	const struct wlb_folder_waiter waiter = {.waited_ms = waited_ms, .wait_s = day_s, .is_last = is_last};
	struct wlb_folder_lock lock = WLB_FOLDER_UNLOCKED;
	bool is_left = wlb_folder_lock_is_left(dir, &waiter, &lock);
	wlb_folder_unlock(dir, &lock);
	return is_left;
}

static void one_flush_has_a_folder(void **state)
{
	struct wlb_folder_lock first = WLB_FOLDER_UNLOCKED, second = WLB_FOLDER_UNLOCKED;
	(void)state;
	assert_true(wlb_folder_lock(dir, time(NULL) + 60, &first));
	assert_true(first.fd >= 0);
	assert_false(wlb_folder_lock(dir, time(NULL) + 60, &second));
	assert_int_equal(second.fd, -1);
	wlb_folder_unlock(dir, &first);
	assert_int_equal(first.fd, -1);
	assert_int_equal(access(path, F_OK), -1);
	assert_true(wlb_folder_lock(dir, time(NULL) + 60, &second));
	wlb_folder_unlock(dir, &second);
}

/* A user's own flush may leave the folder to any other. */
static void the_last_flush_waits_for_a_short_one(void **state)
{
	struct wlb_folder_lock other = WLB_FOLDER_UNLOCKED;
	(void)state;
	assert_true(wlb_folder_lock(dir, time(NULL) + 60, &other));
	assert_false(is_left(9000, false));
	assert_true(is_left(11000, false));
	assert_false(is_left(11000, true));
	assert_false(is_left(3600 * 1000, true));
	wlb_folder_unlock(dir, &other);
}

static void the_last_flush_leaves_the_folder_to_a_long_one(void **state)
{
	struct wlb_folder_lock other = WLB_FOLDER_UNLOCKED;
	(void)state;
	assert_true(wlb_folder_lock(dir, time(NULL) + day_s, &other));
	assert_false(is_left(9000, true));
	assert_true(is_left(11000, true));
	wlb_folder_unlock(dir, &other);
	assert_true(wlb_folder_lock(dir, time(NULL) + day_s / 2 - 60, &other)); /* its day is half over */
	assert_false(is_left(11000, true));
	wlb_folder_unlock(dir, &other);
}

/* A cluster ends many jobs while the coordinator is unavailable. */
static void one_flush_waits_for_the_folder(void **state)
{
	const struct wlb_folder_waiter waiter = {.waited_ms = 11000, .wait_s = day_s, .is_last = true};
	struct wlb_folder_lock other = WLB_FOLDER_UNLOCKED, waits = WLB_FOLDER_UNLOCKED;
	(void)state;
	assert_true(wlb_folder_lock(dir, time(NULL) + 60, &other));
	assert_false(wlb_folder_lock_is_left(dir, &waiter, &waits));
	assert_false(wlb_folder_lock_is_left(dir, &waiter, &waits));
	assert_true(is_left(11000, true));
	wlb_folder_unlock(dir, &other);
	assert_true(wlb_folder_lock(dir, time(NULL) + 60, &waits)); /* and another may wait for it */
	assert_false(is_left(11000, true));
	wlb_folder_unlock(dir, &waits);
}

/* It has found that it only waits for a spool that is in use. */
static void the_last_flush_waits_for_one_that_ends_earlier(void **state)
{
	struct wlb_folder_lock other = WLB_FOLDER_UNLOCKED;
	(void)state;
	wlb_folder_lock_set_until(&other, 1); /* has no effect without a lock */
	assert_true(wlb_folder_lock(dir, time(NULL) + day_s, &other));
	wlb_folder_lock_set_until(&other, time(NULL) + 30);
	assert_false(is_left(11000, true));
	wlb_folder_lock_set_until(&other, time(NULL) + day_s);
	assert_true(is_left(11000, true));
	wlb_folder_unlock(dir, &other);
}

/* A flush of an earlier release writes nothing into the file. */
static void the_last_flush_waits_for_one_that_does_not_say(void **state)
{
	struct wlb_folder_lock other = WLB_FOLDER_UNLOCKED;
	(void)state;
	assert_true(wlb_folder_lock(dir, time(NULL) + day_s, &other));
	assert_int_equal(ftruncate(other.fd, 0), 0);
	assert_false(is_left(11000, true));
	wlb_folder_unlock(dir, &other);
}

/* Runs in a child with a file system of its own, which has an inode for its root alone. Returns 0 when all was well, 77
 * when it may not mount one. */
static int lock_on_full_disk(void)
{
	struct wlb_folder_lock lock = WLB_FOLDER_UNLOCKED;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "nr_inodes=1") < 0)
		return 77;
	bool is_locked = wlb_folder_lock(dir, time(NULL) + 60, &lock);
	wlb_folder_unlock(dir, &lock);
	return is_locked && lock.fd == -1 ? 0 : 1;
}

static void a_full_disk_is_delivered_without_a_lock(void **state)
{
	int status;
	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(lock_on_full_disk());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* not root, or not allowed to mount */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/flush.lock", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_flush_has_a_folder),
		cmocka_unit_test(the_last_flush_waits_for_a_short_one),
		cmocka_unit_test(the_last_flush_leaves_the_folder_to_a_long_one),
		cmocka_unit_test(the_last_flush_waits_for_one_that_does_not_say),
		cmocka_unit_test(the_last_flush_waits_for_one_that_ends_earlier),
		cmocka_unit_test(one_flush_waits_for_the_folder),
		cmocka_unit_test(a_full_disk_is_delivered_without_a_lock),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
