/* What each attempt reads from its standard input, and after which there is no next one. */
#include "coordinator/wlb/run/command/input.h"

#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/file.h"

enum { KEPT = 1 << 20, WAIT_MS = 20 };

static char *command[] = {"train", NULL};
static char all[4 * KEPT];
static uid_t user; /* of sruns; 0: that of the test */

/* Makes `fd` the standard input of this process, and the input of a new run. */
static struct wlb_run open_run(int fd)
{
	struct wlb_run run = {.options.command = command};
	assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	if (fd != STDIN_FILENO)
		close(fd);
	wlb_run_input_open(&run);
	return run;
}

static void close_run(struct wlb_run *run)
{
	wlb_run_input_close(&run->input);
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	close(null);
}

/* In place of srun: reads as much of its input as there is, at most `most` bytes. Exit code 0: it is that of `all` from
 * `begin` on. */
static void read_input(size_t begin, size_t most)
{
	char *bytes = malloc(most + 1);
	size_t count = 0;
	ssize_t n = 1;
	while (bytes != NULL && count < most && (n = read(STDIN_FILENO, bytes + count, most - count)) > 0)
		count += (size_t)n;
	_exit(count == most && n >= 0 && memcmp(bytes, all + begin, most) == 0 ? 0 : 1);
}

/* One attempt, whose srun reads so many bytes, and more where they are there; those after `begin` must be read. */
static void attempt(struct wlb_run *run, size_t begin, size_t bytes)
{
	int status = -1;
	pid_t ended;
	assert_int_equal(wlb_run_input_begin(&run->input, NULL), 0);
	pid_t child = fork();
	if (child == 0) {
		if (user != 0 && setuid(user) != 0)
			_exit(1);
		wlb_run_input_take(&run->input);
		read_input(begin, bytes);
	}
	while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
		struct pollfd side = wlb_run_input_side(&run->input);
		if (poll(&side, 1, WAIT_MS) > 0)
			wlb_run_input_pass(&run->input);
	}
	wlb_run_input_end(&run->input);
	assert_int_equal(ended, child);
	assert_int_equal(status, 0);
}

static bool may_restart(const struct wlb_run *run)
{
	return wlb_run_input_check(&run->input, NULL) == 0;
}

static int file_of(size_t bytes)
{
	char path[] = "/tmp/wlb-input-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(wlb_write_all(fd, all, bytes), 0);
	return fd;
}

/* Returns the end to read of a pipe; a child writes into it what it is to bring, after which it ends, or stays open
 * while *writer is. */
static int pipe_of(size_t bytes, int *writer)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		_exit(wlb_write_all(ends[1], all, bytes) == 0 ? 0 : 1);
	}
	assert_true(child > 0);
	if (writer != NULL)
		*writer = ends[1];
	else
		close(ends[1]);
	return ends[0];
}

static void a_file_begins_where_it_stood_and_stays_there(void **state)
{
	(void)state;
	int fd = file_of(100000);
	lseek(fd, 7, SEEK_SET);
	struct wlb_run run = open_run(fd);
	for (int i = 0; i < 3; i++)
		attempt(&run, 7, 100000 - 7 - (size_t)i);
	assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_CUR), 7);
	assert_true(may_restart(&run));
	close_run(&run);
}

/* As of a user whose shell was started by another. */
static void a_file_that_may_not_be_opened_again_is_rewound(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	int fd = file_of(1000);
	lseek(fd, 7, SEEK_SET);
	struct wlb_run run = open_run(fd);
	user = 65534;
	attempt(&run, 7, 993);
	attempt(&run, 7, 993);
	user = 0;
	close_run(&run);
}

static void a_pipe_that_ends_is_kept_up_to_its_bound(void **state)
{
	static const size_t sizes[] = {0, 1, 65536, KEPT};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct wlb_run run = open_run(pipe_of(sizes[i], NULL));
		for (int n = 0; n < 3; n++) {
			attempt(&run, 0, sizes[i]);
			assert_true(may_restart(&run));
		}
		close_run(&run);
	}
}

static void a_longer_one_reaches_one_attempt(void **state)
{
	static const size_t sizes[] = {KEPT + 1, KEPT + 65537, 3 * KEPT + 5};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct wlb_run run = open_run(pipe_of(sizes[i], NULL));
		assert_true(may_restart(&run));
		attempt(&run, 0, sizes[i]);
		assert_false(may_restart(&run));
		close_run(&run);
	}
}

static void what_srun_did_not_consume_is_given_again(void **state)
{
	(void)state;
	struct wlb_run run = open_run(pipe_of(2 * KEPT, NULL));
	attempt(&run, 0, 0);
	attempt(&run, 0, 0);
	assert_true(may_restart(&run));
	attempt(&run, 0, 2 * KEPT);
	assert_false(may_restart(&run));
	close_run(&run);
}

static void a_pipe_that_stays_open_counts_what_was_consumed(void **state)
{
	struct wlb_error error;
	int writer;
	(void)state;
	struct wlb_run run = open_run(pipe_of(0, &writer));
	attempt(&run, 0, 0);
	assert_true(may_restart(&run));
	assert_int_equal(wlb_write_all(writer, all, 12), 0);
	attempt(&run, 0, 0);
	assert_true(may_restart(&run));
	attempt(&run, 0, 5);
	assert_int_equal(wlb_run_input_check(&run.input, &error), -1);
	assert_non_null(strstr(error.message, "5 bytes of its standard input"));
	close(writer);
	close_run(&run);
}

/* As the programs have that start jobs for web pages. */
static void a_socket_is_as_a_pipe(void **state)
{
	int ends[2];
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(wlb_write_all(ends[1], all, 1000), 0);
	close(ends[1]);
	struct wlb_run run = open_run(ends[0]);
	attempt(&run, 0, 1000);
	attempt(&run, 0, 1000);
	assert_true(may_restart(&run));
	close_run(&run);
}

static void a_terminal_is_not_read(void **state)
{
	int ends[2];
	(void)state;
	assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
	assert_int_equal(write(ends[0], "text\n", 5), 5);
	struct wlb_run run = open_run(ends[1]);
	pid_t child = fork();
	if (child == 0) {
		char byte;
		wlb_run_input_take(&run.input);
		_exit(read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close_run(&run);
}

/* srun reads another file, or none, and the input stays that of the script. */
static void what_srun_does_not_read_is_left_alone(void **state)
{
	static const struct {
		const char *words[2];
		bool is_read;
	} cases[] = {{{"--input=none", NULL}, false}, {{"-i", "none"}, false},     {{"-ifile", NULL}, false},
	             {{"--input", "file"}, false},    {{"--input=0", NULL}, true}, {{"-iall", NULL}, true}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *words[] = {strdup(cases[i].words[0]),
		                 cases[i].words[1] != NULL ? strdup(cases[i].words[1]) : NULL};
		struct wlb_run run = {
			.options = {.command = command, .srun_args = words, .srun_arg_count = words[1] ? 2 : 1}};
		int fd = pipe_of(1, NULL);
		dup2(fd, STDIN_FILENO);
		close(fd);
		wlb_run_input_open(&run);
		assert_int_equal(run.input.kind == WLB_RUN_INPUT_STREAM, cases[i].is_read);
		close_run(&run);
		free(words[0]);
		free(words[1]);
	}
}

static void closed_files_are_the_null_device(void **state)
{
	char name[64];
	(void)state;
	close(STDIN_FILENO);
	wlb_run_input_reserve();
	ssize_t length = readlink("/proc/self/fd/0", name, sizeof(name) - 1);
	assert_true(length > 0);
	name[length] = '\0';
	assert_string_equal(name, "/dev/null");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_begins_where_it_stood_and_stays_there),
		cmocka_unit_test(a_file_that_may_not_be_opened_again_is_rewound),
		cmocka_unit_test(a_pipe_that_ends_is_kept_up_to_its_bound),
		cmocka_unit_test(a_longer_one_reaches_one_attempt),
		cmocka_unit_test(what_srun_did_not_consume_is_given_again),
		cmocka_unit_test(a_pipe_that_stays_open_counts_what_was_consumed),
		cmocka_unit_test(a_socket_is_as_a_pipe),
		cmocka_unit_test(a_terminal_is_not_read),
		cmocka_unit_test(what_srun_does_not_read_is_left_alone),
		cmocka_unit_test(closed_files_are_the_null_device),
	};
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)(i * 2654435761U >> 24);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
