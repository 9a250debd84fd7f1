/* Files that are written as PATH.XXXXXX.partial, or PATH.resume.partial, and renamed to PATH when they are complete.
 * Each is locked while its process has it, so that the next process finds and removes what a killed one has left. */
#ifndef WORKER_DATA_TEMPORARY_H
#define WORKER_DATA_TEMPORARY_H

#include <stdint.h>
#include <stdio.h>

#include "libwlb/wlb.h"

struct wlb_temporary {
	char *name; /* NULL: there is none, or it has its final name */
	int lock;   /* a descriptor that keeps the lock after the stream has been closed */
};

/* Creates a file beside `path`, for writing and reading. The caller closes the stream. NULL: it cannot be created. */
FILE *wlb_temporary_open(struct wlb_temporary *temporary, const char *path, struct wlb_error *error);
/* Opens PATH.resume.partial, with the first `bytes` bytes that an earlier process has left in it, behind which is
 * written; 0: none. NULL: it has fewer, another process has it, or it cannot be opened. */
FILE *wlb_temporary_open_again(struct wlb_temporary *temporary, const char *path, int64_t bytes,
                               struct wlb_error *error);
/* Leaves the file for wlb_temporary_open_again(), if there is one. */
void wlb_temporary_leave(struct wlb_temporary *temporary);
/* Renames it to `path`. */
int wlb_temporary_rename(struct wlb_temporary *temporary, const char *path, struct wlb_error *error);
/* Removes it, if there is one. */
void wlb_temporary_remove(struct wlb_temporary *temporary);
/* Removes the temporary files of `path` that this user owns and no process has. Where the file system has no locks they
 * stay. */
void wlb_temporary_remove_left(const char *path);

#endif
