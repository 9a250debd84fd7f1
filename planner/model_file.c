#include "planner/model_file.h"

int wlb_model_file_read(const char *from, enum wlb_model_use use, struct wlb_model *model, struct wlb_error *error)
{
	const struct wlb_model_class *known = wlb_model_class(from != NULL ? from : "7B");
	if (known != NULL) {
		*model = known->model;
		return 0;
	}
	if (wlb_model_config_read(from, use, model, error) == 0)
		return 0;
	return wlb_fail_in(error, "--model (a config.json, or one of %s)", WLB_MODEL_CLASS_NAMES);
}
