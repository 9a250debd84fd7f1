#include "worker/data/helper.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/child.h"
#include "common/clock.h"

enum { SLICE_MS = 200, SAID_BYTES = 4096 };

char *wlb_helper_path(const char *name, struct wlb_error *error)
{
	char program[PATH_MAX], *path;
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[length > 0 ? length : 0] = '\0';
	char *slash = strrchr(program, '/');
	if (slash == NULL) {
		wlb_fail(error, "/proc/self/exe: cannot be read: %s", strerror(errno));
		return NULL;
	}
	*slash = '\0';
	if (asprintf(&path, "%s/../share/wlb/python/corpus/%s", program, name) < 0) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	if (access(path, R_OK) == 0)
		return path;
	wlb_fail(error, "%s: cannot be read: %s: install WLB again", path, strerror(errno));
	free(path);
	return NULL;
}

static void close_pipes(struct wlb_helper *h)
{
	if (h->in >= 0)
		close(h->in);
	if (h->out >= 0)
		close(h->out);
	h->in = h->out = -1;
}

static void close_all(struct wlb_helper *h)
{
	close_pipes(h);
	if (h->said >= 0)
		close(h->said);
	h->said = -1;
}

/* Starts the program with `input` and `output`, which become its standard input and output. Returns the cause. */
static int spawn(struct wlb_helper *h, const char *const *argv, int input, int output)
{
	posix_spawn_file_actions_t actions;
	int cause = posix_spawn_file_actions_init(&actions);
	if (cause != 0)
		return cause;
	/* argv[0] and the words are not changed by posix_spawnp, whose type predates const. */
	char *const *words = (char *const *)(uintptr_t)argv;
	if ((cause = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)) == 0 &&
	    (cause = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)) == 0 &&
	    (cause = posix_spawn_file_actions_adddup2(&actions, h->said, STDERR_FILENO)) == 0)
		cause = posix_spawnp(&h->pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return cause;
}

int wlb_helper_start(struct wlb_helper *h, const char *const *argv, int input, struct wlb_error *error)
{
	int to[2] = {-1, -1}, from[2] = {-1, -1}, cause = 0;
	*h = (struct wlb_helper){0, -1, -1, -1};
	h->said = memfd_create("wlb-data-helper", MFD_CLOEXEC);
	if (h->said < 0 || pipe2(from, O_CLOEXEC) < 0 || (input < 0 && pipe2(to, O_CLOEXEC) < 0))
		cause = errno;
	h->in = to[1];
	h->out = from[0];
	/* A full pipe, or one without data, must not block this process: the waits are in poll. */
	if (cause == 0 && input < 0 &&
	    (fcntl(h->out, F_SETFL, O_NONBLOCK) < 0 || fcntl(h->in, F_SETFL, O_NONBLOCK) < 0))
		cause = errno;
	if (cause == 0)
		cause = spawn(h, argv, input < 0 ? to[0] : input, from[1]);
	if (to[0] >= 0)
		close(to[0]);
	if (from[1] >= 0)
		close(from[1]);
	if (cause == 0)
		return 0;
	h->pid = 0;
	close_all(h);
	return wlb_fail(error, "%s: cannot be started: %s", argv[0], strerror(cause));
}

/* Waits until `fd` is ready for `events`, or its other end is closed. */
static int wait_ready(int fd, short events, int64_t until_ms, const volatile sig_atomic_t *interrupted,
                      struct wlb_error *error)
{
	for (;;) {
		if (*interrupted)
			return wlb_fail(error, "interrupted");
		struct pollfd one = {.fd = fd, .events = events};
		int ready = poll(&one, 1, SLICE_MS);
		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return wlb_fail(error, "poll: %s", strerror(errno));
		if (wlb_clock_left_ms(until_ms) == 0)
			return wlb_fail(error, "it does not answer");
	}
}

int wlb_helper_write(const struct wlb_helper *h, const void *data, size_t bytes, int64_t limit_s,
                     const volatile sig_atomic_t *interrupted, struct wlb_error *error)
{
	const char *from = data;
	while (bytes > 0) {
		if (wait_ready(h->in, POLLOUT, wlb_clock_ms() + 1000 * limit_s, interrupted, error) < 0)
			return -1;
		ssize_t done = write(h->in, from, bytes);
		if (done < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (done < 0)
			return wlb_fail(error, "it takes nothing more: %s", strerror(errno));
		from += done;
		bytes -= (size_t)done;
	}
	return 0;
}

int wlb_helper_read(const struct wlb_helper *h, void *data, size_t bytes, int64_t limit_s,
                    const volatile sig_atomic_t *interrupted, struct wlb_error *error)
{
	char *to = data;
	while (bytes > 0) {
		if (wait_ready(h->out, POLLIN, wlb_clock_ms() + 1000 * limit_s, interrupted, error) < 0)
			return -1;
		ssize_t got = read(h->out, to, bytes);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return wlb_fail(error, "its output ends too early");
		to += got;
		bytes -= (size_t)got;
	}
	return 0;
}

/* Writes the last line of a file into `line`. */
static void last_line(int fd, char *line, size_t size)
{
	char text[SAID_BYTES + 1];
	off_t end = lseek(fd, 0, SEEK_END), begin = end > SAID_BYTES ? end - SAID_BYTES : 0;
	ssize_t got = pread(fd, text, SAID_BYTES, begin);
	size_t bytes = got > 0 ? (size_t)got : 0;
	while (bytes > 0 && isspace((unsigned char)text[bytes - 1]))
		bytes--;
	text[bytes] = '\0';
	const char *newline = memrchr(text, '\n', bytes);
	wlb_text_show(line, size, newline == NULL ? text : newline + 1);
}

int wlb_helper_end(struct wlb_helper *h, int64_t limit_s, char *said, size_t size)
{
	int status = 0;
	if (size > 0)
		said[0] = '\0';
	if (h->pid == 0)
		return 0;
	close_pipes(h);
	if (wlb_child_wait(h->pid, (int)(1000 * limit_s), &status) == 0) {
		kill(h->pid, SIGKILL);
		wlb_child_wait(h->pid, INT_MAX, &status);
	}
	h->pid = 0;
	if (size > 0)
		last_line(h->said, said, size);
	close_all(h);
	return wlb_child_code(status);
}
