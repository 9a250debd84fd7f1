/* Proofs of who sends a request or a reply, by the cluster's MUNGE. */
#ifndef COORDINATOR_CLIENT_CREDENTIAL_H
#define COORDINATOR_CLIENT_CREDENTIAL_H

#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

/* Makes a MUNGE credential over `payload`; the caller frees it. `socket` "" or NULL: MUNGE's default. Returns NULL on
 * error; the message says what to check. Takes as long as munged does: microseconds, or seconds if munged hangs. */
char *wlb_credential_make(const char *socket, const void *payload, int length, struct wlb_error *error);

/* The same, but only processes of `reader` can decode it. */
char *wlb_credential_make_for(const char *socket, uid_t reader, const void *payload, int length,
                              struct wlb_error *error);

/* Decodes a credential, which works once; *uid is the account that made it. Returns -1 if munged refuses it or its
 * payload is not `payload`; the message says which. */
int wlb_credential_check(const char *socket, const char *credential, const void *payload, int length, uid_t *uid,
                         struct wlb_error *error);

#endif
