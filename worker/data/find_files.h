/* The files below some paths, in an order that depends on their names only. */
#ifndef WORKER_DATA_FIND_FILES_H
#define WORKER_DATA_FIND_FILES_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_found {
	char **paths; /* in order of their names */
	int64_t count;
	int64_t links;      /* symbolic links, which were not followed */
	int64_t unreadable; /* folders and files that could not be examined */
	struct wlb_error first_unreadable;
};

/* Finds the regular files at and below `roots` (a NULL-terminated list), each file once, also where several hard links
 * or overlapping roots lead to it. A symbolic link is followed only where it is itself a root. A root that does not
 * exist, or that is neither a regular file nor a directory, is an error. */
int wlb_find_files(char *const *roots, struct wlb_found *found, struct wlb_error *error);
void wlb_found_free(struct wlb_found *found);

#endif
