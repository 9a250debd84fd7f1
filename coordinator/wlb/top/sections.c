#include "coordinator/wlb/top/sections.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/wlb/top/rank_state.h"

struct keyed {
	int key;   /* of the section */
	int order; /* in it */
	int index; /* of the rank in the list */
};

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* The first place of the group in that dimension. */
static int group_key(const struct wlb_layout *layout, struct wlb_coordinates at, enum wlb_top_by by)
{
	int *const varied[] = {
		[WLB_TOP_BY_TP] = &at.tp, [WLB_TOP_BY_CP] = &at.cp, [WLB_TOP_BY_PP] = &at.pp, [WLB_TOP_BY_DP] = &at.dp};
	*varied[by] = 0;
	return wlb_layout_place(layout, &at);
}

/* Ranks on an unknown node, and ranks that the layout leaves idle, are last. */
static struct keyed key_of(const struct wlb_top_ranks *ranks, int index, enum wlb_top_by by)
{
	const struct wlb_top_rank *rank = &ranks->list[index];
	if (by == WLB_TOP_BY_NODE)
		return (struct keyed){rank->node >= 0 ? rank->node : INT_MAX, rank->rank, index};
	if (rank->place < 0)
		return (struct keyed){INT_MAX, rank->rank, index};
	return (struct keyed){group_key(&ranks->layout, rank->at, by), rank->place, index};
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* The coordinates that the ranks of the group share, of dimensions of more than one. */
static void label_group(const struct wlb_layout *layout, const struct wlb_coordinates *at, enum wlb_top_by by,
                        char label[WLB_TOP_LABEL_SIZE])
{
	const struct {
		const char *name;
		int degree, at;
		enum wlb_top_by by;
	} dimensions[] = {{"tp", layout->tp, at->tp, WLB_TOP_BY_TP},
	                  {"cp", layout->cp, at->cp, WLB_TOP_BY_CP},
	                  {"pp", layout->pp, at->pp, WLB_TOP_BY_PP},
	                  {"dp", layout->dp, at->dp, WLB_TOP_BY_DP}};
	size_t used = 0;
	label[0] = '\0';
	for (size_t i = 0; i < sizeof(dimensions) / sizeof(dimensions[0]); i++)
		if (dimensions[i].by != by && dimensions[i].degree > 1)
			used += (size_t)snprintf(label + used, WLB_TOP_LABEL_SIZE - used, "%s%s%d", used > 0 ? " " : "",
			                         dimensions[i].name, dimensions[i].at);
	if (used == 0)
		snprintf(label, WLB_TOP_LABEL_SIZE, "all");
}

static void label_section(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank, enum wlb_top_by by,
                          char label[WLB_TOP_LABEL_SIZE])
{
	if (by == WLB_TOP_BY_NODE)
		snprintf(label, WLB_TOP_LABEL_SIZE, "%s", wlb_top_rank_node(ranks, rank));
	else if (rank->place < 0)
		snprintf(label, WLB_TOP_LABEL_SIZE, "idle");
	else
		label_group(&ranks->layout, &rank->at, by, label);
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static void cut_into_sections(const struct wlb_top_ranks *ranks, const struct keyed *keys, enum wlb_top_by by,
                              struct wlb_top_sections *sections)
{
	for (int i = 0; i < ranks->count; i++) {
		sections->members[i] = keys[i].index;
		if (i == 0 || keys[i].key != keys[i - 1].key) {
			struct wlb_top_section *section = &sections->list[sections->count++];
			*section = (struct wlb_top_section){.first = i};
			label_section(ranks, &ranks->list[keys[i].index], by, section->label);
		}
		sections->list[sections->count - 1].count++;
	}
}

int wlb_top_sections_make(const struct wlb_top_ranks *ranks, enum wlb_top_by by, struct wlb_top_sections *sections)
{
	size_t size = (size_t)ranks->count + 1;
	struct keyed *keys = calloc(size, sizeof(*keys));
	*sections = (struct wlb_top_sections){.list = calloc(size, sizeof(*sections->list)),
	                                      .members = calloc(size, sizeof(*sections->members))};
	int rc = keys != NULL && sections->list != NULL && sections->members != NULL ? 0 : -1;
	if (!ranks->has_layout)
		by = WLB_TOP_BY_NODE;
	if (rc == 0) {
		for (int i = 0; i < ranks->count; i++)
			keys[i] = key_of(ranks, i, by);
		qsort(keys, (size_t)ranks->count, sizeof(*keys), by_key);
		cut_into_sections(ranks, keys, by, sections);
	}
	free(keys);
	return rc;
}

void wlb_top_sections_free(struct wlb_top_sections *sections)
{
	free(sections->list);
	free(sections->members);
	*sections = (struct wlb_top_sections){0};
}

const struct wlb_top_rank *wlb_top_section_worst(const struct wlb_top_ranks *ranks,
                                                 const struct wlb_top_sections *sections, int section)
{
	const struct wlb_top_section *s = &sections->list[section];
	const struct wlb_top_rank *worst = &ranks->list[sections->members[s->first]];
	for (int i = 1; i < s->count; i++) {
		const struct wlb_top_rank *rank = &ranks->list[sections->members[s->first + i]];
		if (wlb_top_is_worse(ranks, rank, worst))
			worst = rank;
	}
	return worst;
}
