/*
 * Programs that `wlb data build` starts and talks to by pipes. Their descriptors do not reach other programs, what they
 * write to standard error is kept for the error message, and they end with this process.
 */
#ifndef WORKER_DATA_HELPER_H
#define WORKER_DATA_HELPER_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

struct wlb_helper {
	pid_t pid; /* 0: none runs */
	int in;    /* what is written here is its standard input; -1: that is another file */
	int out;   /* here its standard output is read; -1: the caller has taken the descriptor */
	int said;  /* a file of what it wrote to standard error */
};

/* The path of a program of python/corpus, as it is installed beside the running program. The caller frees it. */
char *wlb_helper_path(const char *name, struct wlb_error *error);
/* Starts argv[0], found in PATH. Its standard input is the file `input`, or a pipe where that is -1; then `in`
 * and `out` do not block. On -1 there is nothing to end. */
int wlb_helper_start(struct wlb_helper *helper, const char *const *argv, int input, struct wlb_error *error);
/* Writes or reads exactly `bytes` bytes, within limit_s seconds without progress. Returns -1 where the program has
 * ended or does not answer, or where *interrupted is set. */
int wlb_helper_write(const struct wlb_helper *helper, const void *data, size_t bytes, int64_t limit_s,
                     const volatile sig_atomic_t *interrupted, struct wlb_error *error);
int wlb_helper_read(const struct wlb_helper *helper, void *data, size_t bytes, int64_t limit_s,
                    const volatile sig_atomic_t *interrupted, struct wlb_error *error);
/* Closes the pipes and waits for its end; kills a program that does not end within limit_s. Returns its exit code, 128
 * and more for a signal, and writes the last line of what it said, without control characters, into `said`. Does
 * nothing where none runs. */
int wlb_helper_end(struct wlb_helper *helper, int64_t limit_s, char *said, size_t size);

#endif
