/* Saving: a checkpoint is whole or absent, whichever write fails and whenever the process is killed. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/sample_checkpoint.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/checkpoint.h"

static bool exchanges_names = true; /* whether the file system does */

int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	if (exchanges_names)
		return __real_renameat2(from_dir, from, to_dir, to, flags);
	errno = EINVAL;
	return -1;
}

static void test_permissions_are_what_the_umask_leaves(void **state)
{
	static const char *const names[] = {"shard_00000.safetensors", "packer.bin", "manifest.json"};
	struct sample_values values;
	char path[4096], file[4200];
	mode_t old = umask(027);
	sample_fill(&values, 1);
	sample_save_bands(*state, 60, &values, 1, 0, path);
	umask(old);
	for (int i = 0; i < 3; i++) {
		struct stat st;
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0640);
	}
}

/* wlb_checkpoint_commit returns the size of all files together. */
static void test_size(void **state)
{
	static const char *const names[] = {"shard_00000.safetensors", "packer.bin", "manifest.json"};
	struct sample_values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	char path[4096], file[4200];
	int64_t bytes;
	sample_fill(&values, 1);
	sample_parts(&values, parts);
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, &error), 0);
	assert_int_equal(whole_shard_save(sample_place(*state), 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_write_packer(sample_place(*state), 60, sample_packer_state,
	                                             sizeof(sample_packer_state), &error),
	                 0);
	assert_int_equal(wlb_checkpoint_commit(sample_place(*state), &sample_facts, 1, 0, path, &bytes, &error), 0);
	for (int i = 0; i < 3; i++) {
		struct stat st;
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		assert_int_equal(stat(file, &st), 0);
		bytes -= st.st_size;
	}
	assert_int_equal(bytes, 0);
}

/* A writer that fails leaves the others' folder alone. */
static void test_a_failed_shard_leaves_the_others(void **state)
{
	struct sample_values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	char path[4096];
	int64_t bytes;
	sample_fill(&values, 1);
	sample_parts(&values, parts);
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, &error), 0);
	assert_int_equal(whole_shard_save(sample_place(*state), 60, 0, parts, 2, &error), 0);
	parts[1].block.row_start = 1;
	assert_int_equal(whole_shard_save(sample_place(*state), 60, 1, parts, 2, &error), -1);
	assert_int_equal(fixture_entries(fixture_path(state, ".step_00000060.sample.partial")), 1);
	assert_int_equal(wlb_checkpoint_commit(sample_place(*state), &sample_facts, 2, 0, path, &bytes, &error), -1);
	wlb_checkpoint_abandon(sample_place(*state), 60);
	assert_int_equal(fixture_entries(*state), 0);
}

static void test_missing_shard_and_diverged_loss(void **state)
{
	struct wlb_checkpoint_facts facts = sample_facts;
	struct sample_values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	int64_t bytes;
	char path[4096];
	sample_fill(&values, 1);
	sample_parts(&values, parts);
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, &error), 0);
	assert_int_equal(whole_shard_save(sample_place(*state), 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(sample_place(*state), &facts, 2, 0, path, &bytes, &error), -1);
	assert_says(error.message, "shard_00001.safetensors: cannot be opened");
	wlb_checkpoint_abandon(sample_place(*state), 60);
	assert_int_equal(fixture_entries(*state), 0);
	facts.train_loss = NAN;
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, &error), 0);
	assert_int_equal(whole_shard_save(sample_place(*state), 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(sample_place(*state), &facts, 1, 0, path, &bytes, &error), -1);
	assert_says(error.message, "train_loss of step 60 is nan");
	wlb_checkpoint_abandon(sample_place(*state), 60);
	assert_int_equal(fixture_entries(*state), 0);
}

static void test_leftovers_are_removed_and_ignored(void **state)
{
	struct sample_values values;
	struct wlb_error error;
	char path[4096];
	sample_fill(&values, 1);
	assert_int_equal(mkdir(fixture_path(state, ".step_00000090.partial"), 0777), 0);
	fixture_write_text(state, ".step_00000090.partial/manifest.json", "{}");
	fixture_write_text(state, "notes.txt", "kept");
	assert_int_equal(wlb_checkpoint_newest(*state, path, &error), 0);
	sample_save_bands(*state, 10, &values, 1, 0, path);
	assert_int_equal(fixture_entries(*state), 2);
}

static void write_values(const struct wlb_save_place *place, int64_t step, float base)
{
	struct sample_values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	sample_fill(&values, base);
	sample_parts(&values, parts);
	if (whole_shard_save(place, step, 0, parts, 2, &error) < 0)
		fail_msg("%s", error.message);
}

/* Two runs that save the same step into one directory, where neither has its lock, publish their own shards. */
static void test_two_runs_do_not_mix(void **state)
{
	const struct wlb_save_place a = {.dir = *state, .id = "a"}, b = {.dir = *state, .id = "b"};
	struct wlb_checkpoint_facts other = sample_facts;
	struct sample_values of_a, of_b;
	struct wlb_error error;
	char path[4096];
	int64_t bytes;
	other.step = 70;
	sample_fill(&of_a, 1);
	sample_fill(&of_b, 2);
	assert_int_equal(wlb_checkpoint_begin(&a, 60, &error), 0);
	write_values(&a, 60, 1);
	assert_int_equal(wlb_checkpoint_begin(&b, 60, &error), 0);
	write_values(&b, 60, 2);
	assert_int_equal(wlb_checkpoint_commit(&a, &sample_facts, 1, 0, path, &bytes, &error), 0);
	sample_expect(path, &of_a);
	assert_int_equal(wlb_checkpoint_begin(&a, 70, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(&b, &sample_facts, 1, 0, path, &bytes, &error), 0);
	sample_expect(path, &of_b);
	write_values(&a, 70, 1);
	assert_int_equal(wlb_checkpoint_commit(&a, &other, 1, 0, path, &bytes, &error), 0);
	sample_expect(path, &of_a);
	assert_int_equal(fixture_entries(*state), 2);
}

/* Without the lock only their age says that partial folders of others were left behind. */
static void test_leftovers_beside_other_runs(void **state)
{
	const struct wlb_save_place place = {.dir = *state, .id = "own"};
	const struct timespec old[2] = {{.tv_sec = time(NULL) - 25 * 3600}, {.tv_sec = time(NULL) - 25 * 3600}};
	struct wlb_error error;
	static const char *const names[] = {".step_00000050.own.partial", ".step_00000050.new.partial",
	                                    ".step_00000050.old.partial", ".step_00000050.partial",
	                                    ".step_00000050.replaced"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(mkdir(fixture_path(state, names[i]), 0777), 0);
	assert_int_equal(utimensat(AT_FDCWD, fixture_path(state, names[2]), old, 0), 0);
	assert_int_equal(wlb_checkpoint_begin(&place, 60, &error), 0);
	assert_int_equal(fixture_entries(*state), 3);
	assert_true(fixture_exists(fixture_path(state, names[1])));
	assert_true(fixture_exists(fixture_path(state, names[3])));
	wlb_checkpoint_abandon(&place, 60);
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, &error), 0);
	assert_int_equal(fixture_entries(*state), 1);
}

/* Makes a hidden folder that an account without root's rights may not remove. */
static int make_kept(void **state, const char *name)
{
	char file[64];
	if (mkdir(fixture_path(state, name), 0777) < 0)
		return -1;
	snprintf(file, sizeof(file), "%s/.nfs01", name);
	fixture_write_text(state, file, "open");
	return chmod(fixture_path(state, name), 0500);
}

/* Saves beside hidden folders that it may not remove, of which one is of a step that is removed. Returns 0 when all
 * was well. */
static int save_beside_what_stays(void **state)
{
	struct sample_values values;
	struct wlb_error error;
	char path[4096];
	sample_fill(&values, 1);
	if (make_kept(state, ".step_00000040.replaced") < 0 || make_kept(state, ".step_00000060.replaced") < 0 ||
	    mkdir(fixture_path(state, ".step_00000050.partial"), 0777) < 0)
		return 1;
	for (int step = 60; step < 90; step += 10)
		if (sample_save(*state, step, &values, (struct sample_grid){1, 1}, 2, path, &error) < 0)
			return 2;
	int entries = fixture_entries(*state);
	chmod(fixture_path(state, ".step_00000040.replaced"), 0700); /* for the tear-down */
	chmod(fixture_path(state, ".step_00000060.replaced"), 0700);
	return entries == 4 ? 0 : 3;
}

/* The same step is saved three times, as on a file system that exchanges no names. */
static int save_again_beside_what_stays(void **state)
{
	struct sample_values values;
	struct wlb_error error;
	char path[4096];
	sample_fill(&values, 1);
	if (make_kept(state, ".step_00000060.replaced") < 0 || make_kept(state, ".step_00000060.sample.partial") < 0)
		return 1;
	exchanges_names = false;
	for (int i = 0; i < 3; i++)
		if (sample_save(*state, 60, &values, (struct sample_grid){1, 1}, 2, path, &error) < 0)
			return 2;
	int entries = fixture_entries(*state);
	chmod(fixture_path(state, ".step_00000060.replaced"), 0700);
	chmod(fixture_path(state, ".step_00000060.replaced.1"), 0700);
	return entries == 3 ? 0 : 3;
}

/* Calls save() in a child without root's rights, and skips the test where that is not allowed. */
static void assert_saves(int (*save)(void **state), void **state)
{
	const uid_t nobody = 65534;
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0 && geteuid() == 0 &&
	    (chown(*state, nobody, nobody) < 0 || setresgid(nobody, nobody, nobody) < 0 ||
	     setresuid(nobody, nobody, nobody) < 0))
		_exit(77);
	if (child == 0)
		_exit(save(state));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* root that may not become another account */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* What cannot be removed keeps neither a save from ending nor other folders from being removed. */
static void test_what_cannot_be_removed(void **state)
{
	assert_saves(save_beside_what_stays, state);
	assert_true(fixture_exists(fixture_path(state, ".step_00000040.replaced")));
	assert_true(fixture_exists(fixture_path(state, "step_00000070")));
	assert_true(fixture_exists(fixture_path(state, "step_00000080")));
}

static void test_same_step_beside_what_cannot_be_removed(void **state)
{
	assert_saves(save_again_beside_what_stays, state);
	assert_true(fixture_exists(fixture_path(state, "step_00000060/manifest.json")));
}

static void test_keep(void **state)
{
	struct sample_values values;
	char path[4096];
	sample_fill(&values, 1);
	for (int step = 1; step <= 5; step++)
		sample_save_bands(*state, step, &values, 1, 2, path);
	assert_int_equal(fixture_entries(*state), 2);
	assert_true(fixture_exists(fixture_path(state, "step_00000004")));
	assert_true(fixture_exists(fixture_path(state, "step_00000005")));
	/* A run set back to step 2 writes 3: later ones do not push it out. */
	sample_save_bands(*state, 3, &values, 1, 2, path);
	assert_true(fixture_exists(path));
	assert_int_equal(fixture_entries(*state), 3);
}

static void test_same_step_again(void **state)
{
	struct sample_values first, second;
	char path[4096];
	sample_fill(&first, 1);
	sample_fill(&second, 2);
	sample_save_bands(*state, 7, &first, 3, 0, path);
	sample_save_bands(*state, 7, &second, 2, 0, path);
	sample_expect(path, &second);
	assert_int_equal(fixture_entries(*state), 1);
	assert_int_equal(fixture_entries(path), 4);
}

/* What the child saves over and over must be whole at whatever moment it is killed. */
static void test_killed_at_any_time(void **state)
{
	char path[4096], newest[4096];
	struct wlb_error error;
	struct sample_values values;
	sample_fill(&values, 5);
	sample_save_bands(*state, 3, &values, 2, 2, path); /* from here on there is always one */
	for (int round = 0; round < 30; round++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			for (int step = 1;; step = step % 3 + 1)
				if (sample_save(*state, step, &values, (struct sample_grid){1, 2}, 2, path, &error) < 0)
					_exit(1);
		}
		usleep((unsigned)(1000 + 2000 * round));
		assert_int_equal(kill(child, SIGKILL), 0);
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status)); /* it had not failed */
		assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 1);
		sample_expect(newest, &values);
	}
}

/* The size at which a write fails, from the first byte on. */
static void test_failing_writes(void **state)
{
	char path[4096];
	struct wlb_error error;
	struct sample_values values;
	struct rlimit normal, limited;
	int failures = 0, successes = 0;
	sample_fill(&values, 5);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &normal), 0);
	for (rlim_t bytes = 0; successes == 0; bytes += 64) {
		limited = (struct rlimit){bytes, normal.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
		int rc = sample_save(*state, 60, &values, (struct sample_grid){2, 1}, 0, path, &error);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &normal), 0);
		if (rc == 0) {
			successes++;
			continue;
		}
		failures++;
		assert_says(error.message, "File too large");
		assert_true(strstr(error.message, ".safetensors") || strstr(error.message, "packer.bin") ||
		            strstr(error.message, "manifest.json"));
		assert_int_equal(fixture_entries(*state), 0);
	}
	assert_true(failures > 5);
	sample_expect(path, &values);
}

/* Runs in a child with a file system of its own. Returns 0 when all was well, 77 when it may not mount one. */
static int full_disk(void **state)
{
	char path[4096];
	struct wlb_error error;
	static float large[64 * 1024];
	struct wlb_tensor_part part = {"large", WLB_FLOAT32, {1, 64 * 1024, 1, 0, 64 * 1024, 0, 1}, {0, 0}, large, 0};
	struct wlb_checkpoint_facts facts = sample_facts;
	int64_t bytes;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", *state, "tmpfs", 0, "size=400k") < 0)
		return 77;
	for (int step = 1; step <= 2; step++) { /* the first fits, the second does not */
		facts.step = step;
		int rc = wlb_checkpoint_begin(sample_place(*state), step, &error);
		if (rc == 0)
			rc = whole_shard_save(sample_place(*state), step, 0, &part, 1, &error);
		if (rc == 0)
			rc = wlb_checkpoint_commit(sample_place(*state), &facts, 1, 1, path, &bytes, &error);
		if (rc < 0)
			wlb_checkpoint_abandon(sample_place(*state), step);
		if (rc != (step == 1 ? 0 : -1) || fixture_entries(*state) != 1)
			return 1;
	}
	if (strstr(error.message, "No space left on device") == NULL || strstr(error.message, ".safetensors") == NULL)
		return 2;
	return wlb_checkpoint_newest(*state, path, &error) == 1 && strstr(path, "step_00000001") ? 0 : 3;
}

static void test_full_disk(void **state)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(full_disk(state));
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* not root, or not allowed to mount */
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_permissions_are_what_the_umask_leaves, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_size, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_failed_shard_leaves_the_others, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_missing_shard_and_diverged_loss, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_leftovers_are_removed_and_ignored, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_two_runs_do_not_mix, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_leftovers_beside_other_runs, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_removed, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_same_step_beside_what_cannot_be_removed, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_keep, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_same_step_again, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_killed_at_any_time, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_failing_writes, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("checkpoint_save", tests, NULL, NULL);
}
