/* Makes the record of an attempt's beginning (docs/api.md): its layout, ranks, model and options. */
#ifndef WORKER_RECORD_ATTEMPT_JSON_H
#define WORKER_RECORD_ATTEMPT_JSON_H

#include <jansson.h>

#include "worker/launch/attempt_setup.h"

/* Returns the object, which the caller releases, or NULL if out of memory. */
json_t *wlb_attempt_json(const struct wlb_launch *launch, const struct wlb_train_plan *plan,
                         const struct wlb_train_options *options);

#endif
