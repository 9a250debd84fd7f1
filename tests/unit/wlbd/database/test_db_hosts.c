/* Lists of hosts for libpq. The name server is a function of this file. */
#include "coordinator/wlbd/database/db_hosts.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int questions;

static void add(struct addrinfo **list, const char *address)
{
	struct addrinfo *entry = calloc(1, sizeof(*entry) + sizeof(struct sockaddr_in6));
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(entry + 1);
	struct sockaddr_in *v4 = (struct sockaddr_in *)(entry + 1);
	bool is_v6 = strchr(address, ':') != NULL;
	entry->ai_family = is_v6 ? AF_INET6 : AF_INET;
	entry->ai_addrlen = is_v6 ? sizeof(*v6) : sizeof(*v4);
	entry->ai_addr = (struct sockaddr *)v6;
	entry->ai_addr->sa_family = (sa_family_t)entry->ai_family;
	assert_int_equal(inet_pton(entry->ai_family, address, is_v6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr),
	                 1);
	while (*list != NULL)
		list = &(*list)->ai_next;
	*list = entry;
}

static bool is_address(const char *text)
{
	struct in6_addr any;
	return inet_pton(AF_INET, text, &any) == 1 || inet_pton(AF_INET6, text, &any) == 1;
}

/* Stand in for those of the C library. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	char address[32];
	(void)service;
	*found = NULL;
	if (is_address(host)) {
		add(found, host);
		return 0;
	}
	if (hints->ai_flags & AI_NUMERICHOST)
		return EAI_NONAME;
	questions++;
	if (strcmp(host, "one") == 0) {
		add(found, "10.0.0.1");
	} else if (strcmp(host, "two") == 0) {
		add(found, "fd00::2");
		add(found, "10.0.0.2");
	} else if (strcmp(host, "many") == 0) {
		for (int i = 0; i < 2 * WLBD_DB_ADDRESSES_MAX; i++) {
			snprintf(address, sizeof(address), "10.0.1.%d", i);
			add(found, address);
		}
	} else {
		return strcmp(host, "hangs") == 0 ? EAI_AGAIN : EAI_NONAME;
	}
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	while (list != NULL) {
		struct addrinfo *next = list->ai_next;
		free(list);
		list = next;
	}
}

static void read_hosts(const char *conninfo, struct wlbd_db_hosts *hosts)
{
	struct wlb_error error = {0};
	questions = 0;
	assert_int_equal(wlbd_db_hosts_read(conninfo, hosts, &error), 0);
	assert_int_equal(questions, 0);
}

static void assert_given(const char *conninfo)
{
	struct wlbd_db_hosts hosts;
	read_hosts(conninfo, &hosts);
	assert_false(wlbd_db_hosts_have_name(&hosts));
	assert_int_equal(questions, 0);
	wlbd_db_hosts_clear(&hosts);
}

static void assert_resolved(const char *conninfo, const char *host, const char *hostaddr, const char *port)
{
	struct wlbd_db_hosts hosts, resolved;
	struct wlb_error error = {0};
	read_hosts(conninfo, &hosts);
	assert_true(wlbd_db_hosts_have_name(&hosts));
	assert_int_equal(questions, 0);
	assert_int_equal(wlbd_db_hosts_resolve(&hosts, &resolved, &error), 0);
	assert_string_equal(resolved.host, host);
	assert_string_equal(resolved.hostaddr, hostaddr);
	assert_string_equal(resolved.port, port);
	wlbd_db_hosts_clear(&hosts);
	wlbd_db_hosts_clear(&resolved);
}

static void assert_refused(const char *conninfo, const char *first, const char *second)
{
	struct wlbd_db_hosts hosts, resolved;
	struct wlb_error error = {0};
	read_hosts(conninfo, &hosts);
	assert_true(wlbd_db_hosts_have_name(&hosts));
	assert_int_equal(wlbd_db_hosts_resolve(&hosts, &resolved, &error), -1);
	assert_non_null(strstr(error.message, first));
	assert_non_null(strstr(error.message, second));
	assert_null(resolved.host);
	wlbd_db_hosts_clear(&hosts);
}

static void names_get_their_addresses(void **state)
{
	(void)state;
	assert_resolved("host=one port=5433", "one", "10.0.0.1", "5433");
	assert_resolved("host=one", "one", "10.0.0.1", "5432");
	assert_resolved("host=two port=7", "two,two", "fd00::2,10.0.0.2", "7");
}

static void lists_keep_their_order_and_their_ports(void **state)
{
	(void)state;
	assert_resolved("host=two,one port=1,2", "two,two,one", "fd00::2,10.0.0.2,10.0.0.1", "1,1,2");
	assert_resolved("host=one,two port=7", "one,two,two", "10.0.0.1,fd00::2,10.0.0.2", "7");
	assert_resolved("postgresql://one:1,two/wlb", "one,two,two", "10.0.0.1,fd00::2,10.0.0.2", "1,5432,5432");
	/* What needs no look-up keeps its place, without an address, or with that which was given. */
	assert_resolved("host=/run/pg,one,10.9.9.9 port=1,2,3", "/run/pg,one,10.9.9.9", ",10.0.0.1,", "1,2,3");
	assert_resolved("host=one,two hostaddr=10.8.8.8, port=1,2", "one,two,two", "10.8.8.8,fd00::2,10.0.0.2",
	                "1,2,2");
}

static void nothing_is_looked_up_that_is_given(void **state)
{
	(void)state;
	assert_given("dbname=wlb");
	assert_given("host=/run/postgresql");
	assert_given("host=@abstract");
	assert_given("host=127.0.0.1 port=5433");
	assert_given("host=fd00::1,10.0.0.7,/tmp");
	assert_given("host=one hostaddr=10.8.8.8");
	assert_given("hostaddr=10.8.8.8");
	/* libpq refuses these, and says why. */
	assert_given("host=one,two hostaddr=10.8.8.8");
	assert_given("host=one,two port=1,2,3");
	assert_given("host=one nonsense");
	assert_given("host=one unknown=1");
}

static void a_service_and_the_environment_are_heeded(void **state)
{
	char path[] = "/tmp/wlb-service-XXXXXX";
	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "[wlb]\nhost=two\nport=6543\n") > 0);
	close(fd);
	setenv("PGSERVICEFILE", path, 1);
	setenv("PGHOST", "one", 1);
	assert_resolved("dbname=wlb", "one", "10.0.0.1", "5432");
	assert_resolved("service=wlb", "two,two", "fd00::2,10.0.0.2", "6543");
	assert_given("host=/tmp");
	setenv("PGHOSTADDR", "10.8.8.8", 1);
	assert_given("dbname=wlb");
	unsetenv("PGHOSTADDR");
	unsetenv("PGHOST");
	unsetenv("PGSERVICEFILE");
	unlink(path);
}

static void what_cannot_be_resolved_is_left_out(void **state)
{
	(void)state;
	assert_resolved("host=nobody,one port=1,2", "one", "10.0.0.1", "2");
	assert_resolved("postgresql://nobody,one/wlb", "one", "10.0.0.1", "5432");
	assert_resolved("host=nobody,/tmp", "/tmp", "", "5432");
	assert_refused("host=nobody", "'nobody'", gai_strerror(EAI_NONAME));
	assert_refused("host=nobody,hangs", "'hangs'", gai_strerror(EAI_AGAIN));
}

static void hosts_and_addresses_have_a_bound(void **state)
{
	struct wlbd_db_hosts hosts, resolved;
	struct wlb_error error = {0};
	char conninfo[1024] = "host=one";
	int commas = 0;
	(void)state;
	read_hosts("host=many", &hosts);
	assert_int_equal(wlbd_db_hosts_resolve(&hosts, &resolved, &error), 0);
	for (const char *c = resolved.hostaddr; *c != '\0'; c++)
		commas += *c == ',';
	assert_int_equal(commas, WLBD_DB_ADDRESSES_MAX - 1);
	wlbd_db_hosts_clear(&hosts);
	wlbd_db_hosts_clear(&resolved);
	for (int i = 0; i < WLBD_DB_HOSTS_MAX; i++)
		strcat(conninfo, ",one");
	assert_refused(conninfo, "33 hosts", "32");
	assert_int_equal(questions, 0);
}

int main(void)
{
	static const char *const variables[] = {"PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE", "PGSERVICEFILE"};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_get_their_addresses),
		cmocka_unit_test(lists_keep_their_order_and_their_ports),
		cmocka_unit_test(nothing_is_looked_up_that_is_given),
		cmocka_unit_test(a_service_and_the_environment_are_heeded),
		cmocka_unit_test(what_cannot_be_resolved_is_left_out),
		cmocka_unit_test(hosts_and_addresses_have_a_bound),
	};
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
