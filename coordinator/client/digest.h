/* What a credential vouches for: one request, and no other. */
#ifndef WLB_DIGEST_H
#define WLB_DIGEST_H

#include <stddef.h>

enum { WLB_DIGEST_SIZE = 65 }; /* 64 hexadecimal digits and NUL */

/* Lower-case hexadecimal SHA-256 of METHOD "\n" PATH "\n" BODY, where PATH includes the query. `body` may be
 * NULL when length is 0. Cannot fail. */
void wlb_digest_request(const char *method, const char *path, const void *body, size_t length,
                        char digest[WLB_DIGEST_SIZE]);

#endif
