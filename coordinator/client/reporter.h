/*
 * The reporter sends what a run recorded to the coordinator, and never delays the run.
 *
 * Records are appended to a spool file first (one JSON object a line, see docs/api.md) and sent by the
 * reporter's thread. The coordinator answers with the last sequence number it has committed to PostgreSQL; only then
 * may a record be deleted. While the coordinator or its database does not answer, the spool grows and nothing else
 * changes. A record is delivered at least once and stored exactly once: the coordinator ignores sequence numbers it
 * already has.
 *
 * One process of a node (local rank 0) also sends a report each second over the same connection, and watches the other
 * local ranks through pidfds: a rank that vanishes is reported at once. If the connection closes without a goodbye, the
 * coordinator concludes that this process is gone.
 */
#ifndef COORDINATOR_CLIENT_REPORTER_H
#define COORDINATOR_CLIENT_REPORTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/client/config.h"

struct wlb_reporter_options {
	const char *run_id;     /* WLB_RUN_ID */
	const char *attempt_id; /* WLB_ATTEMPT_ID: a UUID, made by `wlb run` or by rank 0 */
	const char *source;     /* of the records: "rank0", "run"; NULL: this process only reports, without a spool */
	const char *spool_dir;  /* on the run's shared file system; created when missing */
	const char *node;       /* this process's node name, for reports; NULL: records only, no reports */
	int rank;               /* of this process, -1 for `wlb run` */
	const int *peer_ranks;  /* other ranks on this node and their pids; may be NULL when peer_count is 0 */
	const pid_t *peer_pids;
	int peer_count;
};

struct wlb_reporter;

/* Opens (or continues) the spool `spool_dir/ATTEMPT_ID.SOURCE.jsonl` and starts the thread. It is not an error if the
 * coordinator does not answer. `config` may be NULL: records are only spooled. */
struct wlb_reporter *wlb_reporter_start(const struct wlb_client_config *config,
                                        const struct wlb_reporter_options *options, struct wlb_error *error);

/* Appends one record: type ("step", "checkpoint", ...) and its JSON object `data`. Returns once it is
 * written to the spool (not synced: the thread does that each second); -1 when the spool cannot be
 * written (disk full, ...), or when earlier records could not be synced since the last call: some network file systems
 * report a full disk only then. Callable from any thread. */
int wlb_reporter_record(struct wlb_reporter *reporter, const char *type, const char *data, struct wlb_error *error);
/* The same for what happened at an earlier time, in seconds since 1970. */
int wlb_reporter_record_of(struct wlb_reporter *reporter, const char *type, const char *data, double time_s,
                           struct wlb_error *error);

/* Sets the step of this process for the next report. */
void wlb_reporter_progress(struct wlb_reporter *reporter, int64_t step);

/* Sets the Slurm step of the attempt, "12.0", for the reports of `wlb run`; copied. */
void wlb_reporter_step_id(struct wlb_reporter *reporter, const char *step_id);

/* Has `wlb run` report at once that Slurm itself ends the tasks, why (copied), and since when (seconds since 1970);
 * where it is certain, no task can be why it does. */
void wlb_reporter_slurm_end(struct wlb_reporter *reporter, const char *why, double time_s, bool is_certain);

/* Nonzero once the coordinator has ordered the attempt to end; *reason is then a static-lifetime text owned by the
 * reporter. */
int wlb_reporter_must_end(const struct wlb_reporter *reporter, const char **reason);

/* Whether the coordinator has said that the attempt, which it has ordered to end, has tasks on lost nodes alone. */
bool wlb_reporter_survivors_ended(const struct wlb_reporter *reporter);

/* Stops watching peers (they may exit from now on), waits at most flush_ms until the spool is acknowledged and a
 * goodbye is answered, stops the thread and frees everything. Does not wait for a coordinator that did not answer the
 * last request. A spool that is fully acknowledged is removed; what is left is delivered later (deliver.h). Returns the
 * number of records still unacknowledged. */
int64_t wlb_reporter_stop(struct wlb_reporter *reporter, int flush_ms);

/* The same, but sends nothing to the coordinator: what is not acknowledged yet stays in the spool. */
void wlb_reporter_abandon(struct wlb_reporter *reporter);

/* Whether the coordinator, or its database, failed to answer the last request. */
bool wlb_reporter_unavailable(const struct wlb_reporter *reporter);

#endif
