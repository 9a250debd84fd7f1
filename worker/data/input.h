/* Reads input files by position: every error names the file and the byte. */
#ifndef WORKER_DATA_INPUT_H
#define WORKER_DATA_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Opens a regular file for reading and sets *bytes to its size. Returns the fd, or -1. */
int wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error);
/* Reads exactly `bytes` at `offset`; a file that ends before is an error. `path` is for the message only. */
int wlb_input_read(int fd, const char *path, void *out, size_t bytes, int64_t offset, struct wlb_error *error);

#endif
