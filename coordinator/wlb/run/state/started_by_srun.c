#include "coordinator/wlb/run/state/started_by_srun.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/proc_stat.h"

enum { ANCESTORS_MAX = 1000, TITLE_BYTES = 128 };

static const char stepd_title[] = "slurmstepd: [";

/* Reads how a process calls itself, "" where it cannot be read; a slurmstepd is "slurmstepd: [12.0]", or [12.batch]. */
static void read_title(pid_t pid, char title[TITLE_BYTES])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, title, TITLE_BYTES - 1) : -1;
	title[length > 0 ? length : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], line[WLB_PROC_STAT_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *parent = wlb_proc_stat_field(path, WLB_PROC_PARENT, line);
	return parent != NULL ? (pid_t)atoi(parent) : 0;
}

/* Whether the nearest slurmstepd above this process is that of the step. */
static bool is_in_step(const char *job, const char *step)
{
	char wanted[TITLE_BYTES], title[TITLE_BYTES] = "";
	pid_t pid = getppid();
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = parent_of(pid)) {
		read_title(pid, title);
		if (strncmp(title, stepd_title, strlen(stepd_title)) == 0)
			break;
	}
	int length = snprintf(wanted, sizeof(wanted), "%s%.20s.%.20s", stepd_title, job, step);
	/* The component of a heterogeneous job follows after '+'. */
	return strncmp(title, wanted, (size_t)length) == 0 && (title[length] == ']' || title[length] == '+');
}

int wlb_run_refuse_several(struct wlb_error *error)
{
	const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
	const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
	if (job == NULL || step == NULL || tasks == NULL || atoi(tasks) < 2 || !is_in_step(job, step))
		return 0;
	return wlb_fail(error,
	                "step %.20s.%.20s has %d tasks, and each would run the command on all nodes of the job: write "
	                "`wlb run -- COMMAND` without srun, which wlb run starts itself",
	                job, step, atoi(tasks));
}
