#include "coordinator/stacks/thread_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/proc_stat.h"

/* Reads the first line of a file of the thread, printable and without its end; "" where it cannot be read. */
static void read_line(const struct wlb_thread *thread, const char *file, char *text, size_t size)
{
	char path[96];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)thread->pid, (int)thread->tid, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, size - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

void wlb_thread_look(struct wlb_thread *thread)
{
	char path[96], line[WLB_PROC_STAT_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)thread->pid, (int)thread->tid);
	const char *state = wlb_proc_stat_field(path, WLB_PROC_STATE, line);
	thread->state = state != NULL ? *state : '?';
	read_line(thread, "comm", thread->name, sizeof(thread->name));
	read_line(thread, "wchan", thread->waits_in, sizeof(thread->waits_in));
	if (strcmp(thread->waits_in, "0") == 0)
		thread->waits_in[0] = '\0';
}

long wlb_thread_system_call(pid_t pid, pid_t tid)
{
	struct wlb_thread thread = {.pid = pid, .tid = tid};
	char text[256], *end;
	read_line(&thread, "syscall", text, sizeof(text));
	long number = strtol(text, &end, 10);
	return end != text ? number : -1;
}

static void add_other_threads(pid_t pid, struct wlb_thread threads[WLB_THREADS_MAX], int *count, int *omitted)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid <= 0 || tid == pid)
			continue;
		if (*count < WLB_THREADS_MAX)
			threads[(*count)++] = (struct wlb_thread){.pid = pid, .tid = tid};
		else
			(*omitted)++;
	}
	if (folder != NULL)
		closedir(folder);
}

int wlb_threads_list(const pid_t *pids, int count, struct wlb_thread threads[WLB_THREADS_MAX], int *omitted)
{
	int listed = 0;
	*omitted = 0;
	for (int i = 0; i < count; i++)
		threads[listed++] = (struct wlb_thread){.pid = pids[i], .tid = pids[i]};
	for (int i = 0; i < count; i++)
		add_other_threads(pids[i], threads, &listed, omitted);
	return listed;
}
