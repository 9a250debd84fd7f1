/* The plugin's arguments: the words after its path in plugstack.conf. */
#ifndef SPANK_ARGS_H
#define SPANK_ARGS_H

#include <limits.h>
#include <stdbool.h>

#include "coordinator/client/config.h"

enum {
	WLB_SPANK_TIMEOUT_MS = 200, /* the default, and the most by which a coordinator may delay a job's start */
	WLB_SPANK_AGENT_TIMEOUT_MOST_MS = 5000,
};

struct wlb_spank_args {
	char coordinator[600]; /* as written, HOST:PORT[,HOST:PORT]; "": as /etc/wlb/wlb.conf has it */
	struct wlb_client_config
		client; /* the same, parsed; with munge_socket and coordinator_user, whose name is not looked up */
	int timeout_ms; /* for announcing a run */
	int agent_timeout_ms; /* for starting an agent; timeout_ms where it is not given */
	bool announce;
	bool end_stuck_stepd;
	char agent[PATH_MAX]; /* the program; "": none is started */
	char state_dir[256];  /* notes of running jobs, see delivery.h */
	char wlb[PATH_MAX];   /* the wlb command */
	struct wlb_error
		unusable; /* "", or the error of the first argument that could not be used; its default is in effect */
};

/* coordinator=HOST:PORT[,HOST:PORT] munge_socket=PATH coordinator_user=NAME timeout_ms=1..200 agent_timeout_ms=1..5000
 * announce=yes|no agent=PATH|no state_dir=PATH wlb=PATH end_stuck_stepd=yes|no */
void wlb_spank_args_parse(int argc, char **argv, struct wlb_spank_args *args);

/* Logs the unusable argument, if there is one. */
void wlb_spank_args_report(const struct wlb_spank_args *args);

#endif
