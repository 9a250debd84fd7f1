/* A file written line by line: the whole file appears at its path, or nothing does. */
#ifndef COMMON_ATOMIC_FILE_H
#define COMMON_ATOMIC_FILE_H

#include <limits.h>
#include <stdio.h>

#include "libwlb/wlb.h"

struct wlb_aside {
	FILE *out; /* NULL: not open */
	const char *path;
	char aside[PATH_MAX]; /* "": `path` is a pipe or a device, and is written directly */
};

/* Opens a temporary file beside `path`; the string must outlive `file`. */
int wlb_aside_open(struct wlb_aside *file, const char *path, struct wlb_error *error);

/* Closes the temporary file and renames it to `path`. */
int wlb_aside_commit(struct wlb_aside *file, struct wlb_error *error);

/* Removes the temporary file, unless it was committed or never opened. */
void wlb_aside_drop(struct wlb_aside *file);

#endif
