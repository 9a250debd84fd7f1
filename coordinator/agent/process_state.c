#include "coordinator/agent/process_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/proc_stat.h"
#include "coordinator/agent/process.h"

uint64_t wlb_process_started(pid_t pid)
{
	char path[64], line[WLB_PROC_STAT_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *started = wlb_proc_stat_field(path, WLB_PROC_STARTED, line);
	return started != NULL ? strtoull(started, NULL, 10) : 0;
}

double wlb_process_age_s(uint64_t started)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - (double)started / (double)sysconf(_SC_CLK_TCK);
}

/* A process stopped by a signal before a debugger seized it still has the state T. */
static int has_tracer(pid_t pid)
{
	char path[64], line[256];
	long tracer = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "TracerPid:", 10) == 0)
			tracer = strtol(line + 10, NULL, 10);
	if (file != NULL)
		fclose(file);
	return tracer > 0;
}

enum wlb_process_condition wlb_process_condition(pid_t pid, uint64_t started)
{
	if (started == 0 || wlb_process_started(pid) != started)
		return WLB_PROCESS_GONE;
	switch (wlb_process_state(pid)) {
	case 't':
		return WLB_PROCESS_TRACED;
	case 'T':
		return has_tracer(pid) ? WLB_PROCESS_TRACED : WLB_PROCESS_STOPPED;
	case 'Z': /* a launcher may reap those that ended well after the last one */
		return wlb_process_exit_code(pid) > 0 ? WLB_PROCESS_DEAD : WLB_PROCESS_RUNS;
	case 'X':
	case '?':
		return WLB_PROCESS_GONE;
	default:
		return WLB_PROCESS_RUNS;
	}
}
