#include "coordinator/stacks/announced_handler.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/proc_stat.h"

enum {
	TEXT_BYTES = 256 * 1024,
	FRAMES_MAX = 64,
	SIGNAL_MAX = 64,
	LOOK_MS = 10,
	QUIET_MS = 40, /* after the last byte, until all was written */
	NAME_SIZE = 128,
};

/* ---- what was announced ------------------------------------------------------------------------------------------ */

/* Returns the signal; 0: the file is none of that name. */
static int announced_signal(const char *path)
{
	static const char name[] = "/memfd:" WLB_ANNOUNCED_HANDLER_FILE;
	char target[64], *end;
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	if (strncmp(target, name, sizeof(name) - 1) != 0)
		return 0;
	long number = strtol(target + sizeof(name) - 1, &end, 10);
	return number >= 1 && number <= SIGNAL_MAX && (*end == '\0' || *end == ' ') ? (int)number : 0;
}

/* Returns the descriptor of the process's file, to be closed, and its signal; -1: there is none. */
static int find_file(pid_t pid, int64_t until_ms, int *number)
{
	char path[320];
	int fd = -1;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder != NULL && fd < 0 && wlb_clock_left_ms(until_ms) > 0 && (entry = readdir(folder)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%.200s", (int)pid, entry->d_name);
		*number = announced_signal(path);
		if (*number > 0)
			fd = open(path, O_RDWR | O_CLOEXEC);
	}
	if (folder != NULL)
		closedir(folder);
	return fd;
}

static bool has_signal(const char *line, int number)
{
	return (strtoull(line, NULL, 16) >> (number - 1) & 1) != 0;
}

/* By the kernel: the main thread catches the signal, and can take it now. */
static bool may_signal(pid_t pid, int number)
{
	char path[64], line[256], stat[WLB_PROC_STAT_SIZE];
	bool is_caught = false, is_blocked = true;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *state = wlb_proc_stat_field(path, WLB_PROC_STATE, stat);
	if (state == NULL || (*state != 'R' && *state != 'S'))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "SigCgt:", 7) == 0)
			is_caught = has_signal(line + 7, number);
		if (strncmp(line, "SigBlk:", 7) == 0)
			is_blocked = has_signal(line + 7, number);
	}
	if (file != NULL)
		fclose(file);
	return is_caught && !is_blocked;
}

/* ---- what it writes ---------------------------------------------------------------------------------------------- */

/* Takes a line such as '  File "/home/a/train.py", line 12 in step'. */
static json_t *frame_of(const char *line)
{
	static const char begin[] = "  File \"", middle[] = "\", line ";
	char name[NAME_SIZE];
	if (strncmp(line, begin, sizeof(begin) - 1) != 0)
		return NULL;
	const char *file = line + sizeof(begin) - 1, *after = strstr(file, middle);
	const char *end = strchr(file, '\n');
	if (after == NULL || (end != NULL && after > end))
		return NULL;
	int number = atoi(after + sizeof(middle) - 1);
	const char *in = strstr(after, " in ");
	if (end != NULL && in != NULL && in > end)
		in = NULL;
	snprintf(name, sizeof(name), "%.*s", in != NULL ? (int)strcspn(in + 4, "\n") : 1, in != NULL ? in + 4 : "?");
	return json_pack("{s:s, s:s%, s:i}", "name", name, "filename", file, (size_t)(after - file), "line", number);
}

json_t *wlb_announced_handler_read(const char *text, pid_t pid)
{
	const char *line = strstr(text, "Current thread ");
	json_t *frames = json_array();
	for (line = line != NULL ? strchr(line, '\n') : NULL; line != NULL && json_array_size(frames) < FRAMES_MAX;
	     line = strchr(line + 1, '\n')) {
		json_t *frame = frame_of(line + 1);
		if (frame == NULL)
			break;
		json_array_append_new(frames, frame);
	}
	if (json_array_size(frames) > 0)
		return json_pack("[{s:i, s:o}]", "os_thread_id", (int)pid, "frames", frames);
	json_decref(frames);
	return NULL;
}

/* Waits until nothing more is written. */
static void wait_for_text(int fd, int64_t until_ms)
{
	struct stat about;
	off_t size = 0;
	int64_t changed_ms = wlb_clock_ms();
	while (wlb_clock_left_ms(until_ms) > 0 && fstat(fd, &about) == 0) {
		if (about.st_size != size)
			changed_ms = wlb_clock_ms();
		size = about.st_size;
		if (size > 0 && wlb_clock_ms() - changed_ms >= QUIET_MS)
			return;
		wlb_clock_sleep_ms(LOOK_MS);
	}
}

json_t *wlb_announced_handler_dump(pid_t pid, int64_t until_ms)
{
	int number = 0, fd = find_file(pid, until_ms, &number);
	char *text = fd >= 0 ? malloc(TEXT_BYTES) : NULL;
	json_t *threads = NULL;
	/* Of the main thread: its stack is marked as the current one. What was written before is removed. */
	if (text != NULL && may_signal(pid, number) && ftruncate(fd, 0) == 0 &&
	    syscall(SYS_tgkill, pid, pid, number) == 0) {
		wait_for_text(fd, until_ms);
		ssize_t length = pread(fd, text, TEXT_BYTES - 1, 0);
		text[length > 0 ? length : 0] = '\0';
		threads = wlb_announced_handler_read(text, pid);
	}
	free(text);
	if (fd >= 0)
		close(fd);
	return threads;
}
