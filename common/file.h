/* Reads files, and writes files completely or not at all. */
#ifndef COMMON_FILE_H
#define COMMON_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

/* Writes all bytes; continues after short writes and signals. Returns 0, or -1 with errno set. */
int wlb_write_all(int fd, const void *data, size_t length);

/* The same at an offset; the file position does not move. */
int wlb_pwrite_all(int fd, const void *data, size_t length, off_t offset);

/* Reads exactly `length` bytes at an offset; continues after short reads and signals. Returns 0, or -1 with errno set:
 * EIO where the file ends before. */
int wlb_pread_all(int fd, void *data, size_t length, off_t offset);

/* Replaces the content of `path` by these bytes: writes a temporary file beside it, syncs it, renames it and syncs the
 * folder. On -1 the old content is unchanged and the temporary file is removed. */
int wlb_file_write(const char *path, const void *data, size_t length, mode_t mode, struct wlb_error *error);

/* The last part of wlb_file_write() for a file that the caller wrote: syncs `temporary`, renames it to `path` (same
 * folder or at least same file system) and syncs the folder. On -1 `temporary` is removed. */
int wlb_file_commit(const char *temporary, const char *path, struct wlb_error *error);

/* fsync of a file. */
int wlb_file_sync(const char *path, struct wlb_error *error);

/* Reads a whole file of at most `limit` bytes. *data is NUL-terminated; the caller frees it. `length` may be NULL. */
int wlb_file_read(const char *path, size_t limit, char **data, size_t *length, struct wlb_error *error);

/* mkdir -p. An existing folder is not an error. Returns 0, or -1 with errno set. */
int wlb_dir_make(const char *path, mode_t mode, struct wlb_error *error);

/* fsync of a folder, so that a rename in it survives a power loss. */
int wlb_dir_sync(const char *path, struct wlb_error *error);

/* The same for the folder in which `path` is. */
int wlb_parent_sync(const char *path, struct wlb_error *error);

#endif
