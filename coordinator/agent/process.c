#include "coordinator/agent/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/proc_stat.h"
#include "common/process_variable.h"

static const char *stat_field(pid_t pid, int field, char line[WLB_PROC_STAT_SIZE])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return wlb_proc_stat_field(path, field, line);
}

/* /proc/PID/stat reports the exit code 0 for a process that we may not inspect. */
static bool may_look_at(pid_t pid)
{
	char path[64], target[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return readlink(path, target, sizeof(target)) > 0;
}

int wlb_process_exit_code(pid_t pid)
{
	char line[WLB_PROC_STAT_SIZE];
	if (!may_look_at(pid))
		return -1;
	const char *state = stat_field(pid, WLB_PROC_STATE, line);
	if (state == NULL || *state != 'Z')
		return -1;
	const char *code = stat_field(pid, WLB_PROC_EXIT_CODE, line);
	if (code == NULL)
		return -1;
	int status = atoi(code);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

char wlb_process_state(pid_t pid)
{
	char line[WLB_PROC_STAT_SIZE];
	const char *state = stat_field(pid, WLB_PROC_STATE, line);
	return state != NULL ? *state : '?';
}

bool wlb_process_runs(pid_t pid)
{
	char state = wlb_process_state(pid);
	return state != '?' && state != 'Z' && state != 'X';
}

/* Whether the children of one thread, numbers and blanks, are others than us. */
static bool has_other_child(const char *path)
{
	FILE *file = fopen(path, "re");
	bool found = false;
	for (int child; file != NULL && !found && fscanf(file, "%d", &child) == 1;)
		found = child != getpid() && wlb_process_runs(child);
	if (file != NULL)
		fclose(file);
	return found;
}

bool wlb_process_has_other_child(pid_t pid)
{
	char path[320];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *threads = opendir(path);
	bool found = false;
	for (struct dirent *entry; threads != NULL && !found && (entry = readdir(threads)) != NULL;) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.200s/children", (int)pid, entry->d_name);
		found = has_other_child(path);
	}
	if (threads != NULL)
		closedir(threads);
	return found;
}

bool wlb_process_stopped(pid_t pid)
{
	char state = wlb_process_state(pid);
	return state == 'T' || state == 't';
}

/* ---- processes of a step ---------------------------------------------------------------------------------------- */

static bool holds(const char *environment, size_t length, const char *mark)
{
	size_t mark_length = strlen(mark);
	for (const char *variable = environment; variable < environment + length; variable += strlen(variable) + 1)
		if (strncmp(variable, mark, mark_length) == 0 && variable[mark_length] == '\0')
			return true;
	return false;
}

static bool is_marked(pid_t pid, const char *const *marks)
{
	size_t length;
	char *environment = wlb_process_environment(pid, &length);
	bool marked = environment != NULL && length > 0;
	for (int i = 0; marked && marks[i] != NULL; i++)
		marked = holds(environment, length, marks[i]);
	free(environment);
	return marked;
}

/* root could signal those of all users. */
static bool is_ours(pid_t pid)
{
	char path[64];
	struct stat about;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &about) == 0 && about.st_uid == geteuid();
}

/* Checks the process while the descriptor refers to it, so that no other process that is given the number later is
 * signalled. */
static bool signal_if_marked(pid_t pid, const char *const *marks, int number)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0 && errno != ENOSYS)
		return false;
	bool marked = is_ours(pid) && is_marked(pid, marks);
	if (marked && pidfd >= 0)
		syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
	else if (marked)
		kill(pid, number);
	if (pidfd >= 0)
		close(pidfd);
	return marked;
}

int wlb_process_signal_marked(const char *const *marks, int number)
{
	int count = 0;
	DIR *folder = opendir("/proc");
	for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		if (pid > 0 && pid != getpid())
			count += signal_if_marked(pid, marks, number);
	}
	if (folder != NULL)
		closedir(folder);
	return count;
}
