/* Reads input files by position: every error names the file and the byte. */
#ifndef WORKER_DATA_INPUT_H
#define WORKER_DATA_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* What the functions below return where the system did not let the file be read now (an I/O error, no permission, no
 * descriptor or memory left), which says nothing about the file; -1: there is no such file, or its content is wrong. */
enum { WLB_UNREADABLE = -2 };

/* Returns WLB_UNREADABLE, or -1 where errno `cause` says that there is no file of that name. */
int wlb_input_failure(int cause);
/* Opens a regular file for reading and sets *bytes to its size. Returns the fd, -1 or WLB_UNREADABLE. */
int wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error);
/* Reads exactly `bytes` at `offset`. Returns -1 where the file ends before, WLB_UNREADABLE on other errors. `path` is
 * for the message only. */
int wlb_input_read(int fd, const char *path, void *out, size_t bytes, int64_t offset, struct wlb_error *error);
/* Reads a whole file of at most most_bytes. The caller frees *text, which is NULL on error. Returns 0; -1 where there
 * is no such file, or it is larger; WLB_UNREADABLE on other errors. */
int wlb_input_read_all(const char *path, int64_t most_bytes, char **text, size_t *bytes, struct wlb_error *error);

#endif
