/* What old jobs have left in the spool directory, and what may still be needed. */
#include "coordinator/wlb/run/state/old_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/slurm/slurm_api.h"

enum { DAY_S = 24 * 3600, KNOWN_JOB = 7 };

static char dir[] = "/tmp/wlb-old-files-XXXXXX";
static bool slurm_answers;
static int questions;

int __wrap_wlb_slurm_job(uint32_t job_id, struct wlb_slurm_job *job, struct wlb_error *error);
int __wrap_wlb_slurm_job(uint32_t job_id, struct wlb_slurm_job *job, struct wlb_error *error)
{
	(void)error;
	memset(job, 0, sizeof(*job));
	questions++;
	return !slurm_answers ? -1 : job_id == KNOWN_JOB;
}

static const char *path_of(const char *name)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void make(const char *name, int age_days)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - age_days * DAY_S}};
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static bool is_there(const char *name)
{
	struct stat about;
	return lstat(path_of(name), &about) == 0;
}

static void start_job(uint32_t job_id)
{
	struct wlb_run_job job = {.job_id = job_id};
	snprintf(job.spool_dir, sizeof(job.spool_dir), "%s", dir);
	questions = 0;
	wlb_run_old_files_remove(&job);
}

static void files_of_old_jobs_are_removed(void **state)
{
	static const char *const names[] = {"5.json",
	                                    "machine-5.json",
	                                    "machine-5.3.json",
	                                    "machine-5-a.json",
	                                    "metrics-5-a-0.jsonl",
	                                    "stop-5-a",
	                                    "stop-5-a.step",
	                                    "machine-5.3-a100-sxm.json",
	                                    "error-5-a-b-0.json",
	                                    "trainer-5.yaml",
	                                    "trainer-5.2.yaml"};
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		make(names[i], 31);
	start_job(100);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(is_there(names[i]));
	assert_int_equal(questions, 1);
}

static void others_stay(void **state)
{
	static const struct {
		const char *name;
		int age_days;
	} files[] = {{"6.json", 29},   /* may be requeued after a long time in the queue */
	             {"7.json", 31},   /* Slurm knows the job */
	             {"100.json", 31}, /* of this job */
	             {"machine-100.2.json", 31},
	             {"5", 31},
	             {"5.txt", 31},
	             {"x5.json", 31},
	             {"5.2.json", 31},
	             {"5-a.json", 31},
	             {"5.json.txt", 31},
	             {"a-1.rank0.jsonl", 31},
	             {"5.2.jsonl", 31},
	             {".json", 31},
	             {"machine-a.json", 31},
	             {"machine-5.json.txt", 31},
	             {"machine-5.a.json", 31},
	             {"machine-5", 31},
	             {"error-5", 31},
	             {"error-a-5.json", 31},
	             {"error-100-a-0.json", 31},
	             {"metrics-100-a-0.jsonl", 31},
	             {"metrics-5-a-0.json", 31},
	             {"metrics-5.jsonl", 31},
	             {"stop-5", 31},
	             {"stop-100-a", 31},
	             {"stop-a-5", 31},
	             {"99999999999.json", 31}};
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		make(files[i].name, files[i].age_days);
	const struct timespec old[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 31 * DAY_S}};
	assert_int_equal(symlink("5", path_of("8.json")), 0);
	assert_int_equal(utimensat(AT_FDCWD, path_of("8.json"), old, AT_SYMLINK_NOFOLLOW), 0);
	start_job(100);
	assert_int_equal(unlink(path_of("8.json")), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_true(is_there(files[i].name));
		unlink(path_of(files[i].name));
	}
}

static void the_oldest_are_removed_first_and_a_few_at_a_time(void **state)
{
	char name[32];
	int left = 0;
	(void)state;
	for (int job = 1000; job > 900; job--) {
		snprintf(name, sizeof(name), "%d.json", job);
		make(name, 40);
	}
	start_job(2000);
	for (int job = 901; job <= 1000; job++) {
		snprintf(name, sizeof(name), "%d.json", job);
		assert_int_equal(is_there(name), job > 916);
	}
	for (int starts = 0; starts < 6; starts++)
		start_job(2000);
	for (int job = 901; job <= 1000; job++) {
		snprintf(name, sizeof(name), "%d.json", job);
		left += is_there(name);
	}
	assert_int_equal(left, 0);
}

/* While slurmctld is away, a start does not wait for it again and again. */
static void nothing_is_removed_where_slurm_does_not_answer(void **state)
{
	(void)state;
	make("5.json", 31);
	make("6.json", 31);
	slurm_answers = false;
	start_job(100);
	assert_true(is_there("5.json") && is_there("6.json"));
	assert_int_equal(questions, 1);
	slurm_answers = true;
	start_job(100);
	assert_false(is_there("5.json") || is_there("6.json"));
}

static int make_dir(void **state)
{
	(void)state;
	slurm_answers = true;
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_old_jobs_are_removed),
		cmocka_unit_test(others_stay),
		cmocka_unit_test(the_oldest_are_removed_first_and_a_few_at_a_time),
		cmocka_unit_test(nothing_is_removed_where_slurm_does_not_answer),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
