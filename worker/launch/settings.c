#include "worker/launch/settings.h"

#include <stdlib.h>
#include <string.h>

#include "common/number.h"

/* Leaves *value where the variable is not set. */
static int read_number(const char *name, int64_t least, int64_t *value, struct wlb_error *error)
{
	const char *text = getenv(name);
	return text != NULL ? wlb_number_parse(name, text, least, 1 << 24, value, error) : 0;
}

static int read_recompute(enum wlb_recompute *recompute, struct wlb_error *error)
{
	static const char *const names[] = {"none", "selective", "full"};
	const char *text = getenv("WLB_RECOMPUTE");
	for (int i = 0; text != NULL && i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			*recompute = (enum wlb_recompute)i;
			return 0;
		}
	return text == NULL ? 0 : wlb_fail(error, "WLB_RECOMPUTE '%.40s': it must be none, selective or full", text);
}

static int read_head_stages(int *stages, struct wlb_error *error)
{
	const char *text = getenv("WLB_HEAD_STAGES");
	if (text == NULL)
		return 0;
	*stages = strcmp(text, "all") == 0 ? WLB_HEAD_ALL : WLB_HEAD_LAST;
	if (*stages == WLB_HEAD_ALL || strcmp(text, "last") == 0)
		return 0;
	return wlb_fail(error, "WLB_HEAD_STAGES '%.40s': it must be last or all", text);
}

static int read_packing(int *packing, struct wlb_error *error)
{
	const char *text = getenv("WLB_PACKING");
	if (text == NULL)
		return 0;
	*packing = strcmp(text, "dynamic") == 0 ? WLB_STRATEGY_DYNAMIC : WLB_STRATEGY_BALANCED;
	if (*packing == WLB_STRATEGY_DYNAMIC || strcmp(text, "balanced") == 0)
		return 0;
	return wlb_fail(error, "WLB_PACKING '%.40s': it must be balanced or dynamic", text);
}

int wlb_train_settings_find(const struct wlb_train_options *options, int of_launcher,
                            struct wlb_train_settings *settings, struct wlb_error *error)
{
	int64_t windows = 1, interleave = 1, layers = 0;
	enum wlb_recompute recompute = WLB_RECOMPUTE_NONE;
	int head_stages = WLB_HEAD_AUTO, packing = WLB_PACKING_AUTO;
	bool is_given = options->recompute != WLB_RECOMPUTE_AUTO;
	if (of_launcher &&
	    (read_number("WLB_MICRO_BATCH_SIZE", 1, &windows, error) < 0 ||
	     read_number("WLB_INTERLEAVE", 1, &interleave, error) < 0 || read_recompute(&recompute, error) < 0 ||
	     read_number("WLB_RECOMPUTE_LAYERS", 0, &layers, error) < 0 || read_head_stages(&head_stages, error) < 0 ||
	     read_packing(&packing, error) < 0))
		return -1;
	*settings = (struct wlb_train_settings){
		.micro_batch_size = options->micro_batch_size > 0 ? options->micro_batch_size : windows,
		.interleave = (int32_t)(options->virtual_stages > 0 ? options->virtual_stages : interleave),
		.recompute = is_given ? (enum wlb_recompute)options->recompute : recompute,
		.head_stages = options->head_stages != WLB_HEAD_AUTO ? options->head_stages : head_stages,
		.packing = options->packing != WLB_PACKING_AUTO ? options->packing : packing,
		.zero_stage = options->zero_stage,
		.recompute_layers = is_given ? options->recompute_layers : (int32_t)layers,
	};
	return 0;
}
