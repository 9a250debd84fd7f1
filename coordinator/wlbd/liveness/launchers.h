/*
 * Which runs have a launcher that works: it reports for an attempt, or asks for the next one, as it does every few
 * seconds while none runs.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_LAUNCHERS_H
#define COORDINATOR_WLBD_LIVENESS_LAUNCHERS_H

#include <stdbool.h>
#include <stdint.h>

struct wlbd;
struct wlbd_launchers;

/* Returns NULL if out of memory. */
struct wlbd_launchers *wlbd_launchers_new(void);
void wlbd_launchers_free(struct wlbd_launchers *launchers); /* NULL is allowed */

/* The run's launcher, which may act for the run, has asked for an attempt. */
void wlbd_launchers_asked(struct wlbd_launchers *launchers, int64_t run_pk);

/* Whether the run's launcher is connected and has reported within silence_ms, or has just asked for an attempt. */
bool wlbd_launchers_has(const struct wlbd *wlbd, int64_t run_pk);

enum { WLBD_WORKING_RUNS_BYTES = 1024 };

/* Writes the runs of the job whose launchers are connected and have reported within silence_ms as an array of SQL,
 * "{12,13}": those that fit. A launcher that has only asked for an attempt is not among them: it may have been killed
 * since. */
void wlbd_launchers_working(const struct wlbd *wlbd, uint32_t job_id, char list[WLBD_WORKING_RUNS_BYTES]);

#endif
