/* The head of an HTTP/1.1 reply. */
#ifndef COORDINATOR_CLIENT_HTTP_H
#define COORDINATOR_CLIENT_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"

enum { WLB_HTTP_PROOF_SIZE = 2048 };

struct wlb_http_head {
	int status;
	size_t body_bytes;
	bool until_close; /* no length was given: the body ends when the connection closes */
	bool keep_alive;
	char proof[WLB_HTTP_PROOF_SIZE]; /* of WLB-Proof: MUNGE CREDENTIAL; "": none */
};

/* Parses the status line and the header lines; `text` ends with NUL before the blank line. Returns -1 if it is not
 * HTTP/1.x, if the body is over `limit_bytes`, and for transfer encodings, which wlbd does not use. */
int wlb_http_head_parse(const char *text, size_t limit_bytes, struct wlb_http_head *head, struct wlb_error *error);

#endif
