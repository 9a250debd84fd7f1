/*
 * A slurmstepd that has noted itself, and whether it is stuck after its step: nothing of the step is left to it, and it
 * waits for something that does not come. Nothing here calls Slurm.
 *
 * For the defect that stuck_stepd.h names, in Slurm 22.05 to 26.05; not ended as of 26.05.
 */
#ifndef SPANK_WORKAROUNDS_STEPD_H
#define SPANK_WORKAROUNDS_STEPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	WLB_STEPD_SOCKET = 128, /* a path of the kernel's for sockets has 108 at most */
	WLB_STEPD_BOOT = 40,
	WLB_STEPD_LINE = WLB_STEPD_SOCKET + WLB_STEPD_BOOT + 64,
};

struct wlb_stepd {
	pid_t pid;
	uint64_t started;          /* clock ticks since the boot: with the pid, no other process of it has both */
	char boot[WLB_STEPD_BOOT]; /* the kernel's name of it */
	uint32_t step_id;
	char socket[WLB_STEPD_SOCKET]; /* by which Slurm talks to it; it is closed once the step is over */
};

/* Describes this process. Returns false if it has no socket of such a step. */
bool wlb_stepd_self(uint32_t job_id, uint32_t step_id, struct wlb_stepd *stepd);

/* Writes it as a line with its end, and reads such a line. Both return false if that is not possible. */
bool wlb_stepd_format(const struct wlb_stepd *stepd, char line[WLB_STEPD_LINE]);
bool wlb_stepd_parse(const char *line, struct wlb_stepd *stepd);

struct wlb_stepd_watch {
	struct wlb_stepd stepd;
	int pidfd;         /* of this process, whoever is given its pid later; the caller closes it */
	uint64_t switches; /* of the main thread to another thread, when it was last looked at */
	int64_t since_ms;  /* from when on it waits */
};

/* Returns false if that process is there no longer, or the kernel is older than Linux 5.3 and could not tell. */
bool wlb_stepd_watch_start(struct wlb_stepd_watch *watch, const struct wlb_stepd *stepd);

/* To be called again and again: whether its main thread has slept for stuck_ms without having run in between, while
 * its socket was closed, and no child process is left to it. Never true for one that is stopped, traced or busy. */
bool wlb_stepd_is_stuck(struct wlb_stepd_watch *watch, int stuck_ms);

/* Sends SIGKILL. Returns false with errno if that is not possible. */
bool wlb_stepd_kill(const struct wlb_stepd_watch *watch);

#endif
