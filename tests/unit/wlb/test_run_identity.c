/* Which `wlb run` of a job this is, also where Slurm does not say when the job was submitted, and after a requeue. */
#include "coordinator/wlb/run/state/run_identity.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/wlb/run/state/journal.h"

/* A thousand writes to a disk would take long. */
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	(void)fd;
	return 0;
}

static char dir[] = "/tmp/wlb-run-identity-XXXXXX";
static char path[64];

static char printed[1024];

void __wrap_wlb_run_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_wlb_run_print(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(printed, sizeof(printed), format, args);
	va_end(args);
}

/* A `wlb run` of job 12. */
struct process {
	struct wlb_run run;
	char text[64];
	char *command[8];
};

static void begin(struct process *p, int64_t submit_time, uint32_t restart_count, const char *words)
{
	char *rest;
	int used = 0;
	struct wlb_error error;
	*p = (struct process){.run.job = {.job_id = 12, .submit_time = submit_time, .restart_count = restart_count}};
	snprintf(p->text, sizeof(p->text), "%s", words);
	for (char *word = strtok_r(p->text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
		p->command[used++] = word;
	p->run.options.command = p->command;
	if (strncmp(p->text, "name:", 5) == 0) {
		p->run.options.name = p->text + 5;
		p->run.options.command++;
	}
	printed[0] = '\0';
	snprintf(p->run.job.spool_dir, sizeof(p->run.job.spool_dir), "%s", dir);
	assert_int_equal(wlb_run_journal_open(&p->run, &error), 0);
}

/* Sets `printed`. A first word `name:NAME` is the option. */
static int count(int64_t submit_time, uint32_t restart_count, const char *words, int *launch, struct wlb_error *error)
{
	struct process p;
	begin(&p, submit_time, restart_count, words);
	int rc = wlb_run_identify(&p.run, error);
	*launch = p.run.launch;
	wlb_run_journal_close(&p.run);
	return rc;
}

/* The coordinator gives a new run with this command the number `given`, where `launch` was counted. */
static void move(const char *words, int launch, int given)
{
	struct process p;
	begin(&p, 1000, 0, words);
	p.run.launch = p.run.journal.number = launch;
	wlb_run_identity_move(&p.run, given);
	assert_int_equal(p.run.launch, given);
	wlb_run_journal_close(&p.run);
}

static int launch_of(int64_t submit_time, uint32_t restart_count, const char *words)
{
	struct wlb_error error;
	int launch;
	assert_int_equal(count(submit_time, restart_count, words, &launch, &error), 0);
	return launch;
}

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void launches_of_one_start_are_counted(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train"), 1);
	assert_int_equal(launch_of(1000, 0, "train"), 2);
	assert_int_equal(launch_of(2000, 1, "train"), 1); /* requeued */
	assert_int_equal(launch_of(2000, 1, "train"), 2);
	assert_int_equal(launch_of(3000, 0, "train"), 1); /* another job of the same id */
	assert_int_equal(launch_of(3000, 0, "other"), 2);
}

/* slurmctld and wlbd are often on one host: without a count the second run would be recorded as the first. */
static void an_unknown_time_of_submission_is_of_the_same_job(void **state)
{
	(void)state;
	assert_int_equal(launch_of(4000, 0, "train"), 1);
	assert_int_equal(launch_of(0, 0, "train"), 2);
	assert_int_equal(launch_of(4000, 0, "train"), 3);
	assert_int_equal(launch_of(0, 0, "train"), 4);
	assert_int_equal(launch_of(4500, 0, "train"), 1); /* of another job: the time that was known is kept */
	assert_int_equal(launch_of(0, 1, "train"), 1);
	assert_int_equal(launch_of(5000, 1, "train"), 2);
	assert_int_equal(launch_of(6000, 1, "train"), 1); /* the time is known by now */
}

/* `wlb run A & wlb run B & wait`: after a requeue either may be the first that gets the file. */
static void a_command_keeps_its_number_over_a_requeue(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train a"), 1);
	assert_int_equal(launch_of(1000, 0, "train b"), 2);
	assert_int_equal(launch_of(2000, 1, "train b"), 2);
	assert_int_equal(launch_of(2000, 1, "train a"), 1);
	/* `[ -e done ] || wlb run A`, which is done. */
	assert_int_equal(launch_of(3000, 2, "train b"), 2);
	assert_int_equal(launch_of(3000, 2, "train c"), 3);
	/* A word that ends earlier is another one. */
	assert_int_equal(launch_of(3000, 2, "trai na"), 4);
}

static void equal_commands_keep_their_order(void **state)
{
	(void)state;
	for (uint32_t start = 0; start < 2; start++) {
		assert_int_equal(launch_of(1000 + start, start, "train a"), 1);
		assert_int_equal(launch_of(1000 + start, start, "train a"), 2);
		assert_int_equal(launch_of(1000 + start, start, "train b"), 3);
		assert_int_equal(launch_of(1000 + start, start, "train a"), 4);
	}
}

static void a_command_in_another_directory_is_another_one(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train"), 1);
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(launch_of(1000, 0, "train"), 2);
	assert_int_equal(launch_of(2000, 1, "train"), 2);
	assert_int_equal(chdir("/"), 0);
}

/* Such as the address of its first node, which is another one in each start. */
static void the_only_command_may_change_its_words(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train --master n1"), 1);
	assert_int_equal(launch_of(2000, 1, "train --master n7"), 1);
	assert_string_equal(printed, "");
	assert_int_equal(launch_of(3000, 2, "train --master n2"), 1);
}

/* Which of the two it is, nobody knows. */
static void no_run_of_several_continues_another(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train --master n1"), 1);
	assert_int_equal(launch_of(1000, 0, "test"), 2);
	assert_string_equal(printed, "");
	assert_int_equal(launch_of(2000, 1, "train --master n7"), 3);
	assert_non_null(strstr(printed, "begins a run of its own; name it"));
	assert_int_equal(launch_of(2000, 1, "test"), 2);
	assert_string_equal(printed, "");
}

static void a_name_is_kept_whatever_the_words_are(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "name:train train --master n1"), 1);
	assert_int_equal(launch_of(1000, 0, "name:test train --master n1"), 2);
	assert_int_equal(launch_of(1000, 0, "train --master n1"), 3);
	assert_int_equal(launch_of(2000, 1, "name:test train --master n7"), 2);
	assert_int_equal(launch_of(2000, 1, "train --master n1"), 3);
	assert_int_equal(launch_of(2000, 1, "name:train train --master n7"), 1);
	assert_string_equal(printed, "");
	/* One after the other, as in a loop. */
	assert_int_equal(launch_of(2000, 1, "name:test train --master n7"), 4);
	/* The only run of a job that has a name is no other's. */
	assert_int_equal(launch_of(9000, 0, "name:train train"), 1);
	assert_int_equal(launch_of(9500, 1, "train"), 2);
	assert_int_equal(launch_of(9500, 1, "name:other train"), 3);
}

static void equal_ones_at_once_are_told_to_take_names(void **state)
{
	struct process first, second;
	struct wlb_error error;
	(void)state;
	begin(&first, 1000, 0, "train");
	assert_int_equal(wlb_run_identify(&first.run, &error), 0);
	assert_int_equal(launch_of(1000, 0, "test"), 2);
	assert_string_equal(printed, "");
	assert_int_equal(launch_of(1000, 0, "train"), 3);
	assert_non_null(strstr(printed, "tell them apart by `wlb run --name NAME`"));
	begin(&second, 1000, 0, "name:train train");
	assert_int_equal(wlb_run_identify(&second.run, &error), 0);
	assert_int_equal(second.run.launch, 4);
	assert_string_equal(printed, "");
	int launch;
	assert_int_equal(count(1000, 0, "name:train train", &launch, &error), -1);
	assert_string_equal(error.message,
	                    "--name 'train': another `wlb run` of this job works under this name: give each "
	                    "a name of its own");
	assert_int_equal(launch_of(1000, 0, "test"), 5); /* the refused one has taken no number */
	wlb_run_journal_close(&first.run);
	wlb_run_journal_close(&second.run);
}

static void a_name_has_letters_and_digits(void **state)
{
	static const char *const good[] = {"a", "train-7b_v1.2",
	                                   "123456789012345678901234567890123456789012345678901234567890123"};
	static const char *const bad[] = {"", "a b", "a/b", "\xe9",
	                                  "1234567890123456789012345678901234567890123456789012345678901234"};
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(wlb_run_identity_check_name(good[i], &error), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wlb_run_identity_check_name(bad[i], &error), -1);
		assert_non_null(strstr(error.message, ": must have 1 to 63 letters, digits, '.', '_' and '-'"));
	}
}

/* Another `wlb run` of the job has its records elsewhere, and the numbers from 1 to 3. */
static void a_number_that_the_coordinator_gave_is_kept(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train a"), 1);
	move("train a", 1, 4);
	assert_int_equal(launch_of(1000, 0, "train b"), 5);
	move("train b", 5, 7);
	for (uint32_t start = 1; start <= 2; start++) {
		assert_int_equal(launch_of(1000 + start, start, "train b"), 7);
		assert_int_equal(launch_of(1000 + start, start, "train a"), 4);
		assert_int_equal(launch_of(1000 + start, start, "train a"), 8);
	}
	assert_int_equal(launch_of(9000, 0, "train c"), 1); /* another job of the same id */
}

/* Where the coordinator knows of another journal only. */
static void a_number_that_is_in_use_here_is_not_taken(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train a"), 1);
	assert_int_equal(launch_of(1000, 0, "train b"), 2);
	move("train b", 2, 1);
	assert_int_equal(launch_of(2000, 1, "train b"), 2);
	assert_int_equal(launch_of(2000, 1, "train a"), 1);
}

static void a_number_above_those_that_are_kept(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train a"), 1);
	move("train a", 1, 5000);
	assert_int_equal(launch_of(1000, 0, "train b"), 5001);
}

static void a_damaged_file_is_ignored(void **state)
{
	static const char *const texts[] = {"",
	                                    "x",
	                                    "[]",
	                                    "{\"submit_time\":1000",
	                                    "{\"highest\":-3}",
	                                    "{\"highest\":7,\"runs\":[]}",
	                                    "{\"submit_time\":\"x\"}",
	                                    "{\"runs\":7}",
	                                    "{\"runs\":[7]}",
	                                    "{\"runs\":[{\"key\":7}]}"};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_file(texts[i]);
		assert_int_equal(launch_of(1000, 0, "train"), 1);
	}
}

static void many_launches_are_counted(void **state)
{
	char words[32];
	(void)state;
	for (int i = 1; i <= 1100; i++) {
		snprintf(words, sizeof(words), "train %d", i);
		assert_int_equal(launch_of(1000, 0, words), i);
	}
	assert_int_equal(launch_of(2000, 1, "train 1024"), 1024);
	assert_int_equal(launch_of(2000, 1, "train 3"), 3);
}

/* A limit of the file's size takes the part of a full disk. */
static void the_count_survives_a_write_that_fails(void **state)
{
	struct rlimit before, none;
	struct wlb_error error;
	int first, again, other;
	(void)state;
	assert_int_equal(launch_of(1000, 0, "train a"), 1);
	assert_int_equal(launch_of(1000, 0, "train b"), 2);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	count(1000, 0, "train c", &first, &error);
	char told[sizeof(printed)];
	memcpy(told, printed, sizeof(told));
	count(1000, 1, "train b", &again, &error);
	count(1000, 1, "train a", &other, &error);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(told, "12.json: cannot be written: File too large; where the job is requeued"));
	assert_non_null(strstr(told, "set WLB_SPOOL_DIR to"));
	assert_int_equal(first, 3);
	assert_int_equal(again, 2);
	assert_int_equal(other, 1);
	assert_int_equal(launch_of(1000, 0, "train c"), 3);
}

/* The waiting time is over at once. */
int __wrap_wlb_clock_left_ms(int64_t until_ms);
int __wrap_wlb_clock_left_ms(int64_t until_ms)
{
	assert_true(until_ms <= wlb_clock_ms() + 10000);
	return 0;
}

static void another_process_that_keeps_the_lock_is_said(void **state)
{
	struct process other;
	struct wlb_error error;
	int launch;
	(void)state;
	begin(&other, 1000, 0, "train");
	json_t *content = wlb_run_journal_begin(&other.run, &error);
	assert_non_null(content);
	assert_int_equal(count(1000, 0, "train", &launch, &error), 0);
	assert_non_null(strstr(printed, "12.json: cannot be written: another process locks it"));
	assert_non_null(strstr(printed, "set WLB_SPOOL_DIR to"));
	assert_int_equal(launch, 1);
	wlb_run_journal_release(&other.run, content);
	assert_int_equal(count(1000, 0, "train", &launch, &error), 0);
	wlb_run_journal_close(&other.run);
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL || chdir("/") != 0)
		return -1;
	snprintf(path, sizeof(path), "%s/12.json", dir);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static int remove_dir(void **state)
{
	remove_file(state);
	return rmdir(dir);
}

#define TEST(name) cmocka_unit_test_setup(name, remove_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(launches_of_one_start_are_counted),
		TEST(an_unknown_time_of_submission_is_of_the_same_job),
		TEST(a_command_keeps_its_number_over_a_requeue),
		TEST(equal_commands_keep_their_order),
		TEST(a_command_in_another_directory_is_another_one),
		TEST(the_only_command_may_change_its_words),
		TEST(no_run_of_several_continues_another),
		TEST(a_name_is_kept_whatever_the_words_are),
		TEST(equal_ones_at_once_are_told_to_take_names),
		TEST(a_name_has_letters_and_digits),
		TEST(a_number_that_the_coordinator_gave_is_kept),
		TEST(a_number_that_is_in_use_here_is_not_taken),
		TEST(a_number_above_those_that_are_kept),
		TEST(a_damaged_file_is_ignored),
		TEST(many_launches_are_counted),
		TEST(the_count_survives_a_write_that_fails),
		TEST(another_process_that_keeps_the_lock_is_said),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
