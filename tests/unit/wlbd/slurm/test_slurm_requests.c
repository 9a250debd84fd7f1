/* Questions that are answered without Slurm: it is unavailable, or too many wait. */
#include "coordinator/wlbd/slurm/slurm_requests.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/user_names.h"
#include "coordinator/wlbd/thread_pool.h"
#include "coordinator/wlbd/wlbd.h"

/* No account has it. */
static const uid_t unknown = 3999999999U;

struct fixture {
	struct wlbd wlbd;
	int answers;
	struct wlbd_job_facts facts;
	struct wlb_error error;
};

static struct fixture *begin(struct fixture *f, int waiting_most)
{
	memset(f, 0, sizeof(*f));
	f->wlbd.base = event_base_new();
	f->wlbd.slurm_questions = wlbd_thread_pool_new(f->wlbd.base, "questions", 1, waiting_most, NULL);
	f->wlbd.user_names = wlbd_user_names_new(NULL);
	f->wlbd.nodes = wlbd_nodes_new();
	assert_non_null(f->wlbd.slurm_questions);
	assert_non_null(f->wlbd.nodes);
	return f;
}

static void end(struct fixture *f)
{
	wlbd_thread_pool_free(f->wlbd.slurm_questions);
	wlbd_user_names_free(f->wlbd.user_names);
	wlbd_nodes_free(f->wlbd.nodes);
	event_base_free(f->wlbd.base);
}

static void note_job(void *context, const struct wlbd_job_facts *facts)
{
	struct fixture *f = context;
	f->answers++;
	f->facts = *facts;
}

static void note_nodes(void *context, const struct wlb_error *error)
{
	struct fixture *f = context;
	f->answers++;
	assert_non_null(error);
	f->error = *error;
}

static void wait_for_answer(struct fixture *f)
{
	while (f->answers == 0)
		event_base_loop(f->wlbd.base, EVLOOP_ONCE);
}

/* libslurm would try for as long as its timeout. Another question is finding out whether slurmctld answers again. */
static void while_slurm_is_unavailable(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, 10);
	f.wlbd.slurm_unavailable = true;
	f.wlbd.slurm_tried = true;
	wlbd_slurm_job(&f.wlbd, 12, 0, note_job, &f);
	wait_for_answer(&f);
	assert_int_equal(f.facts.found, -1);
	assert_string_equal(f.facts.error.message, "slurmctld does not answer");
	assert_int_equal(f.facts.uid, 0);
	assert_string_equal(f.facts.user, "root");
	f.answers = 0;
	wlbd_slurm_job(&f.wlbd, 12, unknown, note_job, &f);
	wait_for_answer(&f);
	assert_string_equal(f.facts.user, "3999999999");
	f.answers = 0;
	wlbd_nodes_refresh(&f.wlbd, 0, note_nodes, &f);
	wait_for_answer(&f);
	assert_string_equal(f.error.message, "slurmctld does not answer");
	assert_true(f.wlbd.slurm_unavailable);
	end(&f);
}

static void when_too_many_wait(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, 0);
	wlbd_slurm_job(&f.wlbd, 12, unknown, note_job, &f);
	assert_int_equal(f.answers, 1);
	assert_int_equal(f.facts.found, -1);
	assert_string_equal(f.facts.error.message, "job 12: Slurm was not asked");
	assert_string_equal(f.facts.user, "3999999999");
	wlbd_nodes_refresh(&f.wlbd, 0, note_nodes, &f);
	assert_int_equal(f.answers, 2);
	assert_string_equal(f.error.message, "Slurm was not asked");
	wlbd_slurm_job_poll(&f.wlbd, 13, note_job, &f);
	assert_int_equal(f.answers, 3);
	assert_string_equal(f.facts.error.message, "job 13: Slurm was not asked");
	end(&f);
}

/* The question that was to find out whether Slurm answers is asked again later. */
static void finding_out_is_repeated(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, 0);
	f.wlbd.slurm_unavailable = true;
	wlbd_slurm_ping(&f.wlbd);
	assert_false(f.wlbd.slurm_tried);
	end(&f);
}

static void steps_of_the_job_alone(void **state)
{
	static const char *const others[] = {"",         "12",    "12.",           "12.x",
	                                     "12.batch", "12.1x", "1.0",           "123.0",
	                                     "12.-1",    "12. 1", "12.4294967295", "12.99999999999999999999"};
	uint32_t step = 0;
	(void)state;
	assert_true(wlbd_slurm_step_number(12, "12.34", &step));
	assert_int_equal(step, 34);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(wlbd_slurm_step_number(12, others[i], &step));
}

static struct sockaddr_storage address_of(int family, const char *text, uint16_t port)
{
	struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
	if (family == AF_INET)
		v4->sin_port = htons(port);
	else
		v6->sin6_port = htons(port);
	void *at = family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr;
	assert_int_equal(inet_pton(family, text, at), 1);
	return address;
}

static void a_nodes_address_on_any_port(void **state)
{
	struct wlbd_node node = {.address = address_of(AF_INET, "10.0.0.7", 6818),
	                         .address_length = sizeof(struct sockaddr_in)};
	struct sockaddr_storage same = address_of(AF_INET, "10.0.0.7", 40000);
	struct sockaddr_storage mapped = address_of(AF_INET6, "::ffff:10.0.0.7", 40000);
	struct sockaddr_storage other = address_of(AF_INET6, "fe80::7", 6818);
	struct sockaddr_storage local = {.ss_family = AF_UNIX};
	(void)state;
	assert_true(wlbd_node_has_address(&node, &same));
	assert_true(wlbd_node_has_address(&node, &mapped));
	assert_false(wlbd_node_has_address(&node, &other));
	assert_false(wlbd_node_has_address(&node, &local));
	node.address_length = 0; /* its name is not resolved */
	assert_false(wlbd_node_has_address(&node, &same));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(while_slurm_is_unavailable),  cmocka_unit_test(when_too_many_wait),
		cmocka_unit_test(finding_out_is_repeated),     cmocka_unit_test(steps_of_the_job_alone),
		cmocka_unit_test(a_nodes_address_on_any_port),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
