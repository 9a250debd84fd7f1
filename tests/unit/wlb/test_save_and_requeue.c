/* Whether a run that is stopped before the job's end continues, and what it says of that at its start. */
#include "coordinator/wlb/run/stop/save_and_requeue.h"

#include <limits.h>
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

#include "coordinator/slurm/slurm_api.h"

static char dir[] = "/tmp/wlb-save-XXXXXX";
static struct wlb_slurm_job slurm_job; /* slurmctld's answer */
static int questions;
static char printed[1024];

void __wrap_wlb_run_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
int __wrap_wlb_slurm_job(uint32_t job_id, struct wlb_slurm_job *job, struct wlb_error *error);

void __wrap_wlb_run_print(const char *format, ...)
{
	size_t used = strlen(printed);
	va_list args;
	va_start(args, format);
	vsnprintf(printed + used, sizeof(printed) - used, format, args);
	va_end(args);
}

int __wrap_wlb_slurm_job(uint32_t job_id, struct wlb_slurm_job *job, struct wlb_error *error)
{
	(void)job_id;
	(void)error;
	questions++;
	*job = slurm_job;
	return 1;
}

static bool continues(const char *save, const char *load)
{
	char save_path[PATH_MAX + 8], load_path[PATH_MAX];
	snprintf(save_path, sizeof(save_path), "--save=%s", save);
	snprintf(load_path, sizeof(load_path), "%s", load);
	char *command[] = {"wlb-worker", "train", save_path, "--load", load_path, NULL};
	const struct wlb_run run = {.options.command = command};
	return wlb_run_continues_from_save(&run);
}

static void check_names(void)
{
	char absolute[64];
	snprintf(absolute, sizeof(absolute), "%s/ck", dir);
	assert_true(continues("ck", "ck"));
	assert_true(continues("ck", "ck/"));
	assert_true(continues("./ck", "ck"));
	assert_true(continues("ck", ".//ck/."));
	assert_true(continues("new/../ck", "ck"));
	assert_true(continues("ck", absolute));
	assert_true(continues("link/ck", "ck"));
	assert_false(continues("ck", "ck2"));
	assert_false(continues("ck", "ck/ck"));
	assert_false(continues("ck", "link"));
	assert_false(continues("ck", "/ck"));
}

static void a_directory_may_have_several_names(void **state)
{
	(void)state;
	check_names();
	assert_int_equal(mkdir("ck", 0700), 0);
	check_names();
	assert_int_equal(rmdir("ck"), 0);
}

static void without_a_directory_nothing_continues(void **state)
{
	char *saves[] = {"wlb-worker", "train", "--save", "ck", NULL}, *other[] = {"train", NULL};
	struct wlb_run run = {.options.command = saves};
	(void)state;
	assert_false(wlb_run_continues_from_save(&run));
	run.options.command = other; /* its user says that it saves when it is asked */
	assert_true(wlb_run_continues_from_save(&run));
}

static const struct wlb_slurm_job requeued = {.batch = true, .requeue = true, .is_limited = true};

static const char *told(char **command, struct wlb_slurm_job job, struct wlb_run_limit limit, int64_t end_time)
{
	const struct wlb_run run = {.options.command = command, .limit = limit, .job.end_time = end_time};
	printed[0] = '\0';
	slurm_job = job;
	wlb_run_print_why_not_requeued(&run);
	return printed;
}

static void the_start_names_what_is_in_the_way(void **state)
{
	char *begins[] = {"wlb-worker", "train", "--save", "ck", NULL};
	char *goes_on[] = {"wlb-worker", "train", "--save", "ck", "--load", "./ck", NULL};
	char *finetunes[] = {"wlb-worker", "train", "--save", "ck", "--finetune", "--load", "base", NULL};
	const struct wlb_run_limit none = {0}, never = {.is_given = true};
	struct wlb_slurm_job kept = requeued, unlimited = requeued, interactive = requeued;
	kept.requeue = false;
	unlimited.is_limited = false;
	interactive.batch = false;
	(void)state;
	assert_string_equal(told(begins, requeued, none, 1),
	                    "the run will end at the job's time limit: a requeued job would start from step 0: give "
	                    "wlb-worker the same directory in --save and --load");
	assert_string_equal(told(goes_on, requeued, none, 1), "");
	assert_string_equal(told(finetunes, requeued, none, 1), "");
	assert_string_equal(told(begins, kept, none, 1), "");
	assert_string_equal(told(begins, unlimited, none, 1), "");
	assert_string_equal(told(begins, interactive, none, 1), "");
	assert_string_equal(told(begins, requeued, never, 1), "");
	questions = 0;
	assert_string_equal(told(begins, requeued, none, 0), ""); /* slurmctld has given no answer */
	assert_int_equal(questions, 0);
}

/* A script that starts wlb-worker is one. */
static void a_command_that_is_not_asked_to_save_is_named(void **state)
{
	char *script[] = {"bash", "-c", "exec wlb-worker train --save ck --load ck", NULL};
	const struct wlb_run_limit none = {0}, never = {.is_given = true}, given = {.is_given = true, .given_s = 60};
	struct wlb_slurm_job unlimited = requeued;
	unlimited.is_limited = false;
	(void)state;
	assert_string_equal(
		told(script, requeued, none, 1),
		"bash is not asked to save before the job's time limit unless it calls wlb.should_stop(); if it "
		"saves and stops at SIGUSR1, give --stop-before-end SECONDS to `wlb run`");
	assert_string_equal(told(script, requeued, never, 1), "");
	assert_string_equal(told(script, requeued, given, 1), "");
	assert_string_equal(told(script, unlimited, none, 1), "");
}

static int enter_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) != NULL && chdir(dir) == 0 ? symlink(".", "link") : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return unlink("link") == 0 ? rmdir(dir) : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_may_have_several_names),
		cmocka_unit_test(without_a_directory_nothing_continues),
		cmocka_unit_test(the_start_names_what_is_in_the_way),
		cmocka_unit_test(a_command_that_is_not_asked_to_save_is_named),
	};
	return cmocka_run_group_tests(tests, enter_dir, remove_dir);
}
