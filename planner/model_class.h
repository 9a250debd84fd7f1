/* Finds the shapes of published models by their names, for calculations without a config.json. */
#ifndef PLANNER_MODEL_CLASS_H
#define PLANNER_MODEL_CLASS_H

#include "libwlb/wlb.h"

/* hidden 4096, 32 layers, 32 heads, intermediate 11008: the shape where no class is named. From 49,400 tokens on, a
 * document's attention takes more work than everything else. */
extern const struct wlb_model wlb_model_7b;

/* A model by its name. */
struct wlb_model_class {
	const char *name;   /* "Llama-3-70B" */
	const char *source; /* of the shape, for people: "config.json of meta-llama/Llama-3.1-70B" */
	struct wlb_model model;
};

/* The class of that name, in any case of letters; NULL where there is none. */
const struct wlb_model_class *wlb_model_class(const char *name);

/* All names, for help and completion: the names of published models, then the sizes of the paper. */
#define WLB_MODEL_CLASS_NAMES                                                                                          \
	"Llama-3-8B|Llama-3-70B|Llama-3-405B|Qwen2.5-7B|Qwen2.5-32B|Qwen2.5-72B|Qwen3-8B|Qwen3-32B|Mistral-7B|550M|"   \
	"7B|"                                                                                                          \
	"30B|70B"

#endif
