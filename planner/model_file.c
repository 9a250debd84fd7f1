#include "planner/model_file.h"

#include "common/model_config.h"
#include "planner/model_class.h"

int wlb_model_file_read(const char *from, struct wlb_model *model, struct wlb_error *error)
{
	const struct wlb_model *known = from != NULL ? wlb_model_class(from) : &wlb_model_7b;
	if (known != NULL) {
		*model = *known;
		return 0;
	}
	if (wlb_model_config_read(from, model, error) == 0)
		return 0;
	return wlb_fail_in(error, "--model (a config.json, or one of %s)", wlb_model_class_names);
}
