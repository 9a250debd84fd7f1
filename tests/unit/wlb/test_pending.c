/* The list of folders whose records wait, in a home that two clusters share. */
#include "coordinator/wlb/delivery/pending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/slurm/slurm_api.h"

static char home[] = "/tmp/wlb-pending-XXXXXX";
static const char *answer; /* slurmctld's; NULL: it does not answer */

int __wrap_wlb_slurm_open(struct wlb_error *error);
bool __wrap_wlb_slurm_config(const char *key, char *value, size_t size);

int __wrap_wlb_slurm_open(struct wlb_error *error)
{
	(void)error;
	return 0;
}

bool __wrap_wlb_slurm_config(const char *key, char *value, size_t size)
{
	assert_string_equal(key, "ClusterName");
	if (answer != NULL)
		snprintf(value, size, "%s", answer);
	return answer != NULL;
}

/* `expected`: the folders, each followed by a blank. */
static bool is_list(const char *expected)
{
	char text[4096] = "";
	int count;
	char **list = wlb_pending_list(&count);
	for (int i = 0; i < count; i++) {
		size_t used = strlen(text);
		snprintf(text + used, sizeof(text) - used, "%s ", list[i]);
	}
	wlb_strings_free(list, count);
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "listed: '%s', expected: '%s'\n", text, expected);
	return strcmp(text, expected) == 0;
}

static void expect(const char *expected)
{
	assert_true(is_list(expected));
}

static void be_on(const char *cluster)
{
	setenv("SLURM_CLUSTER_NAME", cluster, 1);
}

static void write_list(const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/wlb/pending", home);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void a_folder_is_of_the_cluster_that_listed_it(void **state)
{
	(void)state;
	be_on("a");
	wlb_pending_add("/x");
	wlb_pending_add("/y:/z");
	be_on("b");
	expect("");
	wlb_pending_add("/x");
	expect("/x ");
	be_on("a");
	expect("/x /y:/z ");
	be_on("b");
	wlb_pending_remove("/x");
	wlb_pending_remove("/y:/z"); /* which b has not listed */
	expect("");
	be_on("a");
	expect("/x /y:/z ");
	wlb_pending_remove("/x");
	wlb_pending_remove("/y:/z");
	expect("");
}

static void a_folder_is_listed_once(void **state)
{
	(void)state;
	be_on("a");
	wlb_pending_add("/x");
	wlb_pending_add("/x");
	expect("/x ");
	wlb_pending_remove("/x");
	expect("");
}

static void a_folder_without_a_cluster_is_of_all(void **state)
{
	(void)state;
	be_on("a");
	write_list("/x\nb:/y\nneither\nb\n");
	expect("/x ");
	be_on("b");
	expect("/x /y ");
	wlb_pending_remove("/x");
	expect("/y ");
	wlb_pending_remove("/y");
}

static void more_than_fit_drop_the_oldest(void **state)
{
	char dir[32];
	int count;
	(void)state;
	be_on("a");
	for (int i = 0; i < 258; i++) {
		snprintf(dir, sizeof(dir), "/x%d", i);
		wlb_pending_add(dir);
	}
	char **list = wlb_pending_list(&count);
	assert_int_equal(count, 256);
	assert_string_equal(list[0], "/x2");
	assert_string_equal(list[255], "/x257");
	wlb_strings_free(list, count);
	write_list("");
}

/* Which is asked once. */
static void outside_of_a_job_slurmctld_names_the_cluster(void **state)
{
	(void)state;
	write_list("a:/x\nb:/y\n");
	unsetenv("SLURM_CLUSTER_NAME");
	answer = "b";
	expect("/y ");
	answer = NULL;
	wlb_pending_add("/z");
	expect("/y /z ");
	be_on("a");
	expect("/x ");
}

/* In a process of its own, since a process asks once. */
static void a_cluster_that_is_not_known_leaves_what_is_listed(void **state)
{
	int status;
	(void)state;
	write_list("a:/x\n");
	pid_t child = fork();
	if (child == 0) {
		unsetenv("SLURM_CLUSTER_NAME");
		answer = NULL;
		wlb_pending_add("/x");
		wlb_pending_add("/y");
		wlb_pending_add("/y");
		_exit(is_list("/y ") ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	be_on("a");
	expect("/x /y ");
	wlb_pending_remove("/x");
	wlb_pending_remove("/y");
	expect("");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_is_of_the_cluster_that_listed_it),
		cmocka_unit_test(a_folder_is_listed_once),
		cmocka_unit_test(a_folder_without_a_cluster_is_of_all),
		cmocka_unit_test(more_than_fit_drop_the_oldest),
		cmocka_unit_test(a_cluster_that_is_not_known_leaves_what_is_listed),
		cmocka_unit_test(outside_of_a_job_slurmctld_names_the_cluster),
	};
	if (mkdtemp(home) == NULL || setenv("XDG_STATE_HOME", home, 1) != 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char command[64];
	snprintf(command, sizeof(command), "rm -r %s", home);
	return system(command) != 0 || failed != 0;
}
