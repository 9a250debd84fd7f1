/* Reads the model that a calculator is given: a config.json or a name. */
#ifndef PLANNER_MODEL_FILE_H
#define PLANNER_MODEL_FILE_H

#include "common/model_config.h"
#include "common/options.h"
#include "libwlb/wlb.h"
#include "planner/model_class.h"

/* The row of --model in a table of options; `field` is the offset of a const char *. */
#define WLB_MODEL_OPTION(field)                                                                                        \
	.name = "model", .kind = WLB_OPTION_TEXT, .offset = (field), .initial = "7B",                                  \
	.choices = WLB_MODEL_CLASS_NAMES, .open = true, .value = "MODEL",                                              \
	.help = "config.json of a model whose family is known, or its folder; or Llama-3-8B, -70B, -405B, "            \
		"Qwen2.5-7B, -32B, -72B, Qwen3-8B, "                                                                   \
		"-32B, Mistral-7B; or 550M, 7B, 30B, 70B, the size classes of the WLB-LLM paper, which are no "        \
		"published models"

/* A file, which is read as wlb_model_config_read does for `use`, or one of the classes; NULL is the 7B class: hidden
 * 4096, 32 layers, 32 heads, intermediate 11008. */
int wlb_model_file_read(const char *from, enum wlb_model_use use, struct wlb_model *model, struct wlb_error *error);

#endif
