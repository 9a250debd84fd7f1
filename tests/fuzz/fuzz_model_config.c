/* Any config.json: refused, or a model that can be built. */
#include "common/model_config.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_model model;
	struct wlb_error error;
	if (wlb_model_config_read(scratch_write("config.json", data, bytes), &model, &error) < 0)
		return 0;
	must(wlb_model_check(&model, &error) == 0);
	must(wlb_model_parameters(&model) > 0);
	return 0;
}
