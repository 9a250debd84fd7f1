/* What the checks of `wlb doctor` find. */
#ifndef COORDINATOR_WLB_DOCTOR_FINDING_H
#define COORDINATOR_WLB_DOCTOR_FINDING_H

#include <stdbool.h>

#include <jansson.h>

enum wlb_finding { WLB_FINDING_OK, WLB_FINDING_INFO, WLB_FINDING_WARN, WLB_FINDING_FAIL };

struct wlb_doctor {
	const char *save_dir; /* where checkpoints would go */
	json_t *findings;
	bool failed;
	bool without_slurm; /* set by wlb_doctor_slurm: checks that need Slurm's commands are skipped */
};

/* Adds a finding: the subject of the check, its result, and the remedy ("" where none is needed). */
void wlb_doctor_note(struct wlb_doctor *doctor, enum wlb_finding finding, const char *what, const char *remedy,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
