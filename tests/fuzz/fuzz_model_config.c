/* Any config.json: refused, or a model that can be built, whose rotary positions have angles. */
#include <math.h>

#include "common/model_config.h"
#include "tests/fuzz/scratch.h"

static void check_angles(const struct wlb_model *model)
{
	double frequencies[1 << 11]; /* of the largest head */
	for (int kind = 0; kind < wlb_model_angle_kinds(model); kind++) {
		must(isfinite(wlb_rope_frequencies(model, (enum wlb_angles)kind, frequencies)));
		for (int64_t i = 0; i < wlb_model_rotary_dim(model) / 2; i++)
			must(isfinite(frequencies[i]) && frequencies[i] >= 0.0);
	}
}

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
		int64_t parameters = wlb_model_parameters(&model), active = wlb_model_active_parameters(&model);
		must(active > 0 && active <= parameters);
		check_angles(&model);
		must((wlb_model_window_share(&model) > 0.0) == (model.sliding_window > 0));
	}
	return 0;
}
