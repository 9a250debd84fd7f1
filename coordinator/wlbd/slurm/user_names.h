/*
 * The names of accounts, looked up on a thread of their own and kept for a minute: where the directory of a site (LDAP,
 * SSSD) hangs, no thread that asks Slurm waits for it.
 */
#ifndef COORDINATOR_WLBD_SLURM_USER_NAMES_H
#define COORDINATOR_WLBD_SLURM_USER_NAMES_H

#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

struct wlbd_user_names;

/* Starts the thread. Returns NULL on error. */
struct wlbd_user_names *wlbd_user_names_new(struct wlb_error *error);
/* Nobody asks any more. A look-up that hangs is not waited for. NULL is allowed. */
void wlbd_user_names_free(struct wlbd_user_names *names);

/* Writes the name of the account, or its number: where it has no name, and where the look-up takes longer than half a
 * second. For any thread; blocks for that long at most, and not at all while an earlier look-up hangs. */
void wlbd_user_name(struct wlbd_user_names *names, uid_t uid, char *name, size_t size);

#endif
