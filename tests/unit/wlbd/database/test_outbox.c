/* The bounds of the outbox while the database is unavailable. */
#include "coordinator/wlbd/database/outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { OF_A_RUN = 1000, IN_ALL = 20000 };

static const char statement[] = "select 1";

struct fixture {
	struct event_base *base;
	struct wlbd_db_server *server;
	struct wlbd_db *db;
	struct wlbd_outbox *outbox;
	uint64_t set_aside;
};

static struct fixture *begin(struct fixture *f)
{
	static const struct wlbd_db_hooks none;
	*f = (struct fixture){.base = event_base_new()};
	f->server = wlbd_db_server_new(f->base, "host=/nowhere dbname=none", NULL);
	f->db = wlbd_db_new(f->base, f->server, 1000, &none, NULL);
	assert_non_null(f->db);
	f->outbox = wlbd_outbox_new(f->base, f->db, &f->set_aside);
	assert_non_null(f->outbox);
	return f;
}

static void end(struct fixture *f)
{
	wlbd_outbox_free(f->outbox);
	wlbd_db_free(f->db);
	wlbd_db_server_free(f->server);
	event_base_free(f->base);
}

static void put_of(struct fixture *f, uid_t uid, int64_t run_pk, int times)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, run_pk);
	for (int i = 0; i < times; i++)
		wlbd_outbox_put(f->outbox, uid, run_pk, statement, &params);
}

static void put(struct fixture *f, int64_t run_pk, int times)
{
	put_of(f, 1000, run_pk, times);
}

static void statements_wait_for_the_database(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	put(&f, 7, 1);
	wlbd_outbox_resume(f.outbox);
	assert_true(wlbd_outbox_holds(f.outbox, 7));
	assert_false(wlbd_outbox_holds(f.outbox, 8));
	assert_int_equal(f.set_aside, 0);
	end(&f);
}

/* A run that has very many does not take the place of others. */
static void a_run_has_its_share(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	put(&f, 1, OF_A_RUN);
	assert_int_equal(f.set_aside, 0);
	put(&f, 1, 1);
	assert_int_equal(f.set_aside, 1);
	put(&f, 2, OF_A_RUN);
	assert_int_equal(f.set_aside, 1);
	assert_true(wlbd_outbox_holds(f.outbox, 2));
	end(&f);
}

/* Nor do many runs of one user: the first may have half of all, the next leaves an eighth, of which a third may have
 * half. */
static void a_user_leaves_places_to_others(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	for (int run = 1; run <= 11; run++)
		put_of(&f, 1, run, OF_A_RUN);
	assert_int_equal(f.set_aside, 11 * OF_A_RUN - IN_ALL / 2); /* 10,000 are kept */
	f.set_aside = 0;
	put_of(&f, 2, 99, 1);
	assert_true(wlbd_outbox_holds(f.outbox, 99));
	for (int run = 100; run < 108; run++)
		put_of(&f, 2, run, OF_A_RUN);
	assert_int_equal(f.set_aside, 8 * OF_A_RUN + 1 - (IN_ALL / 2 - IN_ALL / 8));
	f.set_aside = 0;
	for (int run = 200; run < 202; run++)
		put_of(&f, 3, run, OF_A_RUN);
	assert_int_equal(f.set_aside, 2 * OF_A_RUN - IN_ALL / 16);
	end(&f);
}

static void all_users_have_a_bound(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f);
	for (int run = 1; run <= 40; run++)
		put_of(&f, (uid_t)(run / 2), run, OF_A_RUN);
	uint64_t before = f.set_aside;
	assert_true(40 * OF_A_RUN - before < IN_ALL);
	put_of(&f, 9, 99, OF_A_RUN);
	assert_true(f.set_aside > before);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statements_wait_for_the_database),
		cmocka_unit_test(a_run_has_its_share),
		cmocka_unit_test(a_user_leaves_places_to_others),
		cmocka_unit_test(all_users_have_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
