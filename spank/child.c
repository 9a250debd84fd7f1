#include "spank/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/child.h"
#include "common/clock.h"

enum { END_MS = 500 }; /* for a child that has closed its pipe, or was killed */

/* The kernel spares slurmstepd where memory is short (oom_score_adj -1000), and no process of a user. The file belongs
 * to root while only the effective user is the job's. */
static void lose_protection(uid_t user)
{
	if (seteuid(0) != 0)
		return;
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "0", 1);
		close(fd);
	}
	if (seteuid(user) != 0)
		_exit(1);
}

/* Only the effective user of slurmstepd is the job's; this sets the others. */
static void become_user(void)
{
	uid_t user = geteuid();
	gid_t group = getegid();
	lose_protection(user);
	if (setresgid(group, group, group) != 0 || setresuid(user, user, user) != 0)
		_exit(1);
}

int wlb_child_start(struct wlb_child *child, int *report, struct wlb_error *error)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return wlb_fail(error, "pipe: %s", strerror(errno));
	*child = (struct wlb_child){.pid = fork(), .report = ends[0]};
	if (child->pid == 0) {
		become_user();
		*report = ends[1];
		return 0;
	}
	close(ends[1]);
	if (child->pid > 0)
		return 0;
	wlb_fail(error, "fork: %s", strerror(errno));
	close(ends[0]);
	return -1;
}

static int read_report(int report, int timeout_ms, const char *who, char *text, size_t size, struct wlb_error *error)
{
	int64_t deadline_ms = wlb_clock_ms() + timeout_ms;
	struct pollfd ready = {.fd = report, .events = POLLIN};
	text[0] = '\0';
	for (;;) {
		int n = poll(&ready, 1, wlb_clock_left_ms(deadline_ms));
		if (n > 0)
			break;
		if (n == 0)
			return wlb_fail(error, "no answer from %s within %d ms", who, timeout_ms);
		if (errno != EINTR)
			return wlb_fail(error, "poll: %s", strerror(errno));
	}
	ssize_t length = read(report, text, size - 1);
	text[length > 0 ? length : 0] = '\0';
	return 0;
}

int wlb_child_finish(struct wlb_child *child, int timeout_ms, const char *who, char *text, size_t size, int *status,
                     struct wlb_error *error)
{
	int result = read_report(child->report, timeout_ms, who, text, size, error);
	/* The child has reported everything, or is no longer waited for. */
	if (result != 0 || text[0] != '\0')
		kill(child->pid, SIGKILL);
	if (wlb_child_wait(child->pid, END_MS, status) == 0) {
		kill(child->pid, SIGKILL);
		wlb_child_wait(child->pid, END_MS, status);
	}
	close(child->report);
	return result;
}
