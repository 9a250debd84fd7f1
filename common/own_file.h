/*
 * Opens files of this account in a directory that others may have prepared, or may change: nothing there makes a
 * process wait, and no file of another account is read or written.
 */
#ifndef COMMON_OWN_FILE_H
#define COMMON_OWN_FILE_H

#include <stdbool.h>

#include "libwlb/wlb.h"

/* Opens a file, which O_CREAT makes with mode 0600. It must be a regular file of the effective user, and with O_CREAT,
 * by which it may be written, have no other name (hard link); no symbolic link is followed. Returns a descriptor that
 * an exec closes, or -1 with errno: EINVAL where it is another kind of file, or another account's. */
int wlb_own_file_open(const char *path, int flags, struct wlb_error *error);

/* Takes the flock() of an open file, for limit_ms at most. Returns false where another process has it all that time. A
 * file system without locks counts as locked. */
bool wlb_own_file_lock(int fd, int limit_ms);

#endif
