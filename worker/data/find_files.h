/* The files below some paths, in an order that depends on their names only. */
#ifndef WORKER_DATA_FIND_FILES_H
#define WORKER_DATA_FIND_FILES_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_found_file {
	char *path;
	int64_t bytes;
	int64_t modified_ns; /* since 1970 */
};

struct wlb_found {
	struct wlb_found_file *files; /* in order of their paths */
	int64_t count;
	int64_t bytes;      /* of all files */
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
