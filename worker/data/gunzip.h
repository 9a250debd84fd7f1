/*
 * Reads a file and decompresses it where it begins as gzip does, all members of it. zlib's own functions on files take
 * what follows a member and is none for the end, so that the rest of a damaged file would be lost without a word.
 */
#ifndef WORKER_DATA_GUNZIP_H
#define WORKER_DATA_GUNZIP_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_gunzip;

/* The reader owns `fd`, which is a regular file at its first byte. NULL where memory is short: `fd` stays open. */
struct wlb_gunzip *wlb_gunzip_open(int fd);
/* Reads `bytes` bytes, and fewer only where the file ends or is damaged behind them: 0 at its end. Returns -1 where it
 * is damaged or cut, WLB_UNREADABLE (worker/data/input.h) where it cannot be read now; the reason does not name the
 * file. */
int64_t wlb_gunzip_read(struct wlb_gunzip *g, char *to, int64_t bytes, struct wlb_error *error);
/* Returns how many bytes of the file have been read. */
int64_t wlb_gunzip_position(const struct wlb_gunzip *g);
/* Frees the reader and returns its file, at the first byte again, for the caller to close. */
int wlb_gunzip_release(struct wlb_gunzip *g);
void wlb_gunzip_close(struct wlb_gunzip *g); /* NULL allowed */

#endif
