/* The shapes of published models by their size, for calculations without a config.json. */
#ifndef WLB_MODEL_CLASS_H
#define WLB_MODEL_CLASS_H

#include "libwlb/wlb.h"

/* The class that is meant where none is named: hidden 4096, 32 layers, 32 heads, intermediate 11008. */
extern const char wlb_model_class_default[];

/* The shape of a class, such as "7B"; NULL where there is none of that name. */
const struct wlb_model *wlb_model_class(const char *name);

/* "7B, ...", all that there are. */
extern const char wlb_model_class_names[];

#endif
