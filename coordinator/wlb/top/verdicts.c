#include "coordinator/wlb/top/verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/wlb/output/reply_fields.h"

enum { VERDICTS_MAX = 256 };

int wlb_top_verdicts_read(const json_t *reply, struct wlb_top_verdicts *verdicts)
{
	const json_t *entries = json_object_get(reply, "verdicts");
	size_t count = json_array_size(entries) < VERDICTS_MAX ? json_array_size(entries) : VERDICTS_MAX;
	*verdicts = (struct wlb_top_verdicts){.list = calloc(count + 1, sizeof(*verdicts->list))};
	if (verdicts->list == NULL)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const json_t *entry = json_array_get(entries, i);
		const char *state = wlb_field_text(entry, "state", "");
		double since_s = json_number_value(json_object_get(entry, "since_s"));
		if (strcmp(state, "over") != 0)
			verdicts->list[verdicts->count++] =
				(struct wlb_top_verdict){.entry = entry,
			                                 .is_confirmed = strcmp(state, "confirmed") == 0,
			                                 .since_s = since_s > 0 ? since_s : 0};
	}
	return 0;
}

void wlb_top_verdicts_free(struct wlb_top_verdicts *verdicts)
{
	free(verdicts->list);
	*verdicts = (struct wlb_top_verdicts){0};
}
