/* Writes a file line by line: the whole file appears at its path, or nothing does. */
#ifndef COMMON_ATOMIC_FILE_H
#define COMMON_ATOMIC_FILE_H

#include <limits.h>
#include <stdio.h>

#include "libwlb/wlb.h"

struct wlb_atomic_file {
	FILE *out; /* NULL: not open */
	const char *path;
	char temporary[PATH_MAX]; /* "": `path` is a pipe or a device, and is written directly */
};

/* Opens a temporary file beside `path`; the string must outlive `file`. */
int wlb_atomic_file_open(struct wlb_atomic_file *file, const char *path, struct wlb_error *error);

/* Closes the temporary file and renames it to `path`. */
int wlb_atomic_file_commit(struct wlb_atomic_file *file, struct wlb_error *error);

/* Removes the temporary file, unless it was committed or never opened. */
void wlb_atomic_file_drop(struct wlb_atomic_file *file);

#endif
