/* What a program finds when its command begins, whatever its parent has left it. */
#include "common/command.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Returns the exit code of a child; -1 where the kernel has discarded it. */
static int end_of_child(void)
{
	int status;
	pid_t child = fork();
	if (child == 0)
		_exit(7);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int wait_for_child(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return end_of_child();
}

static int wait_for_child_by_table(void *values, struct wlb_error *error)
{
	(void)values;
	(void)error;
	return end_of_child();
}

static const struct wlb_option_table no_options = {.command = "wait"};

static void sigchld_was_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(end_of_child(), -1);
}

static void a_command_learns_how_its_child_ended(void **state)
{
	static const struct wlb_command command = {
		.name = "wait", .options = &no_options, .values_bytes = 1, .run = wait_for_child_by_table};
	char *words[] = {"wait", NULL};
	(void)state;
	sigchld_was_ignored();
	assert_int_equal(wlb_command_main(&command, 1, words), 7);
}

static void so_does_a_command_of_a_program(void **state)
{
	static const struct wlb_command command = {.name = "wait", .options = &no_options, .main = wait_for_child};
	static const struct wlb_command *const commands[] = {&command};
	static const struct wlb_program program = {.name = "program", .commands = commands, .count = 1};
	char *words[] = {"program", "wait", NULL};
	(void)state;
	sigchld_was_ignored();
	assert_int_equal(wlb_program_main(&program, 2, words), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_learns_how_its_child_ended),
		cmocka_unit_test(so_does_a_command_of_a_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
