/* The kernel's log, record by record, from /dev/kmsg. */
#ifndef CHECKS_NODE_KERNEL_LOG_H
#define CHECKS_NODE_KERNEL_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* What one read of /dev/kmsg returns, at most. */
enum { WLB_KERNEL_RECORD_BYTES = 8192 };

struct wlb_kernel_log {
	int fd;
	int64_t records_left, bytes_left; /* that may still be read */
	char buffer[WLB_KERNEL_RECORD_BYTES + 1];
};

struct wlb_kernel_record {
	double at_s;      /* by CLOCK_MONOTONIC, of which the kernel's clock for its log may differ by seconds */
	const char *text; /* one line without its end; it is valid until the next record is read */
};

/* Parses "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,...];TEXT" and a newline, as Documentation/ABI/testing/dev-kmsg of
 * Linux describes it, in text[bytes + 1], which it changes. Returns 1 with the record where the kernel wrote it, and 0
 * where a program did, whose facility is never 0, or where the text has another form. */
int wlb_kernel_record_parse(char *text, size_t bytes, struct wlb_kernel_record *record);

/* Opens the log at its oldest record, or at the first one after `dmesg --clear`. Returns a file descriptor; -1 with the
 * reason where this user may not read it. */
int wlb_kernel_log_open(struct wlb_error *error);

/* Begins to read the log, which is closed with the descriptor. Reading stops after 200,000 records and 64 MiB. */
void wlb_kernel_log_begin(struct wlb_kernel_log *log, int fd);

/* Returns 1 with the next record of the kernel, 0 after the last one that there is now, -1 with the reason where the
 * others cannot be read. */
int wlb_kernel_log_next(struct wlb_kernel_log *log, struct wlb_kernel_record *record, struct wlb_error *error);

#endif
