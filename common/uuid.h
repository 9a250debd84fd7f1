/* New ids of attempts. */
#ifndef COMMON_UUID_H
#define COMMON_UUID_H

#include <stddef.h>

#include "libwlb/wlb.h"

enum { WLB_UUID_LENGTH = 36 };

/* Writes a new UUID, for which `id` has more than WLB_UUID_LENGTH bytes. */
int wlb_uuid_make(char *id, size_t size, struct wlb_error *error);

#endif
