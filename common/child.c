#include "common/child.h"

#include <errno.h>
#include <sys/wait.h>

#include "common/clock.h"

enum { PAUSE_MS = 2, UNKNOWN = W_EXITCODE(255, 0) };

int wlb_child_wait(pid_t child, int limit_ms, int *status)
{
	int64_t until_ms = wlb_clock_ms() + limit_ms;
	for (;;) {
		pid_t found = waitpid(child, status, WNOHANG);
		if (found == child)
			return 1;
		if (found < 0 && errno == EINTR)
			continue;
		*status = UNKNOWN;
		if (found < 0)
			return -1;
		if (wlb_clock_left_ms(until_ms) == 0)
			return 0;
		wlb_clock_sleep_ms(PAUSE_MS);
	}
}

int wlb_child_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
