/* Which files hold the output of an attempt. */
#include "coordinator/wlb/run/attempt/output_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/slurm/slurm_api.h"

static char folder[] = "/tmp/wlb-output-files-XXXXXX";

void __wrap_wlb_slurm_job_output(uint32_t job_id, char *out, char *error, size_t size);
void __wrap_wlb_slurm_job_output(uint32_t job_id, char *out, char *error, size_t size)
{
	snprintf(out, size, "/job-%u.out", job_id);
	snprintf(error, size, "/job-%u.err", job_id);
}

/* Finds the files with the words of --srun-args, while standard output is `fd`, or as it is where that is -1. */
static struct wlb_output_files find(int fd, char **words, int count)
{
	static struct wlb_output_files files;
	const struct wlb_run run = {.job = {.job_id = 7}, .options = {.srun_args = words, .srun_arg_count = count}};
	int kept[] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	wlb_run_output_files(&run, &files);
	dup2(kept[0], STDOUT_FILENO);
	dup2(kept[1], STDERR_FILENO);
	close(kept[0]);
	close(kept[1]);
	return files;
}

static void the_own_file_is_found(void **state)
{
	char path[64];
	(void)state;
	snprintf(path, sizeof(path), "%s/own", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_int_equal(write(fd, "before\n", 7), 7);
	struct wlb_output_files files = find(fd, NULL, 0);
	assert_string_equal(files.out.path, path);
	assert_int_equal(files.out.offset, 7);
	assert_string_equal(files.error.path, path);
	assert_false(files.is_labelled);
	close(fd);
	unlink(path);
}

static void a_pipe_ends_in_the_files_of_the_job(void **state)
{
	int ends[2];
	(void)state;
	assert_int_equal(pipe(ends), 0);
	struct wlb_output_files files = find(ends[1], NULL, 0);
	assert_string_equal(files.out.path, "/job-7.out");
	assert_string_equal(files.error.path, "/job-7.err");
	assert_int_equal(files.out.offset, 0);
	close(ends[0]);
	close(ends[1]);
}

static void options_of_srun_are_read(void **state)
{
	char *all[] = {"--label", "--output=/o-%t", "-e", "err"}, *none[] = {"-onone", "--output=all"};
	char *short_one[] = {"-o/x", "-l"}, cwd[64];
	int ends[2];
	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(chdir(folder), 0);
	struct wlb_output_files files = find(ends[1], all, 4);
	assert_string_equal(files.out.path, "/o-%t");
	assert_int_equal(files.out.offset, -1);
	snprintf(cwd, sizeof(cwd), "%s/err", folder);
	assert_string_equal(files.error.path, cwd);
	assert_true(files.is_labelled);
	files = find(ends[1], none, 1);
	assert_string_equal(files.out.path, "");
	files = find(ends[1], none, 2);
	assert_string_equal(files.out.path, "/job-7.out");
	files = find(ends[1], short_one, 2);
	assert_string_equal(files.out.path, "/x");
	assert_string_equal(files.error.path, "/x");
	assert_true(files.is_labelled);
	setenv("SLURM_STDOUTMODE", "/v", 1);
	setenv("SLURM_LABELIO", "1", 1);
	files = find(ends[1], NULL, 0);
	assert_string_equal(files.out.path, "/v");
	assert_true(files.is_labelled);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_own_file_is_found),
		cmocka_unit_test(a_pipe_ends_in_the_files_of_the_job),
		cmocka_unit_test(options_of_srun_are_read),
	};
	if (mkdtemp(folder) == NULL)
		return 1;
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return rc;
}
