#include "coordinator/wlb/run/command/input.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/wlb/run/command/command_words.h"

enum {
	END_MS = 1000,        /* within which the end of a pipe that is kept must come */
	KEPT_MAX = 1 << 20,   /* bytes of it */
	BYTES = KEPT_MAX + 1, /* one more shows that there are more; more than the pipe to srun takes */
};

static const char self_stdin[] = "/proc/self/fd/0";

/* ---- what it is -------------------------------------------------------------------------------------------------- */

void wlb_run_input_reserve(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", O_RDWR); /* takes the lowest number that is free */
}

/* Whether srun reads its standard input. By --input srun may read a file instead, or nothing; a number is the task that
 * gets the standard input. */
static bool is_read_by_srun(const struct wlb_run_options *options)
{
	const char *source = wlb_run_srun_value(options, 'i', "--input");
	if (source == NULL)
		source = getenv("SLURM_STDINMODE");
	return source == NULL || strcmp(source, "all") == 0 || isdigit((unsigned char)*source);
}

/* Reads what is there; sets has_ended where nothing will follow. */
static void fill(struct wlb_run_input *input)
{
	char *to = input->bytes + input->count;
	size_t most = BYTES - input->count;
	ssize_t n = recv(input->fd, to, most, MSG_DONTWAIT);
	if (n < 0 && errno == ENOTSOCK)
		n = read(input->fd, to, most);
	if (n > 0)
		input->count += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		input->has_ended = true;
}

/* Other processes may read the same pipe, and must go on to block. So the pipe is opened again without blocking, for
 * this process alone. */
static void open_stream(struct wlb_run_input *input)
{
	input->bytes = malloc(BYTES);
	if (input->bytes == NULL)
		return;
	input->kind = WLB_RUN_INPUT_STREAM;
	input->ends[0] = input->ends[1] = -1;
	input->fd = open(self_stdin, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (input->fd < 0)
		input->fd = STDIN_FILENO; /* a socket, or another user's pipe */
	int64_t until_ms = wlb_clock_ms() + END_MS;
	int left_ms;
	while (!input->has_ended && input->count < BYTES && (left_ms = wlb_clock_left_ms(until_ms)) > 0) {
		struct pollfd ready = {.fd = input->fd, .events = POLLIN};
		if (poll(&ready, 1, left_ms) > 0)
			fill(input);
	}
	input->is_kept = input->has_ended && input->count <= KEPT_MAX;
}

void wlb_run_input_open(struct wlb_run *run)
{
	struct wlb_run_input *input = &run->input;
	struct stat status;
	if (!is_read_by_srun(&run->options) || fstat(STDIN_FILENO, &status) != 0 ||
	    (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
		return;
	if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) {
		open_stream(input);
	} else if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) {
		input->offset = lseek(STDIN_FILENO, 0, SEEK_CUR);
		input->kind = input->offset >= 0 ? WLB_RUN_INPUT_FILE : WLB_RUN_INPUT_INHERITED;
	}
}

void wlb_run_input_close(struct wlb_run_input *input)
{
	if (input->kind == WLB_RUN_INPUT_STREAM && input->fd != STDIN_FILENO)
		close(input->fd);
	free(input->bytes);
	*input = (struct wlb_run_input){0};
}

/* ---- an attempt -------------------------------------------------------------------------------------------------- */

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* All has been given to srun where nothing is left and nothing will follow. */
static void close_if_done(struct wlb_run_input *input)
{
	if (input->has_ended && input->passed == input->count)
		close_end(&input->ends[1]);
}

int wlb_run_input_begin(struct wlb_run_input *input, struct wlb_error *error)
{
	if (input->kind != WLB_RUN_INPUT_STREAM)
		return 0;
	if (pipe2(input->ends, O_CLOEXEC) != 0)
		return wlb_fail(error, "srun cannot be started: no pipe for its standard input: %s", strerror(errno));
	fcntl(input->ends[1], F_SETFL, O_NONBLOCK);
	input->passed = 0;
	close_if_done(input);
	return 0;
}

void wlb_run_input_take(const struct wlb_run_input *input)
{
	int fd = -1;
	if (input->kind == WLB_RUN_INPUT_STREAM) {
		fd = input->ends[0];
	} else if (input->kind == WLB_RUN_INPUT_FILE) {
		fd = open(self_stdin, O_RDONLY | O_CLOEXEC);
		/* Where the permissions of the file do not let this process open it again, only this attempt can read
		 * the file. */
		lseek(fd >= 0 ? fd : STDIN_FILENO, input->offset, SEEK_SET);
	} else if (isatty(STDIN_FILENO)) {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0)
		dup2(fd, STDIN_FILENO);
}

struct pollfd wlb_run_input_side(const struct wlb_run_input *input)
{
	if (input->kind != WLB_RUN_INPUT_STREAM || input->ends[1] < 0)
		return (struct pollfd){.fd = -1};
	return input->passed < input->count ? (struct pollfd){.fd = input->ends[1], .events = POLLOUT}
	                                    : (struct pollfd){.fd = input->fd, .events = POLLIN};
}

void wlb_run_input_pass(struct wlb_run_input *input)
{
	if (input->passed < input->count) {
		ssize_t n = write(input->ends[1], input->bytes + input->passed, input->count - input->passed);
		input->passed += n > 0 ? (size_t)n : 0;
	} else {
		/* srun has consumed bytes of it: the pipe does not take as many. */
		if (input->count == BYTES) {
			input->dropped += (int64_t)input->count;
			input->count = input->passed = 0;
		}
		fill(input);
	}
	close_if_done(input);
}

static int64_t consumed(const struct wlb_run_input *input)
{
	int left = 0;
	if (input->ends[0] < 0 || ioctl(input->ends[0], FIONREAD, &left) != 0)
		return input->consumed;
	return input->consumed + input->dropped + (int64_t)input->passed - left;
}

void wlb_run_input_end(struct wlb_run_input *input)
{
	if (input->kind != WLB_RUN_INPUT_STREAM)
		return;
	input->consumed = consumed(input);
	input->dropped = 0;
	close_end(&input->ends[0]);
	close_end(&input->ends[1]);
}

int wlb_run_input_check(const struct wlb_run_input *input, struct wlb_error *error)
{
	if (input->kind != WLB_RUN_INPUT_STREAM || input->is_kept || consumed(input) == 0)
		return 0;
	return wlb_fail(
		error,
		"%" PRId64 " bytes of its standard input, a pipe, were consumed and cannot be given to another "
		"attempt; what is kept ends within %d s and has at most %d bytes: write it to a file, and start "
		"`wlb run ... < FILE`, or `< /dev/null` if the command reads nothing",
		consumed(input), END_MS / 1000, KEPT_MAX);
}
