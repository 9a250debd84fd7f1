#include "coordinator/wlbd/main/options.h"

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, "config", offsetof(struct wlbd_options, config), "FILE",
                    "the settings, see wlbd.conf(5) (default: WLBD_CONF, else /etc/wlb/wlbd.conf)"),
         .letter = 'c'},
	{WLB_OPTION(FLAG, "check", offsetof(struct wlbd_options, check), NULL,
                    "read the settings, print whether they are valid, and exit")},
	{WLB_OPTION(VERSION, "version", 0, NULL, "print the version and exit")},
};

const struct wlb_option_table wlbd_option_table = {
	.command = "wlbd",
	.about = "The coordinator of WLB: records runs in PostgreSQL and restarts them on the remaining nodes after a "
		 "failure.",
	.notes = "It stays in the foreground, logs to stderr, and ends on SIGTERM or SIGINT.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};
