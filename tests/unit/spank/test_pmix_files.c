#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "spank/workarounds/pmix_files.h"

enum { NOBODY = 65534 };

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/wlb-pmix-files-XXXXXX");
	return mkdtemp(folder) != NULL && chmod(folder, 0755) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void make_path(char *path, size_t size, const char *name)
{
	assert_true((size_t)snprintf(path, size, "%s/%s", folder, name) < size);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static void make_file(const char *directory, const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%.2000s/%s", directory, name);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void make_files(struct wlb_pmix_files *files)
{
	make_path(files->socket, sizeof(files->socket), "stepd.slurm.pmix.7.2");
	make_path(files->server_dir, sizeof(files->server_dir), "pmix.7.2");
	make_path(files->tasks_dir, sizeof(files->tasks_dir), "spmix_appdir_65534_7.2");
	close(listen_at(files->socket));
	assert_int_equal(mkdir(files->server_dir, 0700), 0);
	make_file(files->server_dir, "contact");
	assert_int_equal(mkdir(files->tasks_dir, 0700), 0);
	make_file(files->tasks_dir, "session");
}

static void finds_the_spool_directory_by_its_own_socket(void **state)
{
	char path[PATH_MAX], spool[PATH_MAX] = "", node[PATH_MAX] = "";
	(void)state;
	make_path(path, sizeof(path), "n_1_7.2");
	assert_false(wlb_pmix_files_find_spool(7, 2, spool, node, sizeof(spool)));
	int fd = listen_at(path);
	assert_true(wlb_pmix_files_find_spool(7, 2, spool, node, sizeof(spool)));
	assert_string_equal(spool, folder);
	assert_string_equal(node, "n_1");
	assert_false(wlb_pmix_files_find_spool(7, 1, spool, node, sizeof(spool)));
	assert_false(wlb_pmix_files_find_spool(17, 2, spool, node, sizeof(spool)));
	close(fd);
}

static void a_socket_is_stale_only_where_nobody_listens(void **state)
{
	char path[PATH_MAX];
	(void)state;
	make_path(path, sizeof(path), "stepd.slurm.pmix.7.2");
	assert_false(wlb_pmix_socket_is_stale(path));
	make_file(folder, "stepd.slurm.pmix.7.2");
	assert_false(wlb_pmix_socket_is_stale(path));
	unlink(path);
	int fd = listen_at(path);
	assert_false(wlb_pmix_socket_is_stale(path));
	close(fd);
	assert_true(wlb_pmix_socket_is_stale(path));
}

static void removes_socket_and_directories(void **state)
{
	struct wlb_pmix_files files;
	(void)state;
	make_files(&files);
	assert_true(wlb_pmix_files_remove(&files, geteuid(), getegid()));
	assert_int_equal(access(files.socket, F_OK), -1);
	assert_int_equal(access(files.server_dir, F_OK), -1);
	assert_int_equal(access(files.tasks_dir, F_OK), -1);
	/* Nothing there is no failure. */
	assert_true(wlb_pmix_files_remove(&files, geteuid(), getegid()));
}

/* A link that the job's user has put in place of the directory is removed, and what it leads to is not. */
static void follows_no_link(void **state)
{
	struct wlb_pmix_files files;
	char other[PATH_MAX];
	(void)state;
	make_files(&files);
	make_path(other, sizeof(other), "other");
	assert_int_equal(rename(files.tasks_dir, other), 0);
	assert_int_equal(symlink(other, files.tasks_dir), 0);
	assert_true(wlb_pmix_files_remove(&files, geteuid(), getegid()));
	make_path(other, sizeof(other), "other/session");
	assert_int_equal(access(other, F_OK), 0);
}

/* The directory of the tasks is removed with no more rights than the job's user has. */
static void removes_as_the_jobs_user(void **state)
{
	struct wlb_pmix_files files;
	char path[PATH_MAX];
	(void)state;
	if (geteuid() != 0)
		skip();
	make_files(&files);
	assert_int_equal(chmod(folder, 01777), 0);
	assert_false(wlb_pmix_files_remove(&files, NOBODY, NOBODY));
	make_path(path, sizeof(path), "spmix_appdir_65534_7.2/session");
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(chown(files.tasks_dir, NOBODY, NOBODY), 0);
	assert_true(wlb_pmix_files_remove(&files, NOBODY, NOBODY));
}

/* The path is of the user's choice: what he cannot see there, slurmstepd does not look for as root. */
static void looks_at_the_tasks_directory_as_the_jobs_user_alone(void **state)
{
	struct wlb_pmix_files files;
	char hidden[PATH_MAX];
	(void)state;
	if (geteuid() != 0)
		skip();
	make_files(&files);
	make_path(hidden, sizeof(hidden), "hidden");
	assert_int_equal(mkdir(hidden, 0700), 0);
	make_path(files.tasks_dir, sizeof(files.tasks_dir), "hidden/spmix_appdir_65534_7.2");
	assert_false(wlb_pmix_files_remove(&files, NOBODY, NOBODY));
	assert_true(wlb_pmix_files_remove(&files, geteuid(), getegid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_the_spool_directory_by_its_own_socket, make_folder,
	                                        remove_folder),
		cmocka_unit_test_setup_teardown(a_socket_is_stale_only_where_nobody_listens, make_folder,
	                                        remove_folder),
		cmocka_unit_test_setup_teardown(removes_socket_and_directories, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(follows_no_link, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(removes_as_the_jobs_user, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(looks_at_the_tasks_directory_as_the_jobs_user_alone, make_folder,
	                                        remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
