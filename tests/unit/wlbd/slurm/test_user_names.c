/* The names of accounts while the directory of a site answers, hangs, and answers again. */
#include "coordinator/wlbd/slurm/user_names.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"

enum { NO_NAME = 77, USERS = 40, ENTRIES_MORE = 300 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool hangs;
	bool is_waiting; /* a look-up hangs */
	int count;       /* of look-ups */
} directory = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Stands in for that of the C library. */
int getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, struct passwd **found)
{
	pthread_mutex_lock(&directory.lock);
	directory.count++;
	directory.is_waiting = directory.hangs;
	pthread_cond_broadcast(&directory.changed);
	while (directory.hangs)
		pthread_cond_wait(&directory.changed, &directory.lock);
	directory.is_waiting = false;
	pthread_mutex_unlock(&directory.lock);
	snprintf(text, size, "user%u", uid);
	*entry = (struct passwd){.pw_name = text, .pw_uid = uid};
	*found = uid != NO_NAME ? entry : NULL;
	return 0;
}

static void set_hanging(bool hangs)
{
	pthread_mutex_lock(&directory.lock);
	directory.hangs = hangs;
	pthread_cond_broadcast(&directory.changed);
	pthread_mutex_unlock(&directory.lock);
}

static void assert_name(struct wlbd_user_names *names, uid_t uid, const char *expected)
{
	char name[64];
	wlbd_user_name(names, uid, name, sizeof(name));
	assert_string_equal(name, expected);
}

static void a_name_is_looked_up_once(void **state)
{
	struct wlbd_user_names *names = wlbd_user_names_new(NULL);
	(void)state;
	directory.count = 0;
	for (int i = 0; i < 3; i++) {
		assert_name(names, 1000, "user1000");
		assert_name(names, NO_NAME, "77");
	}
	assert_int_equal(directory.count, 2);
	wlbd_user_names_free(names);
}

static void more_accounts_than_are_kept(void **state)
{
	struct wlbd_user_names *names = wlbd_user_names_new(NULL);
	char expected[32];
	(void)state;
	for (uid_t uid = 1000; uid < 1000 + ENTRIES_MORE; uid++) {
		snprintf(expected, sizeof(expected), "user%u", uid);
		assert_name(names, uid, expected);
	}
	assert_name(names, 1000, "user1000");
	wlbd_user_names_free(names);
}

/* One look-up is waited for, however many accounts there are; a name that is known stays. */
static void a_directory_that_hangs(void **state)
{
	struct wlbd_user_names *names = wlbd_user_names_new(NULL);
	char expected[32];
	(void)state;
	assert_name(names, 999, "user999");
	set_hanging(true);
	int64_t began_ms = wlb_clock_ms();
	for (uid_t uid = 1000; uid < 1000 + USERS; uid++) {
		snprintf(expected, sizeof(expected), "%u", uid);
		assert_name(names, uid, expected);
	}
	assert_name(names, 999, "user999");
	assert_in_range(wlb_clock_ms() - began_ms, 0, USERS * 500 / 4);
	set_hanging(false);
	char name[64] = "";
	while (strcmp(name, "user1039") != 0) {
		wlbd_user_name(names, 1039, name, sizeof(name));
		wlb_clock_sleep_ms(1);
	}
	wlbd_user_names_free(names);
}

static void the_end_waits_for_no_look_up(void **state)
{
	struct wlbd_user_names *names = wlbd_user_names_new(NULL);
	(void)state;
	set_hanging(true);
	assert_name(names, 1000, "1000");
	wlbd_user_names_free(names);
	assert_true(directory.is_waiting);
	set_hanging(false);
	while (directory.is_waiting)
		wlb_clock_sleep_ms(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_looked_up_once),
		cmocka_unit_test(more_accounts_than_are_kept),
		cmocka_unit_test(a_directory_that_hangs),
		cmocka_unit_test(the_end_waits_for_no_look_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
