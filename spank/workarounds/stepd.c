#include "spank/workarounds/stepd.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/proc_stat.h"
#include "spank/workarounds/pmix_files.h"

/* Returns when the process was started; 0 if there is none. */
static uint64_t read_start(pid_t pid)
{
	char path[64], line[WLB_PROC_STAT_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *started = wlb_proc_stat_field(path, WLB_PROC_STARTED, line);
	return started != NULL ? strtoull(started, NULL, 10) : 0;
}

static bool read_boot(char boot[WLB_STEPD_BOOT])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	bool read = file != NULL && fgets(boot, WLB_STEPD_BOOT, file) != NULL;
	if (file != NULL)
		fclose(file);
	boot[read ? strcspn(boot, "\n") : 0] = '\0';
	return boot[0] != '\0';
}

bool wlb_stepd_self(uint32_t job_id, uint32_t step_id, struct wlb_stepd *stepd)
{
	char spool[WLB_STEPD_SOCKET], node[WLB_STEPD_SOCKET];
	*stepd = (struct wlb_stepd){.pid = getpid(), .started = read_start(getpid()), .step_id = step_id};
	return stepd->started != 0 && read_boot(stepd->boot) &&
	       wlb_pmix_files_find_spool(job_id, step_id, spool, node, sizeof(spool)) &&
	       snprintf(stepd->socket, WLB_STEPD_SOCKET, "%s/%s_%u.%u", spool, node, job_id, step_id) <
	               WLB_STEPD_SOCKET;
}

bool wlb_stepd_format(const struct wlb_stepd *stepd, char line[WLB_STEPD_LINE])
{
	return strchr(stepd->socket, '\n') == NULL &&
	       snprintf(line, WLB_STEPD_LINE, "%d %" PRIu64 " %s %" PRIu32 " %s\n", (int)stepd->pid, stepd->started,
	                stepd->boot, stepd->step_id, stepd->socket) < WLB_STEPD_LINE;
}

bool wlb_stepd_parse(const char *line, struct wlb_stepd *stepd)
{
	int pid = 0, path_at = 0;
	if (sscanf(line, "%d %" SCNu64 " %39s %" SCNu32 " %n", &pid, &stepd->started, stepd->boot, &stepd->step_id,
	           &path_at) != 4)
		return false;
	size_t length = strcspn(line + path_at, "\n");
	if (pid < 2 || line[path_at] != '/' || length >= sizeof(stepd->socket))
		return false;
	stepd->pid = pid;
	snprintf(stepd->socket, sizeof(stepd->socket), "%.*s", (int)length, line + path_at);
	return true;
}

bool wlb_stepd_watch_start(struct wlb_stepd_watch *watch, const struct wlb_stepd *stepd)
{
	char boot[WLB_STEPD_BOOT];
	*watch = (struct wlb_stepd_watch){.stepd = *stepd, .pidfd = (int)syscall(SYS_pidfd_open, stepd->pid, 0)};
	if (watch->pidfd < 0)
		return false;
	watch->since_ms = wlb_clock_ms();
	/* Read while the descriptor is open, so that what is read is of the process that the descriptor is of. */
	if (read_start(stepd->pid) == stepd->started && read_boot(boot) && strcmp(boot, stepd->boot) == 0)
		return true;
	close(watch->pidfd);
	return false;
}

/* Reads how often the main thread has given way to another. Returns whether it sleeps now. */
static bool read_main_thread(pid_t pid, uint64_t *switches)
{
	char path[64], line[256], state = '\0';
	uint64_t count;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	*switches = 0;
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		sscanf(line, "State: %c", &state);
		if (sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &count) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &count) == 1)
			*switches += count;
	}
	if (file != NULL)
		fclose(file);
	return state == 'S' && *switches > 0;
}

static bool is_closed(const char *path)
{
	struct stat about;
	return (lstat(path, &about) != 0 && errno == ENOENT) || wlb_pmix_socket_is_stale(path);
}

static bool is_live_child(const char *pid, pid_t parent)
{
	char path[300], line[WLB_PROC_STAT_SIZE];
	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	const char *state = wlb_proc_stat_field(path, WLB_PROC_STATE, line);
	if (state == NULL || *state == 'Z')
		return false;
	const char *parent_text = wlb_proc_stat_field(path, WLB_PROC_PARENT, line);
	return parent_text != NULL && strtol(parent_text, NULL, 10) == parent;
}

/* True where it cannot be told. */
static bool has_child(pid_t pid)
{
	DIR *processes = opendir("/proc");
	bool found = processes == NULL;
	for (const struct dirent *entry; !found && (entry = readdir(processes)) != NULL;)
		found = isdigit((unsigned char)entry->d_name[0]) && is_live_child(entry->d_name, pid);
	if (processes != NULL)
		closedir(processes);
	return found;
}

bool wlb_stepd_is_stuck(struct wlb_stepd_watch *watch, int stuck_ms)
{
	uint64_t switches;
	bool sleeps = read_main_thread(watch->stepd.pid, &switches);
	int64_t now_ms = wlb_clock_ms();
	if (!sleeps || switches != watch->switches || !is_closed(watch->stepd.socket)) {
		watch->switches = switches;
		watch->since_ms = now_ms;
		return false;
	}
	return now_ms - watch->since_ms >= stuck_ms && !has_child(watch->stepd.pid);
}

bool wlb_stepd_kill(const struct wlb_stepd_watch *watch)
{
	return syscall(SYS_pidfd_send_signal, watch->pidfd, SIGKILL, NULL, 0) == 0;
}
