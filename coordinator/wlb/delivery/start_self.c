#include "coordinator/wlb/delivery/start_self.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/child.h"

enum { FORK_MS = 1000 }; /* for a child that forks and ends; takes a millisecond */

static const char self[] = "/proc/self/exe";

static void exec_self(const char *const *argv)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	execv(self, (char *const *)argv);
	_exit(127);
}

static void redirect_to_null(int from, int to)
{
	int null = open("/dev/null", O_RDWR);
	for (int fd = from; null >= 0 && fd <= to; fd++)
		dup2(null, fd);
	close_range(3, ~0U, 0);
}

void wlb_start_detached(const char *const *argv)
{
	pid_t child = fork();
	if (child == 0) {
		/* Forks twice, so that a program that waits for its children does not see the new process. */
		if (fork() != 0)
			_exit(0);
		setsid();
		redirect_to_null(STDIN_FILENO, STDERR_FILENO);
		exec_self(argv);
	}
	int status;
	if (child > 0)
		wlb_child_wait(child, FORK_MS, &status);
}

pid_t wlb_start_child(const char *const *argv)
{
	pid_t parent = getpid();
	pid_t child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	redirect_to_null(STDIN_FILENO, STDOUT_FILENO);
	exec_self(argv);
	_exit(127);
}
