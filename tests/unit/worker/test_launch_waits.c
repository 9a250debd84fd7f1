/* The process ends where its PMIx server does not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <pmix.h>
#include <semaphore.h>

#include "worker/launch/launch.h"

enum { REFUSED = 2, FAILED = 7, HANGS_S = 20, WAIT_MS = 100 };

pmix_status_t __wrap_PMIx_Init(pmix_proc_t *me, pmix_info_t info[], size_t count);
pmix_status_t __wrap_PMIx_Finalize(const pmix_info_t info[], size_t count);
pmix_status_t __wrap_PMIx_Abort(int status, const char message[], pmix_proc_t procs[], size_t count);
int __real_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until);
int __wrap_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until);

static pmix_status_t hang(void)
{
	sleep(HANGS_S);
	return PMIX_ERROR;
}

pmix_status_t __wrap_PMIx_Init(pmix_proc_t *me, pmix_info_t info[], size_t count)
{
	(void)me, (void)info, (void)count;
	return hang();
}

pmix_status_t __wrap_PMIx_Finalize(const pmix_info_t info[], size_t count)
{
	(void)info, (void)count;
	return hang();
}

pmix_status_t __wrap_PMIx_Abort(int status, const char message[], pmix_proc_t procs[], size_t count)
{
	(void)status, (void)message, (void)procs, (void)count;
	return hang();
}

/* Waits for WAIT_MS instead of the minutes that are asked for. */
int __wrap_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
	struct timespec soon;
	clock_gettime(clock, &soon);
	assert_true(until->tv_sec > soon.tv_sec + 1);
	soon.tv_nsec += WAIT_MS * 1000000L;
	soon.tv_sec += soon.tv_nsec / 1000000000L;
	soon.tv_nsec %= 1000000000L;
	return __real_sem_clockwait(sem, clock, &soon);
}

/* Returns the exit code of a process that makes the call. */
static int exit_code_of(void (*call)(void))
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(HANGS_S / 2);
		call();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void open_launch(void)
{
	int code;
	struct wlb_error error;
	setenv("PMIX_NAMESPACE", "test", 1);
	wlb_launch_open(&code, &error);
}

static void disconnect(void)
{
	struct wlb_launch launch = {.has_server = 1, .size = 2, .exit_code = REFUSED};
	wlb_launch_disconnect(&launch);
}

static void abort_run(void)
{
	struct wlb_launch launch = {.has_server = 1, .size = 2};
	wlb_launch_abort(&launch, FAILED);
}

static void every_call_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(exit_code_of(open_launch), 1);
	assert_int_equal(exit_code_of(disconnect), REFUSED);
	assert_int_equal(exit_code_of(abort_run), FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_bounded),
	};
	return cmocka_run_group_tests_name("launch_waits", tests, NULL, NULL);
}
