/* The options of wlbd. */
#ifndef COORDINATOR_WLBD_MAIN_OPTIONS_H
#define COORDINATOR_WLBD_MAIN_OPTIONS_H

#include "common/options.h"

struct wlbd_options {
	const char *config; /* NULL: wlbd_config_path() */
	bool check;
};

/* Fills a struct wlbd_options. */
extern const struct wlb_option_table wlbd_option_table;

#endif
