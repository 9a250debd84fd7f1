#include "coordinator/agent/stacks_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

enum {
	PIDS_MAX = 64,
	LINE_BYTES = 2 * 1024 * 1024, /* 64 threads of 64 frames of 200 bytes, and what is around them */
};

struct reader {
	int fd;
	char *text;
	size_t length;
	const pid_t *pids;
	int count;
	void (*take)(int place, const json_t *printed, void *context);
	void *context;
};

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void run(const char *path, const pid_t *pids, int count, int output)
{
	char numbers[PIDS_MAX][16], *words[PIDS_MAX + 2] = {(char *)path};
	for (int i = 0; i < count; i++) {
		snprintf(numbers[i], sizeof(numbers[i]), "%d", (int)pids[i]);
		words[i + 1] = numbers[i];
	}
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	closefrom(STDERR_FILENO + 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(path, words);
	_exit(127);
}

/* Returns the process, and the descriptor from which its output is read; -1 where it cannot be started. */
static pid_t start(const char *path, const pid_t *pids, int count, int *output)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		run(path, pids, count, ends[1]);
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	*output = ends[0];
	return pid;
}

/* ---- its lines --------------------------------------------------------------------------------------------------- */

static void take_line(const struct reader *reader, const char *line, size_t length)
{
	json_t *printed = json_loadb(line, length, 0, NULL);
	json_int_t pid = json_integer_value(json_object_get(printed, "pid"));
	for (int i = 0; i < reader->count; i++)
		if (pid == reader->pids[i])
			reader->take(i, printed, reader->context);
	json_decref(printed);
}

static void take_lines(struct reader *reader)
{
	char *line = reader->text, *end = reader->text + reader->length, *newline;
	while ((newline = memchr(line, '\n', (size_t)(end - line))) != NULL) {
		take_line(reader, line, (size_t)(newline - line));
		line = newline + 1;
	}
	reader->length = (size_t)(end - line);
	memmove(reader->text, line, reader->length);
}

/* Returns 0 when the output has ended, or when it is no output of wlb-stacks. */
static int read_more(struct reader *reader)
{
	ssize_t got = read(reader->fd, reader->text + reader->length, LINE_BYTES - reader->length);
	if (got < 0 && errno == EINTR)
		return 1;
	if (got <= 0)
		return 0;
	reader->length += (size_t)got;
	take_lines(reader);
	return reader->length < LINE_BYTES;
}

static void read_until(struct reader *reader, int64_t until_ms)
{
	struct pollfd wait = {.fd = reader->fd, .events = POLLIN};
	while (wlb_clock_left_ms(until_ms) > 0)
		if (poll(&wait, 1, wlb_clock_left_ms(until_ms)) > 0 && !read_more(reader))
			return;
}

void wlb_stacks_program_run(const char *path, const pid_t *pids, int count, int64_t until_ms,
                            void (*take)(int place, const json_t *printed, void *context), void *context)
{
	struct reader reader = {.pids = pids,
	                        .count = count < PIDS_MAX ? count : PIDS_MAX,
	                        .text = malloc(LINE_BYTES),
	                        .take = take,
	                        .context = context};
	pid_t pid = reader.text != NULL ? start(path, pids, reader.count, &reader.fd) : -1;
	if (pid > 0) {
		read_until(&reader, until_ms);
		close(reader.fd);
		/* It may sleep in the kernel where it cannot be killed; then this process does not wait for it. */
		kill(pid, SIGKILL);
		waitpid(pid, NULL, WNOHANG);
	}
	free(reader.text);
}
