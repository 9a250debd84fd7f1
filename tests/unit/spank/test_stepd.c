#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "spank/workarounds/stepd.h"

enum {
	STUCK_MS = 300,
	LOOK_MS = 20,
	STUCK_WITHIN_MS = 10000, /* on a busy machine */
	NEVER_MS = 1500,
};

static char folder[64], socket_path[128];
static pid_t child;

/* ---- the process that is watched: this program again ----------------------------------------------------------- */

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 4) == 0 ? fd : -1;
}

/* As PMIx_server_finalize does: waits for a lock that is not given back. */
static _Noreturn void wait_for_lock(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_mutex_lock(&lock);
}

static void *poll_for_ever(void *unused)
{
	for (;;)
		poll(NULL, 0, 10);
	return unused;
}

static _Noreturn void play(const char *part, const char *path)
{
	pthread_t thread;
	char line[WLB_STEPD_LINE] = "";
	struct wlb_stepd self;
	int fd = listen_at(path);
	if (wlb_stepd_self(7, 2, &self))
		wlb_stepd_format(&self, line);
	if (strcmp(part, "open") != 0)
		close(fd);
	if (strcmp(part, "gone") == 0)
		unlink(path);
	if (strcmp(part, "parent") == 0 && fork() == 0)
		wait_for_lock();
	if (strcmp(part, "threads") == 0)
		pthread_create(&thread, NULL, poll_for_ever, NULL);
	(void)!write(STDOUT_FILENO, line, strlen(line));
	close(STDOUT_FILENO);
	if (strcmp(part, "polls") == 0)
		poll_for_ever(NULL);
	for (volatile bool busy = strcmp(part, "busy") == 0; busy;)
		;
	wait_for_lock();
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/wlb-stepd-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(socket_path, sizeof(socket_path), "%s/n_1_7.2", folder);
	child = 0;
	return 0;
}

static int remove_folder(void **state)
{
	char command[128];
	(void)state;
	if (child > 0)
		kill(-child, SIGKILL);
	while (child > 0 && waitpid(child, NULL, 0) == child)
		;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void renew_folder(void **state)
{
	assert_int_equal(remove_folder(state), 0);
	assert_int_equal(make_folder(state), 0);
}

/* Starts the process, in a group of its own, and reads what it has noted. */
static void start_as(const char *part, struct wlb_stepd *stepd)
{
	char line[WLB_STEPD_LINE] = "";
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		setpgid(0, 0);
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl("/proc/self/exe", "slurmstepd", part, socket_path, NULL);
		_exit(127);
	}
	close(ends[1]);
	FILE *noted = fdopen(ends[0], "r");
	assert_non_null(fgets(line, sizeof(line), noted));
	fclose(noted);
	assert_true(wlb_stepd_parse(line, stepd));
	assert_int_equal(stepd->pid, child);
	assert_int_equal(stepd->step_id, 2);
	assert_string_equal(stepd->socket, socket_path);
}

static bool gets_stuck(struct wlb_stepd_watch *watch, int within_ms)
{
	bool stuck = false;
	for (int64_t until_ms = wlb_clock_ms() + within_ms; !stuck && wlb_clock_left_ms(until_ms) > 0;) {
		stuck = wlb_stepd_is_stuck(watch, STUCK_MS);
		wlb_clock_sleep_ms(LOOK_MS);
	}
	return stuck;
}

static void watch_as(const char *part, struct wlb_stepd_watch *watch)
{
	struct wlb_stepd stepd;
	start_as(part, &stepd);
	assert_true(wlb_stepd_watch_start(watch, &stepd));
}

static void kills_one_that_waits_without_socket_and_child(void **state)
{
	static const char *const parts[] = {"closed", "gone", "threads"};
	struct wlb_stepd_watch watch;
	int status;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		watch_as(parts[i], &watch);
		int64_t began_ms = wlb_clock_ms();
		assert_true(gets_stuck(&watch, STUCK_WITHIN_MS));
		assert_true(wlb_clock_ms() - began_ms >= STUCK_MS);
		assert_true(wlb_stepd_kill(&watch));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		assert_false(wlb_stepd_kill(&watch));
		child = 0;
		close(watch.pidfd);
		renew_folder(state);
	}
}

static void leaves_one_alone_that_is_of_use(void **state)
{
	static const char *const parts[] = {"open", "parent", "polls", "busy"};
	struct wlb_stepd_watch watch;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		watch_as(parts[i], &watch);
		if (gets_stuck(&watch, NEVER_MS))
			fail_msg("a process that is '%s' is taken for stuck", parts[i]);
		close(watch.pidfd);
		renew_folder(state);
	}
}

static void leaves_one_alone_that_is_stopped_or_traced(void **state)
{
	struct wlb_stepd_watch watch;
	(void)state;
	watch_as("closed", &watch);
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_false(gets_stuck(&watch, NEVER_MS));
	assert_int_equal(kill(child, SIGCONT), 0);
	assert_int_equal(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child, NULL, NULL), 0);
	assert_false(gets_stuck(&watch, NEVER_MS));
	close(watch.pidfd);
}

/* Each time that it has run, it has waited for no time. */
static void counts_from_when_it_last_ran(void **state)
{
	struct wlb_stepd_watch watch;
	(void)state;
	watch_as("closed", &watch);
	for (int64_t until_ms = wlb_clock_ms() + NEVER_MS; wlb_clock_left_ms(until_ms) > 0;) {
		assert_false(wlb_stepd_is_stuck(&watch, STUCK_MS));
		kill(child, SIGSTOP);
		kill(child, SIGCONT);
		wlb_clock_sleep_ms(LOOK_MS);
	}
	close(watch.pidfd);
}

static void takes_no_other_process_for_it(void **state)
{
	struct wlb_stepd_watch watch;
	struct wlb_stepd stepd;
	(void)state;
	start_as("closed", &stepd);
	stepd.started++; /* the pid of one that was started at another time */
	assert_false(wlb_stepd_watch_start(&watch, &stepd));
	stepd.started--;
	stepd.boot[0] ^= 1; /* and of one of an earlier boot */
	assert_false(wlb_stepd_watch_start(&watch, &stepd));
	stepd.boot[0] ^= 1;
	assert_true(wlb_stepd_watch_start(&watch, &stepd));
	close(watch.pidfd);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	child = 0;
	assert_false(wlb_stepd_watch_start(&watch, &stepd));
}

static void reads_only_what_it_has_written(void **state)
{
	static const char *const bad[] = {"",
	                                  "\n",
	                                  "x 5 b 2 /s/n1_7.2\n",
	                                  "0 5 b 2 /s/n1_7.2\n",
	                                  "-9 5 b 2 /s\n",
	                                  "12 5 b 2 s\n",
	                                  "12 5 2 /s/n1_7.2\n",
	                                  "12 5 b 2"};
	struct wlb_stepd stepd = {.pid = 12, .started = 5, .boot = "b", .step_id = 2, .socket = "/s/n 1_7.2"}, read;
	char line[WLB_STEPD_LINE], path[WLB_STEPD_SOCKET + 20];
	(void)state;
	assert_true(wlb_stepd_format(&stepd, line));
	assert_string_equal(line, "12 5 b 2 /s/n 1_7.2\n");
	assert_true(wlb_stepd_parse(line, &read));
	assert_int_equal(read.pid, 12);
	assert_int_equal(read.started, 5);
	assert_string_equal(read.boot, "b");
	assert_int_equal(read.step_id, 2);
	assert_string_equal(read.socket, stepd.socket);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(wlb_stepd_parse(bad[i], &read));
	snprintf(path, sizeof(path), "12 5 b 2 /%0*d\n", WLB_STEPD_SOCKET - 1, 0);
	assert_false(wlb_stepd_parse(path, &read));
	strcpy(stepd.socket, "/s\n13 5 b 2 /s");
	assert_false(wlb_stepd_format(&stepd, line));
	assert_false(wlb_stepd_self(7, 2, &stepd));
}

int main(int argc, char **argv)
{
	if (argc == 3)
		play(argv[1], argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kills_one_that_waits_without_socket_and_child, make_folder,
	                                        remove_folder),
		cmocka_unit_test_setup_teardown(leaves_one_alone_that_is_of_use, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(leaves_one_alone_that_is_stopped_or_traced, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(counts_from_when_it_last_ran, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(takes_no_other_process_for_it, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(reads_only_what_it_has_written, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
