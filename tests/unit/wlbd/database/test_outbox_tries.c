/* Which answers of the database the outbox counts as a try of a statement. The database is a stand-in. */
#include "coordinator/wlbd/database/outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { FOREVER = 8, TRIES = 3 };

struct wlbd_db {
	enum wlbd_db_status status; /* of the next answers, */
	int count;                  /* which are so many; later ones are OK */
	const char *only;           /* the statement that is answered so; others are OK; NULL: all are */
	int calls;
};

bool wlbd_db_ready(const struct wlbd_db *db)
{
	(void)db;
	return true;
}

void wlbd_db_execute_reserved(struct wlbd_db *db, const char *sql, const struct wlbd_params *params, wlbd_db_done *done,
                              void *context)
{
	(void)params;
	bool fails = db->count > 0 && (db->only == NULL || strcmp(sql, db->only) == 0);
	struct wlbd_db_result result = {.status = fails ? db->status : WLBD_DB_OK,
	                                .http_status = 503,
	                                .message = "try again",
	                                .detail = "try again"};
	db->calls++;
	db->count -= fails;
	done(context, &result);
}

struct fixture {
	struct event_base *base;
	struct wlbd_db db;
	struct wlbd_outbox *outbox;
	uint64_t set_aside;
};

static void begin(struct fixture *f, enum wlbd_db_status status, int count)
{
	*f = (struct fixture){.base = event_base_new(), .db = {.status = status, .count = count}};
	f->outbox = wlbd_outbox_new(f->base, &f->db, &f->set_aside);
	assert_non_null(f->outbox);
}

static void end(struct fixture *f)
{
	wlbd_outbox_free(f->outbox);
	event_base_free(f->base);
}

static void put(struct fixture *f, int64_t run_pk, const char *sql)
{
	static const struct wlbd_params none;
	wlbd_outbox_put(f->outbox, 0, run_pk, sql, &none);
}

/* Until the outbox waits for nothing more. */
static void put_and_wait(struct fixture *f)
{
	put(f, 7, "select 1");
	event_base_dispatch(f->base);
}

static void a_full_queue_is_no_try(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, WLBD_DB_BUSY, FOREVER);
	put_and_wait(&f);
	assert_int_equal(f.db.calls, FOREVER + 1);
	assert_false(wlbd_outbox_holds(f.outbox, 7));
	assert_int_equal(f.set_aside, 0);
	end(&f);
}

static void a_database_that_is_unavailable_is_no_try(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, WLBD_DB_UNAVAILABLE, TRIES);
	put_and_wait(&f);
	assert_int_equal(f.db.calls, TRIES + 1);
	assert_false(wlbd_outbox_holds(f.outbox, 7));
	assert_int_equal(f.set_aside, 0);
	end(&f);
}

static void other_runs_do_not_wait_for_one_that_cannot_be_stored(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, WLBD_DB_UNAVAILABLE, TRIES);
	f.db.only = "select 1";
	put(&f, 7, "select 1");
	put(&f, 7, "select 2");
	put(&f, 8, "select 3");
	assert_true(wlbd_outbox_holds(f.outbox, 7));
	assert_false(wlbd_outbox_holds(f.outbox, 8));
	assert_int_equal(f.db.calls, 2);
	event_base_dispatch(f.base);
	assert_false(wlbd_outbox_holds(f.outbox, 7));
	assert_int_equal(f.db.calls, TRIES + 3);
	end(&f);
}

static void assert_set_aside(enum wlbd_db_status status)
{
	struct fixture f;
	begin(&f, status, FOREVER);
	put_and_wait(&f);
	assert_int_equal(f.db.calls, TRIES);
	assert_false(wlbd_outbox_holds(f.outbox, 7));
	assert_int_equal(f.set_aside, 1);
	end(&f);
}

static void a_statement_that_takes_too_long_is_set_aside(void **state)
{
	(void)state;
	assert_set_aside(WLBD_DB_SLOW);
}

static void a_statement_that_meets_damaged_data_is_set_aside(void **state)
{
	(void)state;
	assert_set_aside(WLBD_DB_DAMAGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_queue_is_no_try),
		cmocka_unit_test(a_database_that_is_unavailable_is_no_try),
		cmocka_unit_test(other_runs_do_not_wait_for_one_that_cannot_be_stored),
		cmocka_unit_test(a_statement_that_takes_too_long_is_set_aside),
		cmocka_unit_test(a_statement_that_meets_damaged_data_is_set_aside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
