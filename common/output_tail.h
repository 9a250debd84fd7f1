/* The last bytes of an output that has no end: bounded, whatever is written. Pure, no I/O. All zero before the first
 * byte. */
#ifndef COMMON_OUTPUT_TAIL_H
#define COMMON_OUTPUT_TAIL_H

#include <stdbool.h>
#include <stddef.h>

/* Launchers write some 10 KiB for each rank that they lose, after what its program wrote. */
enum { WLB_OUTPUT_TAIL_BYTES = 1 << 20 };

struct wlb_output_tail {
	char bytes[WLB_OUTPUT_TAIL_BYTES]; /* a ring */
	size_t next;                       /* where the next byte goes */
	size_t count;                      /* of the bytes that are there */
	bool is_closing;
	size_t left; /* bytes that are still taken, where it is closing */
};

void wlb_output_tail_add(struct wlb_output_tail *tail, const char *bytes, size_t count);

/* A process has ended: what comes after the next few lines is of those that it takes with it, and would displace its
 * own. A second call has no effect. */
void wlb_output_tail_close(struct wlb_output_tail *tail);

/* Copies the bytes in their order, without a line whose beginning is lost, as far as `size` bytes have room for the
 * last ones. Returns how many. */
size_t wlb_output_tail_copy(const struct wlb_output_tail *tail, char *to, size_t size);

#endif
