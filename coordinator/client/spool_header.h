/* The first line of a spool and of a file of refused records: whose records follow, and the number of the first. */
#ifndef COORDINATOR_CLIENT_SPOOL_HEADER_H
#define COORDINATOR_CLIENT_SPOOL_HEADER_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_spool_identity {
	char run_id[64];
	char attempt_id[64];
	char source[32];
	int64_t job_id; /* the number at the beginning of run_id, 0 if there is none */
};

/* Fills the identity; -1 when a name is empty, too long, or has other characters than letters, digits, '.', '_', '-'.
 */
int wlb_spool_identify(struct wlb_spool_identity *identity, const char *run_id, const char *attempt_id,
                       const char *source, struct wlb_error *error);

/* The first line of a file of records, with its newline, for record `first_seq` to follow; its length. A file whose
 * records have no numbers yet is no spool: it is kept in refused/. */
enum { WLB_SPOOL_HEADER_MAX = 384, WLB_SPOOL_UNNUMBERED = 0 };
int wlb_spool_header(char header[WLB_SPOOL_HEADER_MAX], const struct wlb_spool_identity *identity, int64_t first_seq);

/* What a file begins with. */
enum wlb_spool_beginning {
	WLB_SPOOL_BEGINS = 0,       /* a whole header */
	WLB_SPOOL_BEGINS_TORN,      /* nothing, or the first bytes of a header: no record was ever in it */
	WLB_SPOOL_BEGINS_OTHERWISE, /* it is no file of records */
	WLB_SPOOL_UNREADABLE,       /* the file cannot be read now */
};

/* Reads the first line of the open file `path`. *length is then its length with the newline, 0 unless the header is
 * whole. In the other cases the message says what is wrong. */
enum wlb_spool_beginning wlb_spool_header_read(int fd, const char *path, struct wlb_spool_identity *identity,
                                               int64_t *first_seq, int *length, struct wlb_error *error);

/* The same for a file that is not open. */
enum wlb_spool_beginning wlb_spool_peek(const char *path, struct wlb_spool_identity *identity, int64_t *first_seq,
                                        struct wlb_error *error);

#endif
