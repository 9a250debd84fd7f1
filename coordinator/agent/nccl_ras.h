/*
 * Asks the RAS service of NCCL (2.24 and later) on this node what it knows of the job's communicators: each process
 * that uses NCCL listens for clients, by default at localhost:28028. The protocol is that of NCCL's client ncclras:
 * lines of text, and a report that ends with the connection. It was tested against a server that speaks this protocol,
 * and not yet beside a GPU.
 */
#ifndef COORDINATOR_AGENT_NCCL_RAS_H
#define COORDINATOR_AGENT_NCCL_RAS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the report to `text` and returns its length, at most `size`; what has arrived by until_ms of wlb_clock_ms()
 * counts. 0 where nobody listens, or who does is not NCCL or another user's. `address` is NCCL_RAS_ADDR, ADDRESS:PORT
 * with a numeric address or localhost; NULL: NCCL's default. Names are not resolved. */
size_t wlb_nccl_ras_ask(const char *address, int64_t until_ms, char *text, size_t size);

enum {
	WLB_NCCL_RAS_LINES = 1024,
	WLB_NCCL_RAS_LINE = 200, /* bytes; a longer line is continued on the next */
};

/* Returns its lines, which the caller releases; what is not printable ASCII becomes '?'. Lines that take more than
 * `max` bytes as JSON are omitted. NULL if out of memory. */
json_t *wlb_nccl_ras_lines(const char *text, size_t length, size_t max);

#endif
