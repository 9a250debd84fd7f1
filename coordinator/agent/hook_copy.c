#include "coordinator/agent/hook_copy.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/own_file.h"
#include "follow/tail.h"

enum {
	PERIOD_MS = 200, /* `wlb run` waits longer for the last lines: coordinator/wlb/run/follow/hook.h */
	END_MS = 500,
	END_POLL_MS = 10,
	READ_BYTES = 65536,
};

/* ---- the process that copies ------------------------------------------------------------------------------------- */

/* Returns -1 where the copy has not got all bytes: nothing is appended to it any more. It is opened each time, since
 * its reader on another node sees what was written before a close. */
static int append(const char *path, const char *bytes, size_t count)
{
	int fd = wlb_own_file_open(path, O_WRONLY | O_APPEND, NULL);
	if (fd < 0)
		return -1;
	bool is_written = write(fd, bytes, count) == (ssize_t)count;
	return close(fd) == 0 && is_written ? 0 : -1;
}

/* Copies what is new. Returns -1 where it cannot. */
static int copy_new(const char *from, const char *to, struct wlb_tail_place *place)
{
	static char bytes[READ_BYTES];
	struct wlb_error error;
	size_t count;
	enum wlb_tail_result result;
	while ((result = wlb_tail_read(from, place, bytes, sizeof(bytes), &count, &error)) == WLB_TAIL_BYTES)
		if (append(to, bytes, count) != 0)
			return -1;
	return result == WLB_TAIL_NONE ? 0 : -1;
}

/* Ends once the agent has closed its end of the pipe, or has gone. */
static _Noreturn void run(const char *from, const char *to, int stop_fd)
{
	struct wlb_tail_place place = {0};
	struct pollfd stop = {.fd = STDIN_FILENO, .events = POLLIN};
	bool is_stopped = false;
	dup2(stop_fd, STDIN_FILENO);
	closefrom(STDERR_FILENO + 1);
	prctl(PR_SET_NAME, "wlb-hook-copy");
	while (!is_stopped) {
		is_stopped = poll(&stop, 1, PERIOD_MS) != 0;
		if (copy_new(from, to, &place) != 0)
			break;
	}
	unlink(from);
	_exit(0);
}

/* ---- the agent --------------------------------------------------------------------------------------------------- */

void wlb_agent_hook_copy_begin(struct wlb_agent_hook_copy *copy, const char *node)
{
	const char *from = getenv("WLB_HOOK_FILE"), *to = getenv("WLB_HOOK_COPY"), *of = getenv("WLB_HOOK_NODE");
	int ends[2];
	*copy = (struct wlb_agent_hook_copy){.stop_fd = -1};
	if (from == NULL || to == NULL || of == NULL || strcmp(of, node) != 0 || pipe2(ends, O_CLOEXEC) != 0)
		return;
	copy->pid = fork();
	if (copy->pid == 0)
		run(from, to, ends[0]);
	close(ends[0]);
	copy->stop_fd = ends[1];
}

void wlb_agent_hook_copy_end(struct wlb_agent_hook_copy *copy)
{
	int64_t until_ms = wlb_clock_ms() + END_MS;
	if (copy->stop_fd < 0)
		return;
	close(copy->stop_fd);
	copy->stop_fd = -1;
	while (copy->pid > 0 && waitpid(copy->pid, NULL, WNOHANG) == 0 && wlb_clock_left_ms(until_ms) > 0)
		wlb_clock_sleep_ms(END_POLL_MS);
}
