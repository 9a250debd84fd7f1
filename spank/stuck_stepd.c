#include "spank/stuck_stepd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/slurm.h> /* SLURM_MAX_NORMAL_STEP_ID */

#include "common/clock.h"
#include "spank/state_dir.h"
#include "spank/stepd.h"

enum {
	NOTE_BYTES_MOST = 1024 * 1024, /* some 10,000 steps */
	STEPDS_MOST = 64,              /* that are there at the end of the job */
	STUCK_MS = 5000,
	WAIT_MS = 10000,
	POLL_MS = 100,
};

static void append(int fd, const struct wlb_stepd *stepd)
{
	char line[WLB_STEPD_LINE];
	struct stat about;
	if (wlb_stepd_format(stepd, line) && fstat(fd, &about) == 0 && about.st_size < NOTE_BYTES_MOST)
		(void)!write(fd, line, strlen(line));
}

void wlb_stuck_stepd_note(spank_t sp, const struct wlb_spank_args *args)
{
	struct wlb_stepd stepd;
	char name[NAME_MAX + 1];
	uint32_t job_id = 0, step_id = 0;
	if (spank_get_item(sp, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS || step_id > SLURM_MAX_NORMAL_STEP_ID ||
	    !wlb_state_dir_name(job_id, ".steps", name, sizeof(name)) || !wlb_stepd_self(job_id, step_id, &stepd))
		return;
	int state = wlb_state_dir_open(args, true);
	int fd = state >= 0 ? openat(state, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
	if (fd >= 0)
		append(fd, &stepd);
	else
		slurm_debug("wlb: %s: cannot be written: slurmstepd %d is not ended if it does not end after step "
		            "%u.%u: %s",
		            args->state_dir, (int)stepd.pid, job_id, step_id, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (state >= 0)
		close(state);
}

/* Opens the note and removes it: the job is over, or starts again with another note. */
static FILE *take_note(const struct wlb_spank_args *args, const char *name)
{
	int state = wlb_state_dir_open(args, false);
	int fd = state >= 0 ? openat(state, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
	FILE *note = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (fd >= 0)
		unlinkat(state, name, 0);
	if (fd >= 0 && note == NULL)
		close(fd);
	if (state >= 0)
		close(state);
	return note;
}

/* Watches the slurmstepds in the note that are still there. */
static int watch_noted(FILE *note, struct wlb_stepd_watch watches[STEPDS_MOST])
{
	char line[WLB_STEPD_LINE];
	struct wlb_stepd stepd;
	int count = 0;
	while (count < STEPDS_MOST && fgets(line, sizeof(line), note) != NULL)
		if (wlb_stepd_parse(line, &stepd) && wlb_stepd_watch_start(&watches[count], &stepd))
			count++;
	return count;
}

/* Waits for POLL_MS, or until one has ended. Returns how many are left, which are the first of the list. */
static int wait_for_ends(struct wlb_stepd_watch watches[STEPDS_MOST], int count)
{
	struct pollfd ends[STEPDS_MOST];
	int left = 0;
	for (int i = 0; i < count; i++)
		ends[i] = (struct pollfd){.fd = watches[i].pidfd, .events = POLLIN};
	poll(ends, (nfds_t)count, POLL_MS);
	for (int i = 0; i < count; i++)
		if (ends[i].revents == 0)
			watches[left++] = watches[i];
		else
			close(watches[i].pidfd);
	return left;
}

static void end_if_stuck(struct wlb_stepd_watch *watch, uint32_t job_id)
{
	if (!wlb_stepd_is_stuck(watch, STUCK_MS))
		return;
	watch->since_ms = wlb_clock_ms(); /* not again at once, if it cannot be killed */
	if (wlb_stepd_kill(watch))
		slurm_info("wlb: killed slurmstepd %d of step %u.%u: the step was over, its socket closed and no "
		           "process of it left, and for %d s it had only waited",
		           (int)watch->stepd.pid, job_id, watch->stepd.step_id, STUCK_MS / 1000);
	else if (errno != ESRCH)
		slurm_error("wlb: slurmstepd %d of step %u.%u is stuck, and cannot be killed: %s: kill it as root",
		            (int)watch->stepd.pid, job_id, watch->stepd.step_id, strerror(errno));
}

void wlb_stuck_stepd_end(spank_t sp, const struct wlb_spank_args *args)
{
	struct wlb_stepd_watch watches[STEPDS_MOST];
	char name[NAME_MAX + 1];
	uint32_t job_id = 0;
	if (spank_get_item(sp, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
	    !wlb_state_dir_name(job_id, ".steps", name, sizeof(name)))
		return;
	FILE *note = take_note(args, name);
	int count = note != NULL && args->end_stuck_stepd ? watch_noted(note, watches) : 0;
	for (int64_t until_ms = wlb_clock_ms() + WAIT_MS; count > 0 && wlb_clock_left_ms(until_ms) > 0;) {
		for (int i = 0; i < count; i++)
			end_if_stuck(&watches[i], job_id);
		count = wait_for_ends(watches, count);
	}
	for (int i = 0; i < count; i++) {
		slurm_error("wlb: slurmstepd %d of step %u.%u has not ended within %d s, and is left alone, since it "
		            "has not been idle for %d s: if it stays, look with gdb what it waits for, and kill it",
		            (int)watches[i].stepd.pid, job_id, watches[i].stepd.step_id, WAIT_MS / 1000,
		            STUCK_MS / 1000);
		close(watches[i].pidfd);
	}
	if (note != NULL)
		fclose(note);
}
