/* The file of --wlb-model: the user types it relative to where the job is submitted, the job runs elsewhere. */
#ifndef WLB_SPANK_MODEL_PATH_H
#define WLB_SPANK_MODEL_PATH_H

#include <stddef.h>

#include "libwlb/wlb.h"

/* What `typed` means: `known`, an absolute path found earlier for it, when that ends in the same words (the script
 * may have changed directory since); else `typed` itself when absolute; else `base`/`typed`. `known` and `base` may
 * be NULL. Returns -1 when the path does not fit or there is no base. */
int wlb_model_path_resolve(const char *typed, const char *known, const char *base, char *path, size_t size);

/* 0 when `typed` names a readable regular file, seen from this process; the one that SLURM_WLB_MODEL names was checked
 * when the job was submitted. */
int wlb_model_path_check(const char *typed, struct wlb_error *error);

/* Puts the absolute path into this process's environment as SLURM_WLB_MODEL, which reaches the job even under
 * --export=NONE; what stands there already is the `known` one. */
int wlb_model_path_export(const char *typed, struct wlb_error *error);

#endif
