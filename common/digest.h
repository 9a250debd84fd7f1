/* Computes the digests that credentials prove: of one request, or of one reply to one request. */
#ifndef COMMON_DIGEST_H
#define COMMON_DIGEST_H

#include <stddef.h>

enum { WLB_DIGEST_SIZE = 65 }; /* 64 hexadecimal digits and NUL */

/* Lower-case hexadecimal SHA-256 of METHOD "\n" PATH "\n" BODY, where PATH includes the query. `body` may be
 * NULL when length is 0. Cannot fail. */
void wlb_digest_request(const char *method, const char *path, const void *body, size_t length,
                        char digest[WLB_DIGEST_SIZE]);

/* The digest of a reply that wlbd proves: SHA-256 as above of "reply\n" CREDENTIAL "\n" STATUS "\n" METHOD "\n" PATH
 * "\n" BODY, where CREDENTIAL and BODY stand for the hexadecimal SHA-256 of the request's credential and of the reply's
 * body. */
void wlb_digest_reply(const char *credential, int status, const char *method, const char *path, const void *body,
                      size_t length, char digest[WLB_DIGEST_SIZE]);

#endif
