/* Who asks and who answers, proved by the cluster's own MUNGE. */
#ifndef COORDINATOR_CLIENT_CREDENTIAL_H
#define COORDINATOR_CLIENT_CREDENTIAL_H

#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

/* A MUNGE credential over `payload`; the caller frees it. `socket` "" or NULL: MUNGE's default. NULL on error; the
 * message says what to check. Takes as long as munged does: microseconds, or seconds when it is stuck. */
char *wlb_credential_make(const char *socket, const void *payload, int length, struct wlb_error *error);

/* The same, and only processes of `reader` can decode it. */
char *wlb_credential_make_for(const char *socket, uid_t reader, const void *payload, int length,
                              struct wlb_error *error);

/* Decodes a credential, which works once: *uid is who made it. -1 when munged refuses it or its payload is not
 * `payload`; the message says which. */
int wlb_credential_check(const char *socket, const char *credential, const void *payload, int length, uid_t *uid,
                         struct wlb_error *error);

#endif
