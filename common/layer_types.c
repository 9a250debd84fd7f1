#include "common/layer_types.h"

#include <string.h>

#include "common/model_field.h"

static const char with_window[] = "sliding_attention", without[] = "full_attention";

json_t *wlb_layer_types_json(const struct wlb_model *m)
{
	json_t *list = json_array();
	for (int64_t l = 0; l < m->num_hidden_layers; l++)
		json_array_append_new(list, json_string(wlb_model_layer_window(m, l) > 0 ? with_window : without));
	return list;
}

int wlb_layer_types_parse(const json_t *types, struct wlb_model *m, struct wlb_error *error)
{
	const json_t *type;
	size_t l;
	if (!json_is_array(types) || json_array_size(types) != (size_t)m->num_hidden_layers)
		return wlb_config_refuse("layer_types", types, "it must be a list with an entry a layer", error);
	json_array_foreach(types, l, type)
	{
		const char *name = json_is_string(type) ? json_string_value(type) : "";
		int has_window = strcmp(name, with_window) == 0;
		if (!has_window && strcmp(name, without) != 0)
			return wlb_config_refuse("layer_types", type,
			                         "only \"full_attention\" and \"sliding_attention\" are known", error);
		if (has_window && m->sliding_window == 0)
			return wlb_fail(
				error,
				"layer_types has \"sliding_attention\": sliding_window must say of how many tokens");
		if (!has_window)
			m->full_layers[l / 64] |= (uint64_t)1 << (l % 64);
	}
	return 0;
}
