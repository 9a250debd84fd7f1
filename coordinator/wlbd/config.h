/*
 * wlbd.conf: lines `key = value`, '#' begins a comment. The table in config.c is the list of keys; the man page
 * wlbd.conf(5) explains them.
 */
#ifndef COORDINATOR_WLBD_CONFIG_H
#define COORDINATOR_WLBD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"

struct wlbd_config {
	char listen[280];        /* HOST:PORT or [V6]:PORT */
	char listen_host[256];   /* the same, taken apart */
	int listen_port;         /* 0: any free one */
	char database[1024];     /* libpq connection string */
	char munge_socket[108];  /* "": MUNGE's default */
	bool private_data;       /* others' runs are hidden */
	bool node_down;          /* lost nodes are set DOWN in Slurm */
	int log_level;           /* enum wlbd_log_level */
	int database_timeout_ms; /* a statement that takes longer is cancelled; a read may take five times as long */
	int reconnect_grace_ms; /* how long a process may be silent after its connection closed, its node being alive */
	int silence_ms;         /* a node that reports nothing for this long is probed */
	int restart_grace_ms;   /* after wlbd itself started: how long nodes have to come back */
	int node_down_after_ms; /* how long wlbd itself must find a lost node silent before it is set DOWN */
	int job_poll_ms;        /* how often Slurm is asked for the jobs of open runs */
	int request_timeout_ms; /* a connection must complete a request this often */
};

/* The file that is read when none is named: $WLBD_CONF, else /etc/wlb/wlbd.conf. */
const char *wlbd_config_path(void);

/* Reads `path`; keys that are absent have their defaults. -1 with file, line, key, value and rule. */
int wlbd_config_load(const char *path, struct wlbd_config *config, struct wlb_error *error);

/* The same from text; `name` stands for the file in messages. */
int wlbd_config_parse(const char *name, const char *text, struct wlbd_config *config, struct wlb_error *error);

#endif
