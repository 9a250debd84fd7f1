#include "worker/parallel/groups.h"

#include <stdlib.h>

/* Returns how many tensor-parallel ranks hold the same key head. */
static int key_head_holders(int tp, const struct wlb_model *model)
{
	return tp > model->num_key_value_heads ? tp / (int)model->num_key_value_heads : 1;
}

/* Every rank splits off all groups, in the same order. The place of its first member distinguishes a group from others
 * of its kind. */
static int open_groups(struct wlb_groups *g, const struct wlb_model *model, struct wlb_error *error)
{
	const struct wlb_layout *layout = &g->layout;
	const struct wlb_coordinates at = g->at;
	int holders = key_head_holders(layout->tp, model);
	int is_end = model->tie_word_embeddings && (at.pp == 0 || at.pp == layout->pp - 1);
	const struct {
		struct wlb_comm **group;
		const char *name;
		struct wlb_coordinates first;
		int key;
	} splits[] = {
		{&g->tp, "tp", {.tp = 0, at.cp, at.pp, at.dp}, at.tp},
		{&g->cp, "cp", {at.tp, .cp = 0, at.pp, at.dp}, at.cp},
		{&g->data, "data", {at.tp, .cp = 0, at.pp, .dp = 0}, at.dp * layout->cp + at.cp},
		{&g->pp, "pp", {at.tp, at.cp, .pp = 0, at.dp}, at.pp},
		{&g->pp_back, "pp_back", {at.tp, at.cp, .pp = 0, at.dp}, at.pp},
		{&g->kv, "kv", {.tp = at.tp - at.tp % holders, at.cp, at.pp, at.dp}, at.tp},
		{&g->ends, "ends", {at.tp, at.cp, .pp = is_end ? 0 : at.pp, at.dp}, at.pp},
	};
	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		int color = wlb_layout_place(layout, &splits[i].first);
		*splits[i].group = wlb_comm_split(g->world, color, splits[i].key, splits[i].name, error);
		if (*splits[i].group == NULL)
			return -1;
	}
	return 0;
}

struct wlb_groups *wlb_groups_open(struct wlb_comm *world, const struct wlb_layout *layout, int place,
                                   const struct wlb_model *model, struct wlb_error *error)
{
	struct wlb_groups *groups = calloc(1, sizeof(*groups));
	if (groups == NULL) {
		wlb_fail(error, "out of memory for the groups of place %d in the layout", place);
		return NULL;
	}
	groups->layout = *layout;
	groups->place = place;
	groups->at = wlb_layout_coordinates(layout, place);
	groups->world = world;
	if (open_groups(groups, model, error) == 0)
		return groups;
	wlb_groups_close(groups);
	return NULL;
}

void wlb_groups_close(struct wlb_groups *groups)
{
	if (groups == NULL)
		return;
	wlb_comm_close(groups->ends);
	wlb_comm_close(groups->kv);
	wlb_comm_close(groups->pp_back);
	wlb_comm_close(groups->pp);
	wlb_comm_close(groups->data);
	wlb_comm_close(groups->cp);
	wlb_comm_close(groups->tp);
	free(groups);
}
