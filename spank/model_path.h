/* The file of --wlb-model: the user types it relative to the folder of the submission, but the job runs elsewhere. */
#ifndef SPANK_MODEL_PATH_H
#define SPANK_MODEL_PATH_H

#include <stddef.h>

#include "libwlb/wlb.h"

/* The path that `typed` refers to: `known`, an absolute path found earlier for it, when that ends in the same words
 * (the script may have changed directory since); else `typed` itself when absolute; else `base`/`typed`. `known` and
 * `base` may be NULL or "". Returns -1 when the path does not fit or there is no base. */
int wlb_model_path_resolve(const char *typed, const char *known, const char *base, char *path, size_t size);

/* Returns 0 if `typed` names a readable regular file, seen from this process, or is the `known` one: that was checked
 * when the job was submitted, and a node may see other files. */
int wlb_model_path_check(const char *typed, const char *known, struct wlb_error *error);

#endif
