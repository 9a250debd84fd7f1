/* Checks of `wlb doctor`: each notes one or more findings. */
#ifndef COORDINATOR_WLB_DOCTOR_DOCTOR_H
#define COORDINATOR_WLB_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum wlb_finding { WLB_FINDING_OK, WLB_FINDING_INFO, WLB_FINDING_WARN, WLB_FINDING_FAIL };

struct wlb_doctor {
	const char *save_dir; /* where checkpoints would go */
	json_t *findings;
	bool failed;
	bool without_slurm; /* set by wlb_doctor_slurm: what asks Slurm's commands is left out */
};

/* One line: what was looked at, what was found, and what to do about it ("" where there is nothing to do). */
void wlb_doctor_note(struct wlb_doctor *doctor, enum wlb_finding finding, const char *what, const char *remedy,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Runs a program for at most 10 s and keeps the beginning of what it prints (both streams). Its exit code, or -1 when
 * it could not be run, was killed or took too long. */
int wlb_doctor_ask(char *const argv[], char *output, size_t size);

void wlb_doctor_munge(struct wlb_doctor *doctor);
void wlb_doctor_slurm(struct wlb_doctor *doctor);
void wlb_doctor_plugin(struct wlb_doctor *doctor);
void wlb_doctor_pmix(struct wlb_doctor *doctor);
void wlb_doctor_fence(struct wlb_doctor *doctor);
void wlb_doctor_coordinator(struct wlb_doctor *doctor);
void wlb_doctor_worker(struct wlb_doctor *doctor);
void wlb_doctor_mpi(struct wlb_doctor *doctor);
void wlb_doctor_gpus(struct wlb_doctor *doctor);
void wlb_doctor_save_dir(struct wlb_doctor *doctor);

#endif
