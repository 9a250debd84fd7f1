/* Makes the config.json of a model that Transformers reads. */
#ifndef WORKER_CHECKPOINT_CLI_MADE_CONFIG_H
#define WORKER_CHECKPOINT_CLI_MADE_CONFIG_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns a new object that Transformers and wlb_model_config_read read as this model; NULL where memory is short.
 * Rotary positions are spelled as Transformers 4 reads them, as 5 does too. Tokens that begin, end or fill a text are
 * null: a checkpoint knows none, and those that a class takes where the keys are absent may be beyond the vocabulary.
 */
json_t *wlb_made_config(const struct wlb_model *model);

#endif
