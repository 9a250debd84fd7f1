/* Announces to the coordinator, once for each start of a job's script, that a run begins. */
#ifndef SPANK_ANNOUNCE_H
#define SPANK_ANNOUNCE_H

#include <stdint.h>

#include "spank/args.h"
#include "spank/options.h"

struct wlb_announcement {
	const char *run_id;
	uint32_t job_id;
	uint32_t restart_count;
	const char *cluster;                     /* "": unknown */
	const char *job_name;                    /* likewise */
	const char *nodes;                       /* likewise; a hostlist expression */
	const struct wlb_spank_options *options; /* the model's path absolute */
};

/* The body of POST /v1/runs (docs/api.md); the caller frees it. NULL if out of memory. */
char *wlb_announce_body(const struct wlb_announcement *announcement);

/*
 * Sends it, as the caller's effective user, and returns within args->timeout_ms whatever happens.
 *
 * The request is made in a child process that is killed at the deadline. In slurmstepd itself nothing would bound
 * munge_encode (munged may hang) or the resolver's modules; a thread left behind with them could hold a lock when
 * slurmstepd forks the tasks, would change to root with it when it takes its privileges back, and would run in
 * unloaded code when the plugin is closed. A child ends with all it holds, and is reaped here, so slurmstepd never
 * sees it.
 */
int wlb_announce(const struct wlb_spank_args *args, const char *body, struct wlb_error *error);

#endif
