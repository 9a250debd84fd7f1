/* The addresses of nodes that Slurm knows by names. Slurm and the name server are functions of this file. */
#include "coordinator/wlbd/slurm/nodes.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/thread_pool.h"
#include "coordinator/wlbd/wlbd.h"

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found);
int __wrap_wlb_slurm_nodes(struct wlb_slurm_node **nodes, int *count, struct wlb_error *error);
int __wrap_wlb_slurm_topology(struct wlb_topology_file *topology, struct wlb_error *error);
bool __wrap_wlb_slurm_config(const char *key, char *value, size_t size);

static const char *parameters; /* Slurm's CommunicationParameters; NULL: it does not answer */
static int configurations;     /* that were asked for */
static struct wlb_slurm_node slurm_node;
static const char *address; /* of every name; NULL: the name server knows none */
static atomic_int questions;

int __wrap_wlb_slurm_nodes(struct wlb_slurm_node **nodes, int *count, struct wlb_error *error)
{
	(void)error;
	*nodes = malloc(sizeof(**nodes));
	**nodes = slurm_node;
	*count = 1;
	return 0;
}

int __wrap_wlb_slurm_topology(struct wlb_topology_file *topology, struct wlb_error *error)
{
	(void)topology;
	return wlb_fail(error, "there is none");
}

bool __wrap_wlb_slurm_config(const char *key, char *value, size_t size)
{
	assert_string_equal(key, "CommunicationParameters");
	configurations++;
	if (parameters != NULL)
		snprintf(value, size, "%s", parameters);
	return parameters != NULL;
}

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	struct addrinfo numeric = *hints;
	if (hints->ai_flags & AI_NUMERICHOST)
		return __real_getaddrinfo(host, service, hints, found);
	atomic_fetch_add(&questions, 1);
	numeric.ai_flags |= AI_NUMERICHOST;
	return address == NULL ? EAI_NONAME : __real_getaddrinfo(address, service, &numeric, found);
}

static int begin(void **state)
{
	struct wlbd *wlbd = calloc(1, sizeof(*wlbd));
	wlbd->base = event_base_new();
	wlbd->slurm_questions = wlbd_thread_pool_new(wlbd->base, "questions", 1, 10, NULL);
	wlbd->resolver = wlbd_thread_pool_new(wlbd->base, "names", 1, 10, NULL);
	wlbd->nodes = wlbd_nodes_new();
	slurm_node = (struct wlb_slurm_node){.name = "c1", .address = "c1.cloud", .port = 6818, .responds = true};
	address = "10.0.0.1";
	parameters = "(null)";
	configurations = 0;
	atomic_store(&questions, 0);
	*state = wlbd;
	return 0;
}

static int end(void **state)
{
	struct wlbd *wlbd = *state;
	wlbd_thread_pool_free(wlbd->slurm_questions);
	wlbd_thread_pool_free(wlbd->resolver);
	wlbd_nodes_free(wlbd->nodes);
	event_base_free(wlbd->base);
	free(wlbd);
	return 0;
}

/* Lets the threads and the loop work on what they were given. */
static void run_a_while(struct wlbd *wlbd)
{
	struct timeval limit = {0, 60 * 1000};
	event_base_loopexit(wlbd->base, &limit);
	event_base_dispatch(wlbd->base);
}

static void refresh(struct wlbd *wlbd)
{
	wlbd_nodes_refresh(wlbd, 0, NULL, NULL);
	run_a_while(wlbd);
}

static void assert_address(struct wlbd *wlbd, const char *expected)
{
	char text[INET_ADDRSTRLEN];
	const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, "c1");
	assert_non_null(node);
	assert_int_not_equal(node->address_length, 0);
	assert_non_null(
		inet_ntop(AF_INET, &((const struct sockaddr_in *)&node->address)->sin_addr, text, sizeof(text)));
	assert_string_equal(text, expected);
}

/* As if it had been resolved long ago. */
static void let_time_pass(struct wlbd *wlbd)
{
	((struct wlbd_node *)wlbd_nodes_find(wlbd->nodes, "c1"))->resolved_ms -= 60000;
}

static void a_name_is_resolved_once(void **state)
{
	struct wlbd *wlbd = *state;
	assert_false(wlbd_nodes_are_known(wlbd->nodes));
	refresh(wlbd);
	assert_true(wlbd_nodes_are_known(wlbd->nodes));
	address = "10.0.0.2";
	for (int i = 0; i < 3; i++)
		refresh(wlbd);
	assert_address(wlbd, "10.0.0.1");
	assert_int_equal(atomic_load(&questions), 1);
}

static void and_again_after_the_node_was_down(void **state)
{
	struct wlbd *wlbd = *state;
	refresh(wlbd);
	slurm_node.down = true;
	refresh(wlbd);
	address = "10.0.0.2";
	refresh(wlbd);
	assert_address(wlbd, "10.0.0.1");
	slurm_node.down = false;
	refresh(wlbd);
	assert_address(wlbd, "10.0.0.2");
	refresh(wlbd);
	assert_int_equal(atomic_load(&questions), 2);
}

static void and_where_the_node_does_not_answer(void **state)
{
	struct wlbd *wlbd = *state;
	refresh(wlbd);
	address = "10.0.0.2";
	wlbd_nodes_resolve_again(wlbd, "c1"); /* too soon */
	run_a_while(wlbd);
	assert_address(wlbd, "10.0.0.1");
	let_time_pass(wlbd);
	for (int i = 0; i < 3; i++)
		wlbd_nodes_resolve_again(wlbd, "c1");
	run_a_while(wlbd);
	assert_address(wlbd, "10.0.0.2");
	assert_int_equal(atomic_load(&questions), 2);
}

static void the_address_is_kept_where_the_name_does_not_resolve(void **state)
{
	struct wlbd *wlbd = *state;
	refresh(wlbd);
	address = NULL;
	let_time_pass(wlbd);
	wlbd_nodes_resolve_again(wlbd, "c1");
	run_a_while(wlbd);
	assert_int_equal(atomic_load(&questions), 2);
	assert_address(wlbd, "10.0.0.1");
}

/* The answer of the name server comes while Slurm is asked for its nodes. */
static void a_new_address_is_not_lost_to_a_refresh(void **state)
{
	struct wlbd *wlbd = *state;
	refresh(wlbd);
	address = "10.0.0.2";
	let_time_pass(wlbd);
	wlbd_nodes_refresh(wlbd, 0, NULL, NULL);
	wlbd_nodes_resolve_again(wlbd, "c1");
	run_a_while(wlbd);
	assert_address(wlbd, "10.0.0.2");
}

/* A host has IPv6 addresses, too: its slurmd listens there only where Slurm is configured for it. */
static void addresses_are_of_the_kinds_that_slurm_uses(void **state)
{
	static const struct {
		const char *parameters;
		bool has_ipv6;
	} cases[] = {{NULL, false}, {"(null)", false}, {"NoAddrCache", false}, {"NoAddrCache,EnableIPv6", true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlbd *wlbd = *state;
		address = "fd00::1";
		parameters = cases[i].parameters;
		for (int n = 0; n < 3; n++)
			refresh(wlbd);
		const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, "c1");
		assert_int_equal(node->address_length > 0, cases[i].has_ipv6);
		assert_int_equal(configurations, cases[i].parameters == NULL ? 3 : 1);
		end(state);
		begin(state);
	}
}

static void no_name_server_is_asked_for_an_address(void **state)
{
	struct wlbd *wlbd = *state;
	snprintf(slurm_node.address, sizeof(slurm_node.address), "10.0.0.3");
	refresh(wlbd);
	slurm_node.down = true;
	refresh(wlbd);
	slurm_node.down = false;
	refresh(wlbd);
	let_time_pass(wlbd);
	wlbd_nodes_resolve_again(wlbd, "c1");
	run_a_while(wlbd);
	assert_address(wlbd, "10.0.0.3");
	assert_int_equal(atomic_load(&questions), 0);
	snprintf(slurm_node.address, sizeof(slurm_node.address), "10.0.0.4");
	refresh(wlbd);
	assert_address(wlbd, "10.0.0.4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_name_is_resolved_once, begin, end),
		cmocka_unit_test_setup_teardown(and_again_after_the_node_was_down, begin, end),
		cmocka_unit_test_setup_teardown(and_where_the_node_does_not_answer, begin, end),
		cmocka_unit_test_setup_teardown(the_address_is_kept_where_the_name_does_not_resolve, begin, end),
		cmocka_unit_test_setup_teardown(a_new_address_is_not_lost_to_a_refresh, begin, end),
		cmocka_unit_test_setup_teardown(addresses_are_of_the_kinds_that_slurm_uses, begin, end),
		cmocka_unit_test_setup_teardown(no_name_server_is_asked_for_an_address, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
