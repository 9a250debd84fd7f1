/* Loading of a shared library: from where the loader finds it or from a folder, and what is said where that fails. */
#include "tests/unit/kernels/support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/library.h"

struct table {
	double (*cos)(double x);
	double (*sqrt)(double x);
};

static const char *const NAMES[] = {"cos", "sqrt"};

static struct wlb_library library_of(const char *file, const char *folder)
{
	return (struct wlb_library){"the library", file, folder, "libm 6", "do without"};
}

static void test_functions_are_found(void **state)
{
	(void)state;
	const struct wlb_library library = library_of("libm.so.6", "/nowhere");
	struct table table = {0};
	struct wlb_error error;
	assert_int_equal(wlb_library_load(&library, NAMES, 2, &table, &error), 0);
	assert_true(table.cos(0.0) == 1.0 && table.sqrt(9.0) == 3.0);
}

/* The loader does not know the folder. */
static void test_folder_is_tried(void **state)
{
	(void)state;
	char folder[] = "/tmp/wlb_test_library_XXXXXX", link[64];
	assert_non_null(mkdtemp(folder));
	snprintf(link, sizeof(link), "%s/libelsewhere.so", folder);
	const struct wlb_library library = library_of("libelsewhere.so", folder);
	struct table table = {0};
	struct wlb_error error;
	Dl_info libm;
	void *loaded = dlopen("libm.so.6", RTLD_NOW);
	assert_non_null(loaded);
	assert_int_not_equal(dladdr(dlsym(loaded, "cos"), &libm), 0);
	dlclose(loaded);
	assert_int_equal(symlink(libm.dli_fname, link), 0);
	int rc = wlb_library_load(&library, NAMES, 2, &table, &error);
	unlink(link);
	rmdir(folder);
	assert_int_equal(rc, 0);
	assert_true(table.sqrt(9.0) == 3.0);
}

static void test_messages(void **state)
{
	(void)state;
	const char *const missing[] = {"cos", "no_such_function"};
	const struct wlb_library absent = library_of("libabsent.so.9", "/nowhere"), there = library_of("libm.so.6", "");
	struct wlb_error error;
	struct table table = {0};
	assert_int_equal(wlb_library_load(&absent, NAMES, 2, &table, &error), -1);
	assert_string_equal(error.message,
	                    "cannot load the library: /nowhere/libabsent.so.9: cannot open shared object file: No such "
	                    "file or directory; install libm 6, name its directory in LD_LIBRARY_PATH, or do without");
	assert_int_equal(wlb_library_load(&there, missing, 2, &table, &error), -1);
	assert_string_equal(error.message, "libm.so.6 has no function no_such_function; install libm 6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions_are_found),
	                                   cmocka_unit_test(test_folder_is_tried), cmocka_unit_test(test_messages)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
