#include "coordinator/wlbd/http/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { UNPROVED_MAX = 2, MOST_MS = 300 };

struct fixture {
	struct event_base *base;
	struct wlbd_budget *budget;
	struct wlbd_connections *all;
	struct wlbd_connection *connections[4];
	int ends[4][2];
	int closed; /* calls back */
};

static void begin_with(struct fixture *f, const struct wlbd_budget_limits *limits)
{
	*f = (struct fixture){.base = event_base_new(), .budget = wlbd_budget_new(limits)};
	f->all = wlbd_connections_new(f->base, f->budget, MOST_MS, UNPROVED_MAX);
}

static void begin(struct fixture *f)
{
	const struct wlbd_budget_limits limits = {.user_count = 1, .all_count = 4};
	begin_with(f, &limits);
}

static void end(struct fixture *f)
{
	for (int i = 0; i < 4; i++) {
		if (f->connections[i] != NULL)
			wlbd_connection_closed(f->connections[i]);
		if (f->ends[i][0] > 0) {
			close(f->ends[i][0]);
			close(f->ends[i][1]);
		}
	}
	wlbd_connections_free(f->all);
	wlbd_budget_free(f->budget);
	event_base_free(f->base);
}

static void open_one(struct fixture *f, int i)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->ends[i]), 0);
	f->connections[i] = wlbd_connection_opened(f->all, f->ends[i][0]);
	assert_non_null(f->connections[i]);
}

static bool is_cut_off(struct fixture *f, int i)
{
	char byte;
	return recv(f->ends[i][1], &byte, 1, 0) == 0;
}

static void the_oldest_unproved_gives_way(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	open_one(&f, 0);
	open_one(&f, 1);
	assert_int_equal(wlbd_connection_proved(f.connections[0], 7), WLBD_BUDGET_TAKEN);
	open_one(&f, 2);
	assert_false(is_cut_off(&f, 1));
	open_one(&f, 3); /* the third that is unproved */
	assert_false(is_cut_off(&f, 0));
	assert_true(is_cut_off(&f, 1));
	assert_false(is_cut_off(&f, 2));
	assert_false(is_cut_off(&f, 3));
	end(&f);
}

static void the_connections_of_a_user_are_limited(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	open_one(&f, 0);
	open_one(&f, 1);
	assert_int_equal(wlbd_connection_proved(f.connections[0], 7), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_connection_proved(f.connections[0], 7), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_connection_proved(f.connections[1], 7), WLBD_BUDGET_USER_FULL);
	wlbd_connection_closed(f.connections[0]);
	f.connections[0] = NULL;
	assert_int_equal(wlbd_connection_proved(f.connections[1], 7), WLBD_BUDGET_TAKEN);
	end(&f);
}

static void users_at_their_limits_leave_connections(void **state)
{
	const struct wlbd_budget_limits limits = {.user_count = 8, .all_count = 17, .reserved_count = 1};
	struct fixture f;
	(void)state;
	begin_with(&f, &limits);
	for (uid_t uid = 7; uid <= 8; uid++)
		while (wlbd_budget_enter(f.budget, uid) == WLBD_BUDGET_TAKEN)
			;
	for (int i = 0; i < 4; i++)
		open_one(&f, i);
	assert_int_equal(wlbd_connection_proved(f.connections[2], 7), WLBD_BUDGET_USER_FULL);
	assert_int_equal(wlbd_connection_proved(f.connections[2], 8), WLBD_BUDGET_FULL);
	assert_int_equal(wlbd_connection_proved(f.connections[2], 9), WLBD_BUDGET_TAKEN);
	assert_int_equal(wlbd_connection_proved(f.connections[3], 0), WLBD_BUDGET_TAKEN);
	end(&f);
}

static void who_completes_nothing_is_cut_off(void **state)
{
	struct fixture f;
	const struct timeval while_s = {.tv_sec = 2};
	(void)state;
	begin(&f);
	open_one(&f, 0);
	open_one(&f, 1);
	wlbd_connection_set_busy(f.connections[1], true);
	event_base_loopexit(f.base, &while_s);
	event_base_dispatch(f.base);
	assert_true(is_cut_off(&f, 0));
	assert_false(is_cut_off(&f, 1));
	end(&f);
}

static void count_close(struct wlbd_connection *connection, void *context)
{
	(void)connection;
	((struct fixture *)context)->closed++;
}

static void the_end_is_told_once(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	open_one(&f, 0);
	open_one(&f, 1);
	wlbd_connection_on_close(f.connections[0], count_close, &f);
	wlbd_connection_on_close(f.connections[1], count_close, &f);
	wlbd_connection_on_close(f.connections[1], NULL, NULL);
	end(&f);
	assert_int_equal(f.closed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_unproved_gives_way),
		cmocka_unit_test(the_connections_of_a_user_are_limited),
		cmocka_unit_test(users_at_their_limits_leave_connections),
		cmocka_unit_test(who_completes_nothing_is_cut_off),
		cmocka_unit_test(the_end_is_told_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
