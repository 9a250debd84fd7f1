#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/file.h"
#include "coordinator/client/config.h"

static char path[] = "/tmp/wlb-config-XXXXXX";

static int make_file(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	close(fd);
	setenv("WLB_CONF", path, 1);
	return fd < 0 ? -1 : 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_config(const char *text)
{
	assert_int_equal(wlb_file_write(path, text, strlen(text), 0600, NULL), 0);
	unsetenv("WLB_COORDINATOR");
	unsetenv("WLB_MUNGE_SOCKET");
	unsetenv("WLB_COORDINATOR_USER");
}

static void addresses(void **state)
{
	static const struct {
		const char *text, *host, *port;
	} good[] = {{"login1:8642", "login1", "8642"},
	            {"127.0.0.1:1", "127.0.0.1", "1"},
	            {"[fd00::1]:65535", "fd00::1", "65535"}};
	static const char *const bad[] = {"",      "login1",    ":8642",   "login1:", "login1:0", "login1:65536",
	                                  "a:b:1", "[fd00::1]", "fd00::1", "[]:1",    "h:1x",     "h:-1"};
	struct wlb_client_config config;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(wlb_client_config_addresses(&config, good[i].text, &error), 0);
		assert_string_equal(config.coordinators[0].host, good[i].host);
		assert_string_equal(config.coordinators[0].port, good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wlb_client_config_addresses(&config, bad[i], &error), -1);
		assert_non_null(strstr(error.message, "HOST:PORT"));
	}
}

static void two_addresses(void **state)
{
	static const char *const good[] = {"login1:1,[fd00::1]:2", " login1:1 ,\t[fd00::1]:2 "};
	static const struct {
		const char *text, *found;
	} bad[] = {{"a:1,", "''"},
	           {",a:1", "''"},
	           {"a:1,b", "'b'"},
	           {"a:1 b:2", "'a:1 b:2'"},
	           {"a:1,b:2,c:3", "more than 2"}};
	struct wlb_client_config config;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		config = (struct wlb_client_config){0};
		assert_int_equal(wlb_client_config_addresses(&config, good[i], &error), 0);
		assert_int_equal(config.coordinator_count, 2);
		assert_string_equal(config.coordinators[0].host, "login1");
		assert_string_equal(config.coordinators[1].host, "fd00::1");
		assert_string_equal(config.coordinators[1].port, "2");
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wlb_client_config_addresses(&config, bad[i].text, &error), -1);
		assert_non_null(strstr(error.message, bad[i].found));
		assert_int_equal(config.coordinator_count, 2); /* as before */
	}
	write_config("coordinator = login1:8642, login2:8642\n");
	assert_int_equal(wlb_client_config_load(&config, &error), 0);
	assert_int_equal(config.coordinator_count, 2);
	setenv("WLB_COORDINATOR", "login3:1", 1);
	assert_int_equal(wlb_client_config_load(&config, &error), 0);
	assert_int_equal(config.coordinator_count, 1);
}

static void file_is_read(void **state)
{
	struct wlb_client_config config;
	struct wlb_error error;
	(void)state;
	write_config("# where it is\n\n  coordinator = login1:8642  # ours\nmunge_socket=/run/m.sock");
	assert_int_equal(wlb_client_config_load(&config, &error), 0);
	assert_string_equal(config.coordinators[0].host, "login1");
	assert_string_equal(config.munge_socket, "/run/m.sock");
}

static void environment_comes_first(void **state)
{
	struct wlb_client_config config;
	struct wlb_error error;
	(void)state;
	write_config("coordinator = login1:8642\nmunge_socket = /run/m.sock\n");
	setenv("WLB_COORDINATOR", "login2:1", 1);
	assert_int_equal(wlb_client_config_load(&config, &error), 0);
	assert_string_equal(config.coordinators[0].host, "login2");
	assert_string_equal(config.munge_socket, "/run/m.sock");
	setenv("WLB_MUNGE_SOCKET", "/run/n.sock", 1);
	assert_int_equal(wlb_client_config_load(&config, &error), 0);
	assert_string_equal(config.munge_socket, "/run/n.sock");
}

static void who_is_believed(void **state)
{
	struct wlb_client_config config;
	struct wlb_error error;
	(void)state;
	write_config("coordinator = login1:8642\n");
	assert_int_equal(wlb_client_config_load(&config, &error), 0);
	assert_int_equal(config.coordinator_uid, 0);
	write_config("coordinator = login1:8642\ncoordinator_user = 4242\n");
	assert_int_equal(wlb_client_config_load(&config, &error), 0);
	assert_int_equal(config.coordinator_uid, 4242);
	setenv("WLB_COORDINATOR_USER", "nobody", 1);
	assert_int_equal(wlb_client_config_load(&config, &error), 0);
	assert_int_equal(config.coordinator_uid, 65534);
	assert_string_equal(config.coordinator_user, "nobody");
	setenv("WLB_COORDINATOR_USER", "no-such-user", 1);
	assert_int_equal(wlb_client_config_load(&config, &error), -1);
	assert_non_null(strstr(error.message, "'no-such-user'"));
}

static void wrong_files_name_the_line(void **state)
{
	static const struct {
		const char *text, *found;
	} bad[] = {{"", "no coordinator is named"},
	           {"\ncoordinator login1", "line 2"},
	           {"coordinator = login1", "'login1'"},
	           {"coordinator_user = no-such-user", "'no-such-user'"},
	           {"coordinator_user = 4294967295", "'4294967295'"},
	           {"colour = red", "'colour'"}};
	struct wlb_client_config config;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_config(bad[i].text);
		assert_int_equal(wlb_client_config_load(&config, &error), -1);
		assert_non_null(strstr(error.message, bad[i].found));
		assert_non_null(strstr(error.message, path));
	}
}

/* A part of a long line is no line of its own. */
static void long_lines(void **state)
{
	static const char before[] = "coordinator = login1:8642\n#", after[] = "coordinator = evil:1";
	struct wlb_client_config config;
	struct wlb_error error;
	char text[8192];
	(void)state;
	for (int comment = 1000; comment < 1100; comment++) {
		snprintf(text, sizeof(text), "%s%*s%s", before, comment, "", after);
		write_config(text);
		assert_int_equal(wlb_client_config_load(&config, &error), 0);
		assert_string_equal(config.coordinators[0].host, "login1");
	}
	for (int comment = 4000; comment < 4200; comment++) {
		snprintf(text, sizeof(text), "%s%*s%s", before, comment, "", after);
		write_config(text);
		int rc = wlb_client_config_load(&config, &error);
		if (comment + 1 + strlen(after) < 4096)
			assert_int_equal(rc, 0);
		else
			assert_int_equal(rc, -1);
		assert_string_equal(config.coordinators[0].host, "login1");
		if (rc < 0)
			assert_non_null(strstr(error.message, ", line 2: the line has more than 4095 bytes"));
	}
}

static void file_that_cannot_be_read(void **state)
{
	struct wlb_client_config config;
	struct wlb_error error;
	(void)state;
	setenv("WLB_COORDINATOR", "login2:1", 1);
	setenv("WLB_CONF", "/tmp", 1);
	assert_int_equal(wlb_client_config_load(&config, &error), -1);
	assert_non_null(strstr(error.message, "file /tmp, line 1: cannot be read: Is a directory"));
	setenv("WLB_CONF", path, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),       cmocka_unit_test(two_addresses),
		cmocka_unit_test(file_is_read),    cmocka_unit_test(environment_comes_first),
		cmocka_unit_test(who_is_believed), cmocka_unit_test(wrong_files_name_the_line),
		cmocka_unit_test(long_lines),      cmocka_unit_test(file_that_cannot_be_read),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
