/* The directory with the files of a job is its owner's, whatever others have prepared. */
#include "coordinator/client/spool_dir.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOBODY = 65534, PATH_BYTES = 64 };

static char base[] = "/tmp/wlb-spool-dir-XXXXXX";
static char first[PATH_BYTES], own[PATH_BYTES], named[PATH_BYTES], in_named[2 * PATH_BYTES], elsewhere[PATH_BYTES];

/* Whether this process may give a file to another account. */
static bool is_root;

static void make(const char *path, mode_t mode, uid_t owner)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, mode), 0);
	assert_int_equal(chown(path, owner, (gid_t)-1), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat about;
	assert_int_equal(stat(path, &about), 0);
	assert_true(S_ISDIR(about.st_mode));
	assert_int_equal(about.st_uid, geteuid());
	return about.st_mode & 07777;
}

static void assert_chosen(const char *by_option, const char *expected)
{
	char dir[PATH_MAX];
	struct wlb_error error = {0};
	assert_int_equal(wlb_spool_dir_choose(by_option, dir, &error), 0);
	assert_string_equal(dir, expected);
	assert_int_equal(mode_of(dir) & (S_IWGRP | S_IWOTH), 0);
	/* Again, as the workers and the next start of the job do. */
	assert_int_equal(wlb_spool_dir_choose(by_option, dir, &error), 0);
	assert_string_equal(dir, expected);
}

static void assert_refused(const char *by_option, const char *why)
{
	char dir[PATH_MAX];
	struct wlb_error error = {0};
	assert_int_equal(wlb_spool_dir_choose(by_option, dir, &error), -1);
	assert_non_null(strstr(error.message, why));
	assert_non_null(strstr(error.message, "WLB_SPOOL_DIR"));
	assert_non_null(strstr(error.message, "--spool-dir"));
}

static void it_is_made_in_the_submit_directory(void **state)
{
	(void)state;
	assert_chosen(NULL, first);
	assert_int_equal(mode_of(first), 0700);
	assert_int_equal(access(own, F_OK), -1);
}

static void one_of_the_owners_is_used(void **state)
{
	(void)state;
	make(first, 0755, geteuid());
	assert_chosen(NULL, first);
	assert_int_equal(mode_of(first), 0755);
}

static void one_that_others_may_write_to_is_closed_to_them(void **state)
{
	(void)state;
	static const mode_t modes[] = {0775, 0777, 01777, 02770};
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		make(first, modes[i], geteuid());
		assert_chosen(NULL, first);
		assert_int_equal(mode_of(first) & 0777, 0700);
		assert_int_equal(rmdir(first), 0);
	}
}

static void beside_that_of_another_there_is_one_of_the_owners(void **state)
{
	(void)state;
	static const mode_t modes[] = {0700, 0755, 0777, 01777};
	if (!is_root)
		skip();
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		make(first, modes[i], NOBODY);
		assert_chosen(NULL, own);
		assert_int_equal(mode_of(own), 0700);
		/* The other's is gone, and the job that starts again still has its files. */
		assert_int_equal(rmdir(first), 0);
		assert_chosen(NULL, own);
		assert_int_equal(rmdir(own), 0);
	}
}

static void a_link_or_a_file_is_none(void **state)
{
	(void)state;
	make(elsewhere, 0700, geteuid());
	assert_int_equal(symlink(elsewhere, first), 0);
	assert_chosen(NULL, own);
	assert_int_equal(unlink(first), 0);
	assert_int_equal(rmdir(own), 0);
	assert_int_equal(symlink("missing", first), 0);
	assert_chosen(NULL, own);
	assert_int_equal(unlink(first), 0);
	assert_int_equal(rmdir(own), 0);
	assert_int_equal(mkfifo(first, 0666), 0);
	assert_chosen(NULL, own);
}

static void where_both_are_anothers_it_says_what_to_do(void **state)
{
	char name[2 * PATH_BYTES];
	(void)state;
	if (!is_root)
		skip();
	make(first, 0777, NOBODY);
	make(own, 0777, NOBODY);
	snprintf(name, sizeof(name), "directory %s: belongs to nobody (65534)", first);
	assert_refused(NULL, name);
	snprintf(name, sizeof(name), "directory %s: belongs to nobody (65534)", own);
	assert_refused(NULL, name);
	make(named, 0700, geteuid());
	assert_chosen(named, named);
}

static void one_that_is_named_is_used_or_has_one_in_it(void **state)
{
	char link[2 * PATH_BYTES];
	(void)state;
	assert_chosen(named, named); /* made */
	assert_int_equal(mode_of(named), 0700);
	snprintf(link, sizeof(link), "%s/link", elsewhere);
	make(elsewhere, 0700, geteuid());
	assert_int_equal(symlink(named, link), 0);
	assert_chosen(link, link); /* the user has made it */
	assert_int_equal(unlink(link), 0);
	assert_int_equal(chmod(named, 02775), 0);
	assert_chosen(named, in_named);
	assert_int_equal(mode_of(named), 02775); /* it is not for us to change */
	if (!is_root)
		return;
	assert_int_equal(chmod(named, 01777), 0);
	assert_int_equal(chown(named, NOBODY, (gid_t)-1), 0);
	assert_chosen(named, in_named);
	assert_int_equal(chown(in_named, NOBODY, (gid_t)-1), 0);
	assert_refused(named, in_named);
}

static void the_environment_names_it(void **state)
{
	char dir[PATH_MAX], here[PATH_MAX];
	(void)state;
	setenv("WLB_SPOOL_DIR", named, 1);
	assert_chosen(NULL, named);
	assert_chosen(elsewhere, elsewhere);
	setenv("WLB_SPOOL_DIR", "", 1);
	assert_chosen(NULL, first);
	assert_int_equal(rmdir(first), 0);
	unsetenv("SLURM_SUBMIT_DIR");
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(base), 0);
	assert_chosen(NULL, first);
	assert_int_equal(wlb_spool_dir_choose("named", dir, NULL), 0);
	assert_string_equal(dir, named);
	assert_int_equal(chdir(here), 0);
}

/* As root's on a file system of a server that takes root for nobody, and in a submit directory of another user. */
static void one_that_cannot_be_made_is_left_to_the_writers(void **state)
{
	char dir[PATH_MAX];
	struct wlb_error error = {0};
	(void)state;
	if (!is_root)
		skip();
	assert_int_equal(seteuid(NOBODY), 0);
	assert_int_equal(wlb_spool_dir_choose(NULL, dir, &error), 0);
	assert_int_equal(seteuid(0), 0);
}

static void a_parent_that_is_a_file_is_left_to_the_writers(void **state)
{
	char dir[PATH_MAX], in_file[2 * PATH_BYTES];
	struct wlb_error error = {0};
	(void)state;
	FILE *file = fopen(elsewhere, "w");
	assert_non_null(file);
	fclose(file);
	snprintf(in_file, sizeof(in_file), "%s/x", elsewhere);
	assert_refused(in_file, "is no directory");
	assert_int_equal(wlb_spool_dir_choose(first, dir, &error), 0);
}

static void the_plugin_knows_both_names(void **state)
{
	char names[WLB_SPOOL_DIRS][PATH_MAX], longest[PATH_MAX];
	(void)state;
	assert_int_equal(wlb_spool_dir_names(NULL, "/home/a", 1000, names), 2);
	assert_string_equal(names[0], "/home/a/.wlb");
	assert_string_equal(names[1], "/home/a/.wlb-1000");
	assert_int_equal(wlb_spool_dir_names("/scratch", "/home/a", 1000, names), 2);
	assert_string_equal(names[0], "/scratch");
	assert_string_equal(names[1], "/scratch/.wlb-1000");
	assert_int_equal(wlb_spool_dir_names("", "", 1000, names), 0);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(wlb_spool_dir_names(longest, NULL, 1000, names), 0);
}

static int make_base(void **state)
{
	(void)state;
	if (mkdtemp(base) == NULL || chmod(base, 0755) != 0)
		return -1;
	is_root = geteuid() == 0;
	snprintf(first, sizeof(first), "%s/.wlb", base);
	snprintf(own, sizeof(own), "%s/.wlb-%u", base, (unsigned)geteuid());
	snprintf(named, sizeof(named), "%s/named", base);
	snprintf(in_named, sizeof(in_named), "%s/.wlb-%u", named, (unsigned)geteuid());
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", base);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	unsetenv("WLB_SPOOL_DIR");
	return setenv("SLURM_SUBMIT_DIR", base, 1);
}

static int tear_down(void **state)
{
	const char *paths[] = {in_named, first, own, named, elsewhere};
	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (unlink(paths[i]) != 0)
			rmdir(paths[i]);
	return 0;
}

static int remove_base(void **state)
{
	(void)state;
	return rmdir(base);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_made_in_the_submit_directory),
		TEST(one_of_the_owners_is_used),
		TEST(one_that_others_may_write_to_is_closed_to_them),
		TEST(beside_that_of_another_there_is_one_of_the_owners),
		TEST(a_link_or_a_file_is_none),
		TEST(where_both_are_anothers_it_says_what_to_do),
		TEST(one_that_is_named_is_used_or_has_one_in_it),
		TEST(the_environment_names_it),
		TEST(one_that_cannot_be_made_is_left_to_the_writers),
		TEST(a_parent_that_is_a_file_is_left_to_the_writers),
		TEST(the_plugin_knows_both_names),
	};
	return cmocka_run_group_tests(tests, make_base, remove_base);
}
