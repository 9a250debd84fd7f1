/* Files that are whole or not there at all. */
#ifndef COMMON_FILE_H
#define COMMON_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

/* Writes all of it, going on after short writes and signals. 0, or -1 with errno. */
int wlb_write_all(int fd, const void *data, size_t length);

/* The same at an offset; the file position does not move. */
int wlb_pwrite_all(int fd, const void *data, size_t length, off_t offset);

/* Makes `path` hold exactly these bytes: written beside it, synced, renamed, the folder synced. On -1 the old
 * content is untouched and nothing is left beside it. */
int wlb_file_write(const char *path, const void *data, size_t length, mode_t mode, struct wlb_error *error);

/* The last half of that for a file written by other means: syncs `aside`, renames it to `path` (same folder
 * or at least same file system) and syncs the folder. On -1 `aside` is removed. */
int wlb_file_commit(const char *aside, const char *path, struct wlb_error *error);

/* Reads a whole file of at most `limit` bytes; *data is NUL-terminated and the caller's to free. `length` may
 * be NULL. */
int wlb_file_read(const char *path, size_t limit, char **data, size_t *length, struct wlb_error *error);

/* mkdir -p. A folder that is already there is fine. */
int wlb_dir_make(const char *path, mode_t mode, struct wlb_error *error);

/* fsync of a folder, so that a rename in it survives a power loss. */
int wlb_dir_sync(const char *path, struct wlb_error *error);

#endif
