/* Who asks, proved by the cluster's own MUNGE. */
#ifndef WLB_CREDENTIAL_H
#define WLB_CREDENTIAL_H

#include <stddef.h>

#include "libwlb/wlb.h"

/* A MUNGE credential over `payload`; the caller frees it. `socket` "" or NULL: MUNGE's default. NULL on error; the
 * message says what to check. Takes as long as munged does: microseconds, or seconds when it is stuck. */
char *wlb_credential_make(const char *socket, const void *payload, int length, struct wlb_error *error);

#endif
