/*
 * wlbd.conf: lines `key = value`; '#' begins a comment. The table in config.c lists the keys; the man page wlbd.conf(5)
 * explains them.
 */
#ifndef COORDINATOR_WLBD_CONFIG_H
#define COORDINATOR_WLBD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/on_fault.h"
#include "libwlb/wlb.h"

struct wlbd_config {
	char listen[280];        /* HOST:PORT or [V6]:PORT */
	char listen_host[256];   /* HOST of listen */
	int listen_port;         /* 0: any free port */
	char database[1024];     /* libpq connection string */
	char munge_socket[108];  /* "": the default of MUNGE */
	bool private_data;       /* users see their own runs only */
	bool avoid_nodes;        /* attempts avoid nodes that were lost in several runs, or failed a check */
	bool node_down;          /* wlbd sets lost nodes DOWN in Slurm */
	int log_level;           /* enum wlbd_log_level */
	int database_timeout_ms; /* a statement that takes longer is cancelled; GET requests have five times as long */
	int reconnect_grace_ms; /* how long a process on a live node has to connect again after its connection closed */
	int silence_ms;         /* a node that has not reported for this long is probed */
	int restart_grace_ms;   /* how long nodes have to report after wlbd was started */
	int node_down_after_ms; /* a lost node is set DOWN after wlbd has found it silent for this long */
	int job_poll_ms;        /* between questions to Slurm about the jobs of open runs */
	int back_off_ms;        /* before an attempt that follows one without a new step */
	int lease_ms;           /* how long a wlbd may act without an answer of the database; 0: there is no other */
	int request_timeout_ms; /* the longest time from one complete request of a connection to the next */
	/* As `database`, of a login that can select from the views alone; "": users ask no queries. */
	char query_database[1024];
	struct wlb_on_fault on_fault; /* what is done about faults, where a run's user says nothing else */
};

/* Returns the file that is read where no other is named: $WLBD_CONF, else /etc/wlb/wlbd.conf. */
const char *wlbd_config_path(void);

/* Reads `path`; absent keys get their defaults. Returns -1 with file, line, key, value and rule, but without any part
 * of a connection string, or of a line that may be one. */
int wlbd_config_load(const char *path, struct wlbd_config *config, struct wlb_error *error);

/* The same from text; messages call it `name`. */
int wlbd_config_parse(const char *name, const char *text, struct wlbd_config *config, struct wlb_error *error);

/* Returns -1, and what to do, where the settings have a password and others than root and `account`, that of wlbd, may
 * read or write their file; its primary group may read it where nobody else is of that group. The same of the file of
 * passwords that they name, else ~/.pgpass of the account, which libpq ignores where a group may read it. */
int wlbd_config_check_readers(const char *path, const struct wlbd_config *config, uid_t account,
                              struct wlb_error *warning);

#endif
