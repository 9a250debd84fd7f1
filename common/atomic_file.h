/* A file written line by line that is there whole or not at all. */
#ifndef COMMON_ATOMIC_FILE_H
#define COMMON_ATOMIC_FILE_H

#include <limits.h>
#include <stdio.h>

#include "libwlb/wlb.h"

struct wlb_aside {
	FILE *out; /* NULL: not open */
	const char *path;
	char aside[PATH_MAX]; /* "": `path` is a pipe or a device, and written directly */
};

/* Opens a file beside `path`, which must outlive it. */
int wlb_aside_open(struct wlb_aside *file, const char *path, struct wlb_error *error);

/* Closes it and gives it its name. */
int wlb_aside_commit(struct wlb_aside *file, struct wlb_error *error);

/* Leaves nothing of it, unless it was committed or never opened. */
void wlb_aside_drop(struct wlb_aside *file);

#endif
