/*
 * What wlbd found out about an attempt, into the database, the log and the counters. The database stores it once, even
 * if it is found again.
 */
#ifndef COORDINATOR_WLBD_INCIDENT_FAULTS_H
#define COORDINATOR_WLBD_INCIDENT_FAULTS_H

#include "common/fault_kinds.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/rules/incident.h"

/* "rank 3 on n2 was killed by signal 9". */
void wlbd_fault_text(const struct wlbd_finding *finding, char *text, size_t size);

void wlbd_fault_record(struct wlbd_attempt *attempt, const struct wlbd_finding *finding, bool is_cause);

/* The step failed: `node` is NULL where it is not known; `is_broken` where its slurmstepd or its srun died, or a node
 * did not launch its tasks. time_s is since 1970. */
void wlbd_fault_record_step_failed(struct wlbd_attempt *attempt, const char *node, const char *detail, bool is_broken,
                                   double time_s);

/* A fault that was found from the timings of ranks, for which wlbd ends the attempt. */
struct wlbd_eviction {
	enum wlb_fault_kind kind;
	int rank;             /* -1: of none */
	const char *node;     /* that the next attempt excludes; NULL: none is named */
	int64_t step;         /* -1: not known */
	const char *text;     /* a few words, which become the attempt's reason */
	const char *evidence; /* what was seen */
};
void wlbd_fault_record_evicted(struct wlbd_attempt *attempt, const struct wlbd_eviction *eviction);

/* The job is over and one of its processes, WLB_FAULT_LAUNCHER_LOST or WLB_FAULT_SCRIPT_LOST, was killed: `time_s`
 * since 1970, 0 where that is not known. `node` may be ""; `uid` is the run's owner. */
void wlbd_fault_record_killed(struct wlbd *wlbd, uid_t uid, int64_t run_pk, int64_t attempt_pk,
                              enum wlb_fault_kind kind, const char *node, const char *detail, double time_s);

/* The highest step that a node of the attempt, which ends, has reported: it tells of steps that are not recorded yet.
 */
void wlbd_fault_record_reported_step(const struct wlbd_attempt *attempt);

/* The reason why the attempt is ordered to end. */
void wlbd_fault_record_reason(struct wlbd_attempt *attempt, const char *reason);

/* The attempt has ended with its exit code, and failed. */
void wlbd_fault_record_failed(struct wlbd_attempt *attempt, const char *reason);

/* The launcher has reported how the attempt's step ended; recorded once. `step_id` may be NULL. */
void wlbd_fault_record_exited(struct wlbd_attempt *attempt, int exit_code, const char *step_id);

#endif
