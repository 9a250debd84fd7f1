#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "spank/model_path.h"

static void expect(const char *typed, const char *known, const char *base, const char *path)
{
	char got[64];
	assert_int_equal(wlb_model_path_resolve(typed, known, base, got, sizeof(got)), 0);
	assert_string_equal(got, path);
}

static void resolves_against_the_submit_folder(void **state)
{
	(void)state;
	expect("m.json", NULL, "/home/a", "/home/a/m.json");
	expect("../m.json", "", "/home/a", "/home/a/../m.json");
	expect("/m.json", NULL, "/home/a", "/m.json");
}

static void keeps_the_path_found_at_submission(void **state)
{
	(void)state;
	expect("m.json", "/home/a/m.json", "/elsewhere", "/home/a/m.json");
	expect("x/m.json", "/home/a/x/m.json", "/elsewhere", "/home/a/x/m.json");
	expect("/m.json", "/m.json", "/elsewhere", "/m.json");
}

static void takes_another_file_for_another(void **state)
{
	(void)state;
	expect("b.json", "/home/a/m.json", "/here", "/here/b.json");
	expect("n.json", "/home/a/mn.json", "/here", "/here/n.json");
	expect("m.json", "m.json", "/here", "/here/m.json");
}

static void refuses_what_does_not_fit(void **state)
{
	(void)state;
	char path[8];
	assert_int_equal(wlb_model_path_resolve("config.json", NULL, "/home", path, sizeof(path)), -1);
	assert_int_equal(wlb_model_path_resolve("m", NULL, NULL, path, sizeof(path)), -1);
	assert_int_equal(wlb_model_path_resolve("m", NULL, "", path, sizeof(path)), -1);
}

static void checks_the_file(void **state)
{
	(void)state;
	struct wlb_error error;
	char name[] = "/tmp/wlb-model-XXXXXX";
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(wlb_model_path_check(name, NULL, &error), 0);
	unlink(name);
	assert_int_equal(wlb_model_path_check(name, NULL, &error), -1);
	assert_non_null(strstr(error.message, "No such file"));
	assert_int_equal(wlb_model_path_check(name, name, &error), 0);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(wlb_model_path_check(name, NULL, &error), -1);
	assert_non_null(strstr(error.message, "regular"));
	unlink(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolves_against_the_submit_folder),
		cmocka_unit_test(keeps_the_path_found_at_submission),
		cmocka_unit_test(takes_another_file_for_another),
		cmocka_unit_test(refuses_what_does_not_fit),
		cmocka_unit_test(checks_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
