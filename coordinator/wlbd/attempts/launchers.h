/*
 * Which jobs have a launcher that works: the launcher reports for an attempt or, every few seconds while no attempt
 * runs, asks for the next.
 */
#ifndef COORDINATOR_WLBD_ATTEMPTS_LAUNCHERS_H
#define COORDINATOR_WLBD_ATTEMPTS_LAUNCHERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wlbd;
struct wlbd_launchers;

/* Returns NULL if out of memory. */
struct wlbd_launchers *wlbd_launchers_new(void);
void wlbd_launchers_free(struct wlbd_launchers *launchers); /* NULL is allowed */

/* A launcher has asked for an attempt of a run of the job, and may act for the run, which is the user's. */
void wlbd_launchers_note_request(struct wlbd_launchers *launchers, uint32_t job_id, uid_t uid);

/* Whether a launcher of the user's job is connected and has reported within silence_ms, or has just asked for an
 * attempt. Any of its runs counts: a script has several runs, and each launcher proves that the script's node works.
 */
bool wlbd_launchers_has(const struct wlbd *wlbd, uint32_t job_id, uid_t uid);

#endif
