/*
 * Reads what is appended to a file of this account by anybody: each byte once, also across restarts of the reader,
 * which keeps the place. The file may not exist yet, may be cut, removed and made anew while it is read.
 *
 * The caller asks again each second or so; one call reads a bounded number of bytes, and waits for no writer. A file
 * system that hangs blocks it: call it where nothing else waits.
 *
 * A file is known to be another one than before by its first bytes and its size, not by its inode: a restarted reader
 * may see it on another node, and a writer may replace it by a copy.
 */
#ifndef FOLLOW_TAIL_H
#define FOLLOW_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum { WLB_TAIL_HEAD_BYTES = 256 };

/* Up to where a file was read. All zero before its first byte. A caller that keeps it for a restart may set the offset
 * back to where its last whole record ends, and writes it in one write with what it made of the bytes before: no crash
 * comes between the two. */
struct wlb_tail_place {
	int64_t offset;     /* of the next byte */
	int64_t generation; /* how often the file was another one */
	int head_bytes;     /* at most WLB_TAIL_HEAD_BYTES */
	uint32_t head_crc;  /* CRC-32C of the first head_bytes bytes of the file */
};

enum wlb_tail_result {
	WLB_TAIL_BYTES,   /* *count > 0 bytes */
	WLB_TAIL_NONE,    /* no new ones, or there is no such file */
	WLB_TAIL_ANOTHER, /* it is another file than before: the place is its beginning; call again */
	WLB_TAIL_FAILED,  /* it cannot be read now; the message says why */
};

/* Reads at most `size` bytes at the place, and moves it behind them. */
enum wlb_tail_result wlb_tail_read(const char *path, struct wlb_tail_place *place, char *to, size_t size, size_t *count,
                                   struct wlb_error *error);

#endif
