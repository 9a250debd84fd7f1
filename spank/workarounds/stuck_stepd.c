#include "spank/workarounds/stuck_stepd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "common/clock.h"
#include "spank/workarounds/stepd.h"

enum {
	NOTE_BYTES_MOST = 1024 * 1024, /* some 10,000 steps */
	STEPDS_MOST = 64,              /* that are there at the end of the job */
	STUCK_MS = 5000,
	WAIT_MS = 10000,
	POLL_MS = 100,
};

void wlb_stuck_stepd_note(uint32_t job_id, uint32_t step_id, int note)
{
	struct wlb_stepd stepd;
	char line[WLB_STEPD_LINE];
	struct stat about;
	if (wlb_stepd_self(job_id, step_id, &stepd) && wlb_stepd_format(&stepd, line) && fstat(note, &about) == 0 &&
	    about.st_size < NOTE_BYTES_MOST)
		(void)!write(note, line, strlen(line));
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

void wlb_stuck_stepd_end(uint32_t job_id, FILE *note)
{
	struct wlb_stepd_watch watches[STEPDS_MOST];
	int count = watch_noted(note, watches);
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
}
