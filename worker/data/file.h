/*
 * Files that are whole or not there: small wrappers that finish what write(2) and read(2) begin and name
 * the file in every error.
 */
#ifndef WLB_FILE_H
#define WLB_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Opens a new file for writing, an old one of that name is emptied; fd, or -1. */
int wlb_file_create(const char *path, struct wlb_error *error);
/* Opens a regular file for reading and tells its size; fd, or -1. */
int wlb_file_open(const char *path, int64_t *bytes, struct wlb_error *error);
/* Writes all of it. `path` is for the message only, here and below. */
int wlb_file_write(int fd, const char *path, const void *data, size_t bytes, struct wlb_error *error);
/* Reads exactly `bytes` at `offset`; a file that ends before is an error. */
int wlb_file_read(int fd, const char *path, void *out, size_t bytes, int64_t offset, struct wlb_error *error);
/* Flushes to the disk and closes; the fd is closed in any case. */
int wlb_file_close_synced(int fd, const char *path, struct wlb_error *error);
/* Makes renames and removals in the folder durable. */
int wlb_file_sync_folder(const char *folder, struct wlb_error *error);

#endif
