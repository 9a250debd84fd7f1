#include "follow/followed.h"

#include <string.h>

void wlb_followed_begin(struct wlb_followed *record)
{
	record->step_kind = WLB_FOLLOWED_NO_STEP;
	record->step = record->at = 0;
	record->time_s = 0;
	record->count = record->left_out = 0;
}

static struct wlb_followed_value *find(struct wlb_followed *record, const char *name)
{
	for (int i = 0; i < record->count; i++)
		if (strcmp(record->values[i].name, name) == 0)
			return &record->values[i];
	return NULL;
}

void wlb_followed_add(struct wlb_followed *record, const char *name, size_t length, double value)
{
	char stored[WLB_VALUE_NAME_SIZE];
	double scale = wlb_value_name(stored, name, length);
	struct wlb_followed_value *place = find(record, stored);
	if (stored[0] == '\0' || (place == NULL && record->count == WLB_FOLLOWED_VALUES_MOST)) {
		record->left_out++;
		return;
	}
	if (place == NULL)
		place = &record->values[record->count++];
	memcpy(place->name, stored, sizeof(stored));
	place->value = value * scale;
}

void wlb_followed_set_step(struct wlb_followed *record, enum wlb_followed_step kind, double step)
{
	if (!(step >= 0 && step <= (double)WLB_FOLLOWED_STEP_MOST))
		return;
	record->step_kind = kind;
	record->step = (int64_t)step;
}

const double *wlb_followed_find(const struct wlb_followed *record, const char *name)
{
	for (int i = 0; i < record->count; i++)
		if (strcmp(record->values[i].name, name) == 0)
			return &record->values[i].value;
	return NULL;
}
