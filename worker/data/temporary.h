/* Files that are written as PATH.XXXXXX.partial and renamed to PATH when they are complete. Each is locked while its
 * process has it, so that the next process finds and removes what a killed one has left. */
#ifndef WORKER_DATA_TEMPORARY_H
#define WORKER_DATA_TEMPORARY_H

#include <stdio.h>

#include "libwlb/wlb.h"

struct wlb_temporary {
	char *name; /* NULL: there is none, or it has its final name */
	int lock;   /* a descriptor that keeps the lock after the stream has been closed */
};

/* Creates a file beside `path`. The caller closes the stream. NULL: it cannot be created. */
FILE *wlb_temporary_open(struct wlb_temporary *temporary, const char *path, struct wlb_error *error);
/* Renames it to `path`. */
int wlb_temporary_rename(struct wlb_temporary *temporary, const char *path, struct wlb_error *error);
/* Removes it, if there is one. */
void wlb_temporary_remove(struct wlb_temporary *temporary);
/* Removes the temporary files of `path` that this user owns and no process has. Where the file system has no locks they
 * stay. */
void wlb_temporary_remove_left(const char *path);

#endif
