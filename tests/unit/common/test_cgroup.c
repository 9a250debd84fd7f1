/* The free memory of cgroups, from files in a folder in place of the kernel's: the linker calls the functions below in
 * place of fopen and access (--wrap). */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "planner/node_type.h"

static char folder[] = "/tmp/wlb-cgroup-XXXXXX";

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_access(const char *path, int mode);

/* Files of cgroups are in the folder under their own names, whatever the cgroup. */
static void find(const char *path, char found[PATH_MAX])
{
	snprintf(found, PATH_MAX, "%s/%s", folder, strrchr(path, '/') + 1);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	char found[PATH_MAX];
	int is_kernels = strncmp(path, "/sys/fs/cgroup/", 15) == 0 || strcmp(path, "/proc/self/cgroup") == 0;
	find(path, found);
	return __real_fopen(is_kernels ? found : path, mode);
}

int __wrap_access(const char *path, int mode)
{
	char found[PATH_MAX];
	struct stat status;
	(void)mode;
	find(path, found);
	return stat(found, &status);
}

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	find(name, path);
	FILE *file = __real_fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int make(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int empty(void **state)
{
	static const char *const names[] = {"cgroup",         "cgroup.controllers",    "memory.max",
	                                    "memory.current", "memory.limit_in_bytes", "memory.usage_in_bytes",
	                                    "memory.stat"};
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[PATH_MAX], name[64];
		snprintf(name, sizeof(name), "/%s", names[i]);
		find(name, path);
		unlink(path);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	return rmdir(folder);
}

/* A job that has read files: their pages are no memory that is missing. */
static void pages_of_files_are_free_in_version_2(void **state)
{
	(void)state;
	put("/cgroup", "0::/job\n");
	put("/cgroup.controllers", "memory\n");
	put("/memory.max", "1000000\n");
	put("/memory.current", "900000\n");
	assert_true(wlb_cgroup_free_bytes() == 100000.0);
	put("/memory.stat", "anon 300000\nfile 600000\nshmem 100000\ninactive_file 200000\nactive_file 300000\n");
	assert_true(wlb_cgroup_free_bytes() == 600000.0);
	put("/memory.max", "max\n");
	assert_true(isinf(wlb_cgroup_free_bytes()));
}

/* The numbers with total_ are those of the cgroups below, too, as its usage is. */
static void pages_of_files_are_free_in_version_1(void **state)
{
	(void)state;
	put("/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
	put("/memory.limit_in_bytes", "1000000\n");
	put("/memory.usage_in_bytes", "900000\n");
	assert_true(wlb_cgroup_free_bytes() == 100000.0);
	put("/memory.stat", "inactive_file 1\nactive_file 2\ntotal_inactive_file 200000\ntotal_active_file 300000\n");
	assert_true(wlb_cgroup_free_bytes() == 600000.0);
}

/* Of the cgroup and those above it; unlike the free memory it needs no usage. */
static void limits_are_those_of_the_job(void **state)
{
	(void)state;
	put("/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user\n");
	put("/cgroup.controllers", "memory\n");
	assert_true(isinf(wlb_cgroup_limit_bytes()));
	put("/memory.max", "200000000\n");
	assert_true(wlb_cgroup_limit_bytes() == 200e6);
	assert_true(wlb_node_memory_bytes() == 200e6);
	put("/cgroup", "3:memory:/slurm/uid_0/job_7\n");
	put("/memory.limit_in_bytes", "100000000\n");
	assert_true(wlb_cgroup_limit_bytes() == 100e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pages_of_files_are_free_in_version_2, empty),
		cmocka_unit_test_teardown(pages_of_files_are_free_in_version_1, empty),
		cmocka_unit_test_teardown(limits_are_those_of_the_job, empty),
	};
	return cmocka_run_group_tests(tests, make, end);
}
