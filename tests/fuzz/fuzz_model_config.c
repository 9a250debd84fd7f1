/* Any config.json: refused, or a model that can be built. */
#include "common/model_config.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const enum wlb_model_use uses[] = {WLB_MODEL_TO_TRAIN, WLB_MODEL_TO_PLAN};
	const char *path = scratch_write("config.json", data, bytes);
	struct wlb_model model;
	struct wlb_error error;
	for (int i = 0; i < 2; i++) {
		if (wlb_model_config_read(path, uses[i], &model, &error) < 0)
			continue;
		must(wlb_model_check(&model, &error) == 0);
		must(wlb_model_parameters(&model) > 0);
	}
	return 0;
}
