#include "coordinator/wlbd/config.h"

#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/wlbd/log.h"

static void test_defaults(void **state)
{
	struct wlbd_config config;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlbd_config_parse("f", "", &config, &error), 0);
	assert_string_equal(config.listen_host, "127.0.0.1");
	assert_int_equal(config.listen_port, 8642);
	assert_false(config.private_data);
	assert_true(config.node_down);
	assert_true(config.avoid_nodes);
	assert_int_equal(config.log_level, WLBD_LOG_INFO);
	assert_int_equal(config.restart_grace_ms, 15000);
	assert_int_equal(config.lease_ms, 0);
	assert_int_equal(config.on_fault.hang, WLB_FAULT_EVICT);
	assert_true(config.on_fault.hang_after_s == 8);
}

static void test_every_kind_of_line(void **state)
{
	struct wlbd_config config;
	struct wlb_error error;
	const char *text =
		"# a comment\n\n  listen=[::1]:0\r\ndatabase = host=/run/pg dbname=wlb\n"
		"private_data = yes\nnode_down = no\navoid_nodes = no\nlog_level = debug\nsilence_ms = 5000\n"
		"lease_ms = 2000\non_fault = report,crash=evict,hang-after=5m";
	(void)state;
	assert_int_equal(wlbd_config_parse("f", text, &config, &error), 0);
	assert_string_equal(config.listen_host, "::1");
	assert_int_equal(config.listen_port, 0);
	assert_string_equal(config.database, "host=/run/pg dbname=wlb");
	assert_true(config.private_data);
	assert_false(config.node_down);
	assert_false(config.avoid_nodes);
	assert_int_equal(config.log_level, WLBD_LOG_DEBUG);
	assert_int_equal(config.silence_ms, 5000);
	assert_int_equal(config.lease_ms, 2000);
	assert_int_equal(config.on_fault.crash, WLB_FAULT_EVICT);
	assert_int_equal(config.on_fault.hang, WLB_FAULT_REPORT);
	assert_true(config.on_fault.hang_after_s == 300);
	assert_true(config.on_fault.slow_by_percent == 10);
}

static void test_refusals_name_file_line_and_value(void **state)
{
	static const struct {
		const char *text;
		const char *parts[3];
	} cases[] = {
		{"\nlisten = nowhere", {"f, line 2", "nowhere", "HOST:PORT"}},
		{"listen = a:80 b", {"f, line 1", "a:80 b", "HOST:PORT"}},
		{"listen = a b:80", {"f, line 1", "a b:80", "HOST:PORT"}},
		{"listen = a:+80", {"f, line 1", "a:+80", "HOST:PORT"}},
		{"listen =", {"f, line 1", "''", "HOST:PORT"}},
		{"munge_socket = /run/munge # comment", {"f, line 1", "# comment", "path"}},
		{"munge_socket = munge", {"f, line 1", "munge", "absolute"}},
		{"private_data = yes no", {"f, line 1", "yes no", "yes or no"}},
		{"on_fault = hang=evict slow=evict", {"f, line 1", "on_fault", "slow=evict"}},
		{"listen = ::1:80", {"f", "::1:80", "[::1]:8642"}},
		{"listen = a:70000", {"f", "a:70000", "HOST:PORT"}},
		{"\nprivate_data = maybe", {"f, line 2", "maybe", "yes or no"}},
		{"silence_ms = 1s", {"f, line 1", "1s", "1000"}},
		{"silence_ms = 999", {"f, line 1", "999", "1000"}},
		{"lease_ms = 1999", {"f, line 1", "1999", "from 2000 to 600000, or 0"}},
		{"lease_ms = -0", {"f, line 1", "-0", "or 0"}},
		{"log_level = loud", {"f, line 1", "loud", "warning"}},
		{"on_fault = hang=stop", {"f, line 1", "on_fault", "hang=stop"}},
		{"lisen = a:1", {"f, line 1", "lisen", "listen"}},
		{"listen", {"f, line 1", "listen", "key = value"}},
		{"node_down = no\nnode_down = no", {"f, line 2", "node_down", "twice"}},
	};
	struct wlbd_config config;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(wlbd_config_parse("f", cases[i].text, &config, &error), -1);
		for (int k = 0; k < 3; k++)
			if (strstr(error.message, cases[i].parts[k]) == NULL)
				fail_msg("'%s' is not in: %s", cases[i].parts[k], error.message);
	}
}

/* "SECRET" is in each, and in no message. */
static void test_a_connection_string_that_does_not_parse(void **state)
{
	static const char *const refused[] = {
		"database = host=db dbname=wlb password=two SECRET",
		"database = host=db dbname=wlb password=two SECRET=3",
		"database = password='SECRET",
		"database = host=db SECRET password=x",
		"database = SECRET SECRET",
		"database = host db password SECRET",
		"database = dbname=wlb # SECRET",
		"database = pasword=SECRET",
		"database = postgresql://wlb:SECRET@[::1/wlb",
		"database = postgresql://wlb:SECRET%zz@db/wlb",
		"database = postgresql://wlb:SECRET%@db/wlb",
		"database = postgresql://wlb:x@db/wlb?SECRET=1",
		"database = postgresql://wlb:a@SECRET@db/wlb",
		"database = postgres://wlb:a@SECRET@db1,db2/wlb",
		"database = postgresql://wlb:SECRET/b@db/wlb",
		"database = postgresql://wlb:1/SECRET@db/wlb",
		"database = host=db port=SECRET",
		"database = host=a@SECRET",
		"database = wlb:SECRET@db/wlb",
		"database = postgresql:/wlb:SECRET@db/wlb",
		"database = pgsql://wlb:SECRET@db/wlb",
		"database = dbname=postgresql://wlb:SECRET@db/wlb",
		"database = host=db,user=wlb,password=SECRET",
		"database = host=db;user=wlb;Password=SECRET",
		"database = host=/run/postgresql;password=SECRET",
		"database = dbname=wlb,password=SECRET",
		"database\t= two SECRET",
		"database postgresql://wlb:SECRET@db/wlb",
		"database postgresql://wlb:SECRET@db/wlb?sslmode=require",
		"database host=db password=SECRET",
		"database: host=db password=SECRET",
		"database = host=db \\\n  password SECRET",
		"database = host=db \\\n  dbname=wlb password=SECRET",
		"database = host=db\n  'SECRET'",
		"database = host=db\n  SECRET'=x",
	};
	char text[2000];
	struct wlbd_config config;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (wlbd_config_parse("f", refused[i], &config, &error) != -1)
			fail_msg("taken: %s", refused[i]);
		if (strstr(error.message, "SECRET") != NULL)
			fail_msg("%s: %s", refused[i], error.message);
		assert_non_null(strstr(error.message, "f, line "));
	}
	snprintf(text, sizeof(text), "database = password=SECRET%01500d", 0);
	assert_int_equal(wlbd_config_parse("f", text, &config, &error), -1);
	assert_null(strstr(error.message, "SECRET"));
	assert_non_null(strstr(error.message, "1023"));
}

static void test_connection_strings(void **state)
{
	static const char *const taken[] = {
		"",
		"wlb",
		"host=/run/postgresql dbname=wlb user=wlb",
		"host=a,b port=5432,5433 dbname=wlb target_session_attrs=read-write",
		"host = db password = 'two words' dbname=wlb",
		"password=it\\'s\\ two dbname=a@b host=@abstract",
		"host=/run/a@b,db port=,",
		"service=wlb passfile=/etc/wlb/pass",
		"postgresql://wlb:p%40ss@db:5432/wlb?sslmode=require",
		"postgres://wlb@db1:1,db2:2/wlb",
		"postgresql:///wlb?host=/run/postgresql",
	};
	char text[300];
	struct wlbd_config config;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		snprintf(text, sizeof(text), "database = %s", taken[i]);
		if (wlbd_config_parse("f", text, &config, &error) != 0)
			fail_msg("%s: %s", taken[i], error.message);
		assert_string_equal(config.database, taken[i]);
	}
}

/* A file of that mode, owner and group. Returns what is warned of, "": nothing. */
static const char *warned_of_group(const char *text, mode_t mode, uid_t owner, gid_t group, uid_t account)
{
	static struct wlb_error warning;
	char path[] = "/tmp/wlbd-conf-XXXXXX";
	struct wlbd_config config;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchown(fd, owner, group), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	assert_int_equal(wlbd_config_load(path, &config, &warning), 0);
	warning.message[0] = '\0';
	int rc = wlbd_config_check_readers(path, &config, account, &warning);
	unlink(path);
	assert_int_equal(rc, warning.message[0] != '\0' ? -1 : 0);
	assert_null(strstr(warning.message, "SECRET"));
	return warning.message;
}

static const char *warned(const char *text, mode_t mode, uid_t owner, uid_t account)
{
	return warned_of_group(text, mode, owner, (gid_t)-1, account);
}

static void test_who_may_read_a_password(void **state)
{
	static const char *const secrets[] = {"database = host=db password=SECRET",
	                                      "database = postgresql://wlb:SECRET@db/wlb",
	                                      "database = host=db sslpassword=SECRET"};
	static const mode_t open_modes[] = {0644, 0604, 0620, 0602, 0660};
	uid_t self = geteuid();
	(void)state;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		assert_string_equal(warned(secrets[i], 0600, self, self), "");
		for (size_t k = 0; k < sizeof(open_modes) / sizeof(open_modes[0]); k++)
			assert_non_null(strstr(warned(secrets[i], open_modes[k], self, self), "chmod 600"));
	}
	assert_string_equal(warned("database = host=db passfile=/x", 0644, self, self), "");
	assert_string_equal(warned("database = wlb", 0644, self, self), "");
	assert_string_equal(warned("", 0644, self, self), "");
	if (self != 0)
		return;
	assert_string_equal(warned(secrets[0], 0600, 0, 1234), ""); /* root may read it anyway */
	assert_string_equal(warned(secrets[0], 0600, 1234, 1234), "");
	assert_non_null(strstr(warned(secrets[0], 0600, 1235, 1234), "uid 1235"));
	/* The group of the account daemon is its own. */
	const struct passwd *daemon = getpwnam("daemon");
	assert_non_null(daemon);
	assert_string_equal(warned_of_group(secrets[0], 0640, 0, daemon->pw_gid, daemon->pw_uid), "");
	assert_non_null(strstr(warned_of_group(secrets[0], 0640, 0, 0, daemon->pw_uid), "chmod 600"));
	assert_non_null(strstr(warned_of_group(secrets[0], 0660, 0, daemon->pw_gid, daemon->pw_uid), "chmod 600"));
	assert_non_null(strstr(warned_of_group(secrets[0], 0640, 0, daemon->pw_gid, 1234), "chmod 600"));
}

static void test_who_may_read_a_file_of_passwords(void **state)
{
	char path[] = "/tmp/wlbd-pass-XXXXXX", text[300];
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0);
	snprintf(text, sizeof(text), "database = host=db passfile=%s", path);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_string_equal(warned(text, 0644, geteuid(), geteuid()), "");
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_non_null(strstr(warned(text, 0644, geteuid(), geteuid()), path));
	close(fd);
	unlink(path);
}

static void test_a_byte_0_hides_nothing(void **state)
{
	char path[] = "/tmp/wlbd-conf-XXXXXX";
	struct wlbd_config config;
	struct wlb_error error;
	int fd = mkstemp(path);
	(void)state;
	assert_int_equal(write(fd, "node_down = no\0\nlisen = x\n", 26), 26);
	close(fd);
	int rc = wlbd_config_load(path, &config, &error);
	unlink(path);
	assert_int_equal(rc, -1);
	assert_non_null(strstr(error.message, path));
}

static void test_missing_file(void **state)
{
	struct wlbd_config config;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlbd_config_load("/nonexistent/wlbd.conf", &config, &error), -1);
	assert_non_null(strstr(error.message, "/nonexistent/wlbd.conf"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_kind_of_line),
		cmocka_unit_test(test_refusals_name_file_line_and_value),
		cmocka_unit_test(test_a_connection_string_that_does_not_parse),
		cmocka_unit_test(test_connection_strings),
		cmocka_unit_test(test_who_may_read_a_password),
		cmocka_unit_test(test_who_may_read_a_file_of_passwords),
		cmocka_unit_test(test_a_byte_0_hides_nothing),
		cmocka_unit_test(test_missing_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
