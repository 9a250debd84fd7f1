/* Dynamic context parallelism with any work and a limit of keys; internal. */
#ifndef LIBWLB_PACKING_DYNAMIC_CP_H
#define LIBWLB_PACKING_DYNAMIC_CP_H

#include "libwlb/wlb.h"

/* As wlb_dynamic_cp, with work as wlb_packer_options.work returns it, and with the tokens of ranks equal too, as far as
 * documents on more ranks make them so. No rank has more tokens, or exchanges more keys, than it has space for. Returns
 * 0, 1 where the documents do not fit, so that a caller with an alternative can distinguish that from an error, or -1
 * on an error. */
int wlb_dynamic_cp_place(double (*work)(const void *context, int64_t tokens), const void *work_context,
                         const struct wlb_rank_space *space, const int64_t *tokens, size_t count, int32_t micro_batches,
                         struct wlb_place *places, struct wlb_load *loads, struct wlb_error *error);

#endif
