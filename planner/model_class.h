/* The shapes of published models by their size, for calculations without a config.json. */
#ifndef PLANNER_MODEL_CLASS_H
#define PLANNER_MODEL_CLASS_H

#include "libwlb/wlb.h"

/* hidden 4096, 32 layers, 32 heads, intermediate 11008: the shape where no class is named. From 49,400 tokens on, a
 * document's attention takes more work than everything else. */
extern const struct wlb_model wlb_model_7b;

/* The shape of a class, such as "7B"; NULL where there is none of that name. */
const struct wlb_model *wlb_model_class(const char *name);

/* The names of all classes: "7B, ...". */
extern const char wlb_model_class_names[];

#endif
