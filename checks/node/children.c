#include "checks/node/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/seconds.h"

/* Exit codes of a child. */
enum { DONE = 0, REFUSED = 3, IN_USE = 4, UNABLE = 5 };

/* How long a killed child is waited for: one that hangs in the kernel cannot end. */
static const double KILLED_S = 0.2;

static char *results_of(const struct wlb_children *children)
{
	return (char *)(children->list + children->count);
}

void *wlb_child_result(const struct wlb_children *children, int index)
{
	return results_of(children) + (size_t)index * children->result_bytes;
}

/* A child that hangs must not hold the pipes of the caller, who waits for their end. */
static void leave_files(void)
{
	int null = open("/dev/null", O_RDWR);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	close_range(STDERR_FILENO + 1, ~0U, 0);
}

static void work_and_exit(struct wlb_children *children, int index, pid_t parent, wlb_child_work *work,
                          const void *context)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it has ended before, and no signal comes */
		_exit(REFUSED);
	leave_files();
	void *result = results_of(children) + (size_t)index * children->result_bytes;
	int rc = work(index, context, result, &children->list[index].error);
	_exit(rc == 0 ? DONE : rc == 1 ? IN_USE : rc == 2 ? UNABLE : REFUSED);
}

static void set_end(struct wlb_child *child, int status)
{
	child->pid = 0;
	child->status = status;
	if (child->end == WLB_CHILD_LATE)
		return;
	child->end = WLB_CHILD_BROKEN;
	if (WIFEXITED(status) && WEXITSTATUS(status) == DONE)
		child->end = WLB_CHILD_DONE;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		child->end = WLB_CHILD_REFUSED;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == IN_USE)
		child->end = WLB_CHILD_IN_USE;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == UNABLE)
		child->end = WLB_CHILD_UNABLE;
}

int wlb_children_left(struct wlb_children *children)
{
	int left = 0;
	for (int i = 0; i < children->count; i++) {
		struct wlb_child *child = &children->list[i];
		int status;
		if (child->pid > 0 && waitpid(child->pid, &status, WNOHANG) == child->pid)
			set_end(child, status);
		left += child->pid > 0;
	}
	return left;
}

/* Waits until all have ended, until_s at most. SIGCHLD is blocked, so that one that comes before the wait ends it. */
static void wait_for_all(struct wlb_children *children, const sigset_t *child, double until_s)
{
	double left_s;
	while (wlb_children_left(children) > 0 && (left_s = until_s - wlb_now_s()) > 0.0) {
		time_t whole_s = (time_t)left_s;
		struct timespec wait = {whole_s, (long)(1e9 * (left_s - (double)whole_s))};
		sigtimedwait(child, NULL, &wait);
	}
}

static void kill_late(struct wlb_children *children)
{
	for (int i = 0; i < children->count; i++)
		if (children->list[i].pid > 0) {
			children->list[i].end = WLB_CHILD_LATE;
			kill(children->list[i].pid, SIGKILL);
		}
}

static int start_all(struct wlb_children *children, wlb_child_work *work, const void *context, struct wlb_error *error)
{
	const pid_t parent = getpid();
	for (int i = 0; i < children->count; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return wlb_fail(error, "process %d of %d cannot be started: %s; raise the limit of processes",
			                i + 1, children->count, strerror(errno));
		if (pid == 0)
			work_and_exit(children, i, parent, work, context);
		children->list[i].pid = pid;
	}
	return 0;
}

static int map(struct wlb_children *children, int count, size_t result_bytes, struct wlb_error *error)
{
	size_t aligned_bytes = (result_bytes + 15) / 16 * 16;
	size_t bytes = (size_t)count * (sizeof(*children->list) + aligned_bytes);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return wlb_fail(error, "out of memory for the results of %d processes", count);
	children->count = count;
	children->result_bytes = aligned_bytes;
	children->mapped_bytes = bytes;
	children->list = memory;
	return 0;
}

int wlb_children_start(struct wlb_children *children, int count, size_t result_bytes, wlb_child_work *work,
                       const void *context, struct wlb_error *error)
{
	*children = (struct wlb_children){0};
	if (map(children, count, result_bytes, error) < 0)
		return -1;
	signal(SIGCHLD, SIG_DFL); /* where it was ignored the kernel would discard the ends */
	return start_all(children, work, context, error);
}

void wlb_children_finish(struct wlb_children *children, double limit_s)
{
	sigset_t child, before;
	children->limit_s = limit_s;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	wait_for_all(children, &child, wlb_now_s() + limit_s);
	kill_late(children);
	wait_for_all(children, &child, wlb_now_s() + KILLED_S);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int wlb_children_run(struct wlb_children *children, int count, size_t result_bytes, wlb_child_work *work,
                     const void *context, double limit_s, struct wlb_error *error)
{
	int rc = wlb_children_start(children, count, result_bytes, work, context, error);
	wlb_children_finish(children, rc == 0 ? limit_s : 0.0);
	return rc;
}

void wlb_children_free(struct wlb_children *children)
{
	if (children->list != NULL)
		munmap(children->list, children->mapped_bytes);
	*children = (struct wlb_children){0};
}

bool wlb_child_was_killed(const struct wlb_child *child)
{
	if (child->end != WLB_CHILD_BROKEN || !WIFSIGNALED(child->status))
		return false;
	int signal = WTERMSIG(child->status);
	return signal == SIGKILL || signal == SIGTERM || signal == SIGXCPU;
}

void wlb_child_describe(const struct wlb_children *children, int index, char *text, size_t size)
{
	const struct wlb_child *child = &children->list[index];
	if (child->end == WLB_CHILD_LATE)
		snprintf(text, size, "no answer within %.1f s", children->limit_s);
	else if (child->end == WLB_CHILD_REFUSED || child->end == WLB_CHILD_IN_USE || child->end == WLB_CHILD_UNABLE)
		snprintf(text, size, "%.300s", child->error.message);
	else if (WIFSIGNALED(child->status))
		snprintf(text, size, "the process ended by signal %d (%s)", WTERMSIG(child->status),
		         strsignal(WTERMSIG(child->status)));
	else
		snprintf(text, size, "the process ended with exit code %d", WEXITSTATUS(child->status));
}
