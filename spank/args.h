/* The plugin's arguments: what stands behind its path in plugstack.conf. */
#ifndef SPANK_ARGS_H
#define SPANK_ARGS_H

#include <limits.h>
#include <stdbool.h>

#include "coordinator/client/config.h"

enum { WLB_SPANK_TIMEOUT_MS = 200 }; /* the default and the most a job's start may be held up */

struct wlb_spank_args {
	char coordinator[280];           /* as written, HOST:PORT; "": /etc/wlb/wlb.conf says */
	struct wlb_client_config client; /* the same, parsed; with munge_socket and, not looked up, coordinator_user */
	int timeout_ms;                  /* for announcing a run, and for starting an agent */
	bool announce;
	char agent[PATH_MAX];      /* the program; "": none is started */
	char state_dir[256];       /* notes of running jobs, see delivery.h */
	char wlb[PATH_MAX];        /* the wlb command */
	struct wlb_error unusable; /* "", or about the first argument that could not be used; its default holds */
};

/* coordinator=HOST:PORT munge_socket=PATH coordinator_user=NAME timeout_ms=1..200 announce=yes|no agent=PATH|no
 * state_dir=PATH wlb=PATH */
void wlb_spank_args_parse(int argc, char **argv, struct wlb_spank_args *args);

/* Logs the unusable argument, if there is one. */
void wlb_spank_args_report(const struct wlb_spank_args *args);

#endif
