/* Processes of wlb-check-node whose parent has ended, and that no signal tells of it. The linker calls the functions
 * below in place of prctl and of that which loads NVML (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks/node/children.h"
#include "checks/node/gpu_watch.h"
#include "checks/node/nvml.h"
#include "common/seconds.h"

enum { WAIT_US = 1000 };

static const double WAIT_S = 20.0;

/* Shared by all processes of the test. */
static struct {
	atomic_int starter; /* the process that starts another */
	atomic_int started; /* that one */
	atomic_int waits;   /* for the end of the starter, before it asks for the signal */
	atomic_int worked;
} * shared;

int __real_prctl(int option, ...);
int __wrap_prctl(int option, ...);
int __wrap_wlb_nvml_load(struct wlb_nvml *nvml, struct wlb_error *error);

/* No signal comes, as where the parent ends before it is asked for. */
int __wrap_prctl(int option, ...)
{
	(void)option;
	atomic_store(&shared->started, getpid());
	while (atomic_load(&shared->waits) && getppid() == atomic_load(&shared->starter))
		usleep(WAIT_US);
	return 0;
}

static int begin(void)
{
	return WLB_NVML_DONE;
}

static int count_none(unsigned *count)
{
	*count = 0;
	return WLB_NVML_DONE;
}

static int make_set(struct wlb_nvml_events **set)
{
	*set = NULL;
	return WLB_NVML_DONE;
}

int __wrap_wlb_nvml_load(struct wlb_nvml *nvml, struct wlb_error *error)
{
	(void)error;
	*nvml = (struct wlb_nvml){
		.nvmlInit_v2 = begin, .nvmlDeviceGetCount_v2 = count_none, .nvmlEventSetCreate = make_set};
	return 0;
}

static int work(int index, const void *context, void *result, struct wlb_error *error)
{
	(void)index, (void)context, (void)result, (void)error;
	atomic_store(&shared->worked, 1);
	return 0;
}

static int start_work(void)
{
	struct wlb_children children;
	struct wlb_error error;
	atomic_store(&shared->waits, 1);
	return wlb_children_start(&children, 1, 1, work, NULL, &error);
}

static int start_watch(void)
{
	const struct wlb_check_options options = {.answer_s = WAIT_S};
	struct wlb_gpu_watch watch = {0};
	struct wlb_error error;
	return wlb_gpu_watch_start(&watch, &options, &error);
}

/* Starts a process that calls `start` and ends; its own child becomes one of this process. Returns whether that ends,
 * too. */
static int orphan_ends(int (*start)(void))
{
	int status;
	pid_t parent = fork();
	if (parent == 0) {
		atomic_store(&shared->starter, getpid());
		_exit(start() == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_int_equal(status, 0);
	for (double until_s = wlb_now_s() + WAIT_S; wlb_now_s() < until_s; usleep(WAIT_US))
		if (waitpid(-1, &status, WNOHANG) > 0)
			return 1;
	kill(atomic_load(&shared->started), SIGKILL);
	return 0;
}

static void a_child_whose_parent_has_ended_does_no_work(void **state)
{
	(void)state;
	assert_true(orphan_ends(start_work));
	assert_int_equal(atomic_load(&shared->worked), 0);
}

static void the_watch_of_gpus_ends_with_its_parent(void **state)
{
	(void)state;
	assert_true(orphan_ends(start_watch));
}

static int take_orphans(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared != MAP_FAILED ? __real_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) : -1;
}

static int reset(void **state)
{
	(void)state;
	atomic_store(&shared->waits, 0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_child_whose_parent_has_ended_does_no_work, reset),
		cmocka_unit_test_teardown(the_watch_of_gpus_ends_with_its_parent, reset),
	};
	return cmocka_run_group_tests(tests, take_orphans, NULL);
}
