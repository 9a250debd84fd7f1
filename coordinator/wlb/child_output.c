#include "coordinator/wlb/child_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/clock.h"

enum {
	PROGRAM_MS = 10000,
	KILLED_MS = 500, /* one that hangs in the kernel cannot end */
};

/* Reads until end of file or deadline, also from a program that writes without end; what does not fit is discarded. */
static bool read_output(int fd, char *output, size_t size, int64_t deadline_ms)
{
	char spare[4096];
	size_t have = 0;
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	int left_ms;
	while ((left_ms = wlb_clock_left_ms(deadline_ms)) > 0) {
		if (poll(&ready, 1, left_ms) <= 0)
			continue;
		bool full = have + 1 >= size;
		ssize_t n = read(fd, full ? spare : output + have, full ? sizeof(spare) : size - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		have += full ? 0 : (size_t)n;
		output[have] = '\0';
	}
	return false;
}

/* Forks; in the child, which gets 0, the two streams go into the pipe, whose reading end *pipe_fd is in the parent. */
static pid_t start_child(int *pipe_fd)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDONLY);
		dup2(null, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		return 0;
	}
	close(ends[1]);
	*pipe_fd = ends[0];
	return child;
}

static int finish_child(pid_t child, int pipe_fd, char *output, size_t size)
{
	int status;
	int64_t deadline_ms = wlb_clock_ms() + PROGRAM_MS;
	output[0] = '\0';
	bool whole = read_output(pipe_fd, output, size, deadline_ms);
	close(pipe_fd);
	int ended = wlb_child_wait(child, whole ? wlb_clock_left_ms(deadline_ms) : 0, &status);
	if (ended == 0) {
		kill(child, SIGKILL);
		ended = wlb_child_wait(child, KILLED_MS, &status);
	}
	return ended == 1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int wlb_output_of_program(char *const argv[], char *output, size_t size)
{
	int pipe_fd = -1;
	pid_t child = start_child(&pipe_fd);
	if (child == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	int code = child > 0 ? finish_child(child, pipe_fd, output, size) : 127;
	return code == 127 ? -1 : code;
}

int wlb_output_of_function(int (*function)(void), char *output, size_t size)
{
	int pipe_fd = -1;
	fflush(stdout); /* else the function may print it once more */
	pid_t child = start_child(&pipe_fd);
	if (child == 0)
		_exit(function());
	return child > 0 ? finish_child(child, pipe_fd, output, size) : -1;
}
