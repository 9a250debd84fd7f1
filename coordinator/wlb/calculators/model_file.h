/* The model that a calculator works for. */
#ifndef COORDINATOR_WLB_CALCULATORS_MODEL_FILE_H
#define COORDINATOR_WLB_CALCULATORS_MODEL_FILE_H

#include "libwlb/wlb.h"

/* What --model may name, for help texts. */
#define WLB_MODEL_HELP                                                                                                 \
	"  --model MODEL           config.json of a Llama-family model, or 550M, 7B, 30B or 70B for one of\n"          \
	"                          that class (default 7B)\n"

/* A file, or one of the classes; NULL is the 7B class: hidden 4096, 32 layers, 32 heads, intermediate 11008. */
int wlb_model_file_read(const char *from, struct wlb_model *model, struct wlb_error *error);

#endif
