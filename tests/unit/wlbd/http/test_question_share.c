#include "coordinator/wlbd/http/question_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/http/exchange.h"
#include "coordinator/wlbd/http/request.h"
#include "coordinator/wlbd/wlbd.h"

enum { USER = 1000, OTHER = 1001, SLURM_USER = 64030, USER_MAX = 2 };

struct fixture {
	struct wlbd wlbd;
	struct wlbd_exchange exchange; /* of the newest call */
};

static void begin_with(struct fixture *f, const struct wlbd_budget_limits *limits)
{
	*f = (struct fixture){.wlbd = {.question_budget = wlbd_budget_new(limits), .slurm_uid = SLURM_USER}};
	assert_non_null(f->wlbd.question_budget);
}

static void begin(struct fixture *f)
{
	static const struct wlbd_budget_limits limits = {.user_count = USER_MAX, .all_count = 4 * USER_MAX};
	begin_with(f, &limits);
}

static void end(struct fixture *f)
{
	wlbd_budget_free(f->wlbd.question_budget);
}

static struct wlbd_request *call_of(struct fixture *f, uid_t uid)
{
	struct wlbd_request *request = wlbd_request_new(&f->wlbd, "/v1/runs");
	assert_non_null(request);
	f->exchange = (struct wlbd_exchange){.request = request};
	request->exchange = &f->exchange;
	request->method = "POST";
	request->uid = uid;
	return request;
}

static void a_user_has_so_many_questions(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	struct wlbd_request *first = call_of(&f, USER);
	struct wlbd_request *second = call_of(&f, USER);
	assert_int_equal(wlbd_question_share_take(first), 0);
	assert_int_equal(wlbd_question_share_take(second), 0);
	struct wlbd_request *other = call_of(&f, OTHER);
	assert_int_equal(wlbd_question_share_take(other), 0);
	struct wlbd_request *third = call_of(&f, USER);
	assert_int_equal(wlbd_question_share_take(third), -1);
	assert_true(f.exchange.is_answered);
	assert_int_equal(third->answer.status, 503);
	assert_non_null(strstr(third->answer.body, "uid 1000 has too many requests under way"));
	wlbd_request_free(third); /* it has taken nothing, and gives nothing back */
	struct wlbd_request *fourth = call_of(&f, USER);
	assert_int_equal(wlbd_question_share_take(fourth), -1);
	wlbd_request_free(first);
	struct wlbd_request *fifth = call_of(&f, USER);
	assert_int_equal(wlbd_question_share_take(fifth), 0);
	wlbd_request_free(second);
	wlbd_request_free(other);
	wlbd_request_free(fourth);
	wlbd_request_free(fifth);
	end(&f);
}

/* A request may ask the database, then Slurm, then the database. */
static void a_request_is_counted_once(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	for (int round = 0; round < 3; round++) {
		struct wlbd_request *request = call_of(&f, USER);
		for (int i = 0; i < 2 * USER_MAX; i++)
			assert_int_equal(wlbd_question_share_take(request), 0);
		struct wlbd_request *beside = call_of(&f, USER);
		assert_int_equal(wlbd_question_share_take(beside), 0);
		wlbd_request_free(request);
		wlbd_request_free(beside);
	}
	end(&f);
}

static void root_and_slurm_user_are_not_counted(void **state)
{
	static const uid_t trusted[] = {0, SLURM_USER};
	struct fixture f;
	struct wlbd_request *calls[2][USER_MAX + 1];
	(void)state;
	begin(&f);
	for (int user = 0; user < 2; user++) {
		for (int i = 0; i <= USER_MAX; i++) {
			calls[user][i] = call_of(&f, trusted[user]);
			assert_int_equal(wlbd_question_share_take(calls[user][i]), 0);
		}
	}
	/* SlurmUser is known only when slurmctld has answered, which may be while its requests are under way. */
	f.wlbd.slurm_uid = (uid_t)-1;
	for (int user = 0; user < 2; user++)
		for (int i = 0; i <= USER_MAX; i++)
			wlbd_request_free(calls[user][i]);
	end(&f);
}

/* Eight users ask for more than all may have. */
static void users_at_their_limits_leave_a_place(void **state)
{
	enum { USERS = 8, EACH = 8 };
	static const struct wlbd_budget_limits limits = {.user_count = EACH, .all_count = 7 * EACH};
	struct fixture f;
	struct wlbd_request *calls[USERS * EACH];
	(void)state;
	begin_with(&f, &limits);
	for (int i = 0; i < USERS * EACH; i++) {
		calls[i] = call_of(&f, USER + (uid_t)(i / EACH));
		wlbd_question_share_take(calls[i]);
	}
	assert_int_equal(calls[USERS * EACH - 1]->answer.status, 503);
	assert_non_null(strstr(calls[USERS * EACH - 1]->answer.body, "too many requests wait"));
	struct wlbd_request *ninth = call_of(&f, USER + USERS);
	assert_int_equal(wlbd_question_share_take(ninth), 0);
	wlbd_request_free(ninth);
	for (int i = 0; i < USERS * EACH; i++)
		wlbd_request_free(calls[i]);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_so_many_questions),
		cmocka_unit_test(a_request_is_counted_once),
		cmocka_unit_test(users_at_their_limits_leave_a_place),
		cmocka_unit_test(root_and_slurm_user_are_not_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
