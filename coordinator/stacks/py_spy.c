#include "coordinator/stacks/py_spy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/child.h"
#include "common/clock.h"
#include "common/process_variable.h"

enum {
	OUTPUT_BYTES = 4 * 1024 * 1024,
	PATH_BYTES = 16384,
	KILLED_MS = 1000, /* a process that was killed ends once it gets a processor */
};

/* ---- where it is ------------------------------------------------------------------------------------------------- */

/* A program that a user has installed is started for processes of that user alone, by this program as that user. */
static bool is_ours(pid_t pid)
{
	char path[64];
	struct stat about;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &about) == 0 && about.st_uid == geteuid();
}

static bool runs_python(pid_t pid)
{
	char path[64], target[PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	const char *slash = strrchr(target, '/');
	return slash != NULL && strncmp(slash + 1, "python", 6) == 0;
}

static bool is_in(const char *folder, size_t length, char program[PATH_MAX])
{
	struct stat about;
	if (length == 0 || folder[0] != '/' ||
	    snprintf(program, PATH_MAX, "%.*s/py-spy", (int)length, folder) >= PATH_MAX)
		return false;
	return stat(program, &about) == 0 && S_ISREG(about.st_mode) && access(program, X_OK) == 0;
}

/* A virtual environment has it beside the interpreter by whose path the process was started. */
static bool is_beside_interpreter(pid_t pid, char program[PATH_MAX])
{
	char path[64], word[PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, word, sizeof(word) - 1) : 0;
	if (fd >= 0)
		close(fd);
	word[length > 0 ? length : 0] = '\0';
	const char *slash = strrchr(word, '/');
	return slash != NULL && is_in(word, (size_t)(slash - word), program);
}

static bool find_program(pid_t pid, char program[PATH_MAX])
{
	char path[PATH_BYTES];
	if (is_beside_interpreter(pid, program))
		return true;
	if (wlb_process_variable(pid, "PATH", path, sizeof(path)) != 0)
		return false;
	for (const char *folder = path; *folder != '\0';) {
		size_t length = strcspn(folder, ":");
		if (is_in(folder, length, program))
			return true;
		folder += length + (folder[length] == ':');
	}
	return false;
}

/* ---- what it prints ---------------------------------------------------------------------------------------------- */

static void run(const char *program, pid_t pid, int output)
{
	char number[16];
	int null = open("/dev/null", O_RDWR);
	snprintf(number, sizeof(number), "%d", (int)pid);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	closefrom(STDERR_FILENO + 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(program, program, "dump", "--nonblocking", "--json", "--pid", number, (char *)NULL);
	_exit(127);
}

/* Returns how many bytes were read until the end, the bound or the deadline. */
static size_t read_all(int fd, char *text, size_t size, int64_t until_ms)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	size_t length = 0;
	while (length < size && wlb_clock_left_ms(until_ms) > 0) {
		if (poll(&wait, 1, wlb_clock_left_ms(until_ms)) <= 0)
			continue;
		ssize_t got = read(fd, text + length, size - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	return length;
}

static json_t *dump(const char *program, pid_t pid, int64_t until_ms)
{
	int ends[2], status;
	char *text = malloc(OUTPUT_BYTES);
	if (text == NULL || pipe2(ends, O_CLOEXEC) != 0) {
		free(text);
		return NULL;
	}
	pid_t child = fork();
	if (child == 0)
		run(program, pid, ends[1]);
	close(ends[1]);
	size_t length = child > 0 ? read_all(ends[0], text, OUTPUT_BYTES, until_ms) : 0;
	close(ends[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		wlb_child_wait(child, KILLED_MS, &status);
	}
	json_t *threads = json_loadb(text, length, 0, NULL);
	free(text);
	return threads;
}

json_t *wlb_py_spy_dump(pid_t pid, int64_t until_ms)
{
	char program[PATH_MAX];
	return is_ours(pid) && runs_python(pid) && find_program(pid, program) ? dump(program, pid, until_ms) : NULL;
}
