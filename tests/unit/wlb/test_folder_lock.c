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
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/wlb-lock-XXXXXX";
static char path[64], last_path[64];

static void one_flush_has_a_folder(void **state)
{
	(void)state;
	for (int is_last = 0; is_last < 2; is_last++) {
		struct wlb_folder_lock first = WLB_FOLDER_UNLOCKED(is_last), second = WLB_FOLDER_UNLOCKED(is_last);
		const char *file = is_last ? last_path : path;
		assert_true(wlb_folder_lock(dir, &first));
		assert_true(first.fd >= 0);
		assert_false(wlb_folder_lock(dir, &second));
		assert_int_equal(second.fd, -1);
		assert_int_equal(access(file, F_OK), 0);
		wlb_folder_unlock(dir, &first);
		assert_int_equal(first.fd, -1);
		assert_int_equal(access(file, F_OK), -1);
		assert_true(wlb_folder_lock(dir, &second));
		wlb_folder_unlock(dir, &second);
	}
}

/* However long that goes on. */
static void the_last_flush_depends_on_no_other(void **state)
{
	struct wlb_folder_lock other = WLB_FOLDER_UNLOCKED(false), last = WLB_FOLDER_UNLOCKED(true);
	(void)state;
	assert_true(wlb_folder_lock(dir, &other));
	assert_true(wlb_folder_lock(dir, &last));
	assert_true(last.fd >= 0);
	wlb_folder_unlock(dir, &last);
	wlb_folder_unlock(dir, &other);
}

/* A cluster ends many jobs while the coordinator is unavailable. */
static void the_last_flush_learns_that_another_has_left_the_folder_to_it(void **state)
{
	struct wlb_folder_lock first = WLB_FOLDER_UNLOCKED(true), second = WLB_FOLDER_UNLOCKED(true);
	(void)state;
	assert_false(wlb_folder_lock_is_asked(&first)); /* without a lock nobody can ask */
	assert_true(wlb_folder_lock(dir, &first));
	assert_false(wlb_folder_lock_is_asked(&first));
	for (int times = 0; times < 2; times++) {
		usleep(20000); /* longer than a tick, within which two times of a file are the same */
		assert_false(wlb_folder_lock(dir, &second));
		assert_true(wlb_folder_lock_is_asked(&first));
		assert_false(wlb_folder_lock_is_asked(&first));
	}
	wlb_folder_unlock(dir, &first);
	assert_true(wlb_folder_lock(dir, &second));
	assert_false(wlb_folder_lock_is_asked(&second));
	wlb_folder_unlock(dir, &second);
}

/* Its user waits for the end of the time that he gave it. */
static void a_users_flush_is_not_asked_to_go_on(void **state)
{
	struct wlb_folder_lock first = WLB_FOLDER_UNLOCKED(false), second = WLB_FOLDER_UNLOCKED(false);
	struct wlb_folder_lock last = WLB_FOLDER_UNLOCKED(true);
	(void)state;
	assert_true(wlb_folder_lock(dir, &first));
	usleep(20000);
	assert_false(wlb_folder_lock(dir, &second));
	assert_true(wlb_folder_lock(dir, &last));
	assert_false(wlb_folder_lock_is_asked(&first));
	wlb_folder_unlock(dir, &last);
	wlb_folder_unlock(dir, &first);
}

/* Runs in a child with a file system of its own, which has an inode for its root alone. Returns 0 when all was well, 77
 * when it may not mount one. */
static int lock_on_full_disk(void)
{
	struct wlb_folder_lock lock = WLB_FOLDER_UNLOCKED(true);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "nr_inodes=1") < 0)
		return 77;
	bool is_locked = wlb_folder_lock(dir, &lock);
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
	snprintf(last_path, sizeof(last_path), "%s/flush.last", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	unlink(last_path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_flush_has_a_folder),
		cmocka_unit_test(the_last_flush_depends_on_no_other),
		cmocka_unit_test(the_last_flush_learns_that_another_has_left_the_folder_to_it),
		cmocka_unit_test(a_users_flush_is_not_asked_to_go_on),
		cmocka_unit_test(a_full_disk_is_delivered_without_a_lock),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
