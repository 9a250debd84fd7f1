#include "coordinator/stack_clusters/sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 4, KINDS = DIMENSIONS + 2 };

static const char *const dimension_names[DIMENSIONS] = {"tp", "cp", "pp", "dp"};
enum { PIPELINE = 2 };

/* Degrees and, of a rank, coordinates: in the order of the numbers of ranks. */
struct place {
	int64_t coords[DIMENSIONS];
};

static int read_layout(const json_t *reply, struct place *degrees)
{
	const json_t *layout = json_object_get(reply, "layout");
	for (int d = 0; d < DIMENSIONS; d++) {
		degrees->coords[d] = json_integer_value(json_object_get(layout, dimension_names[d]));
		if (degrees->coords[d] < 1 || degrees->coords[d] > 1 << 20)
			return -1;
	}
	return 0;
}

static struct place place_of(const struct place *degrees, int64_t rank)
{
	struct place place;
	for (int d = 0; d < DIMENSIONS; d++) {
		place.coords[d] = rank % degrees->coords[d];
		rank /= degrees->coords[d];
	}
	return place;
}

/* A rank and the name of its set of one kind. */
struct member {
	char name[64];
	int32_t rank;
};

static void name_group(const struct place *place, int dimension, char name[64])
{
	int length = snprintf(name, 64, "the %s group", dimension_names[dimension]);
	for (int d = 0; d < DIMENSIONS; d++)
		if (d != dimension && length < 64)
			length += snprintf(name + length, (size_t)(64 - length), "%s %s %lld",
			                   length > 12 ? "," : " of", dimension_names[d], (long long)place->coords[d]);
}

/* Returns 0 where a rank is in no set of that kind. */
static int name_set(const json_t *entry, const struct place *degrees, int kind, struct member *member)
{
	const char *node = json_string_value(json_object_get(entry, "node"));
	member->rank = (int32_t)json_integer_value(json_object_get(entry, "rank"));
	if (kind == 0) {
		snprintf(member->name, sizeof(member->name), "node %.50s", node != NULL ? node : "?");
		return 1;
	}
	int dimension = kind <= DIMENSIONS ? kind - 1 : PIPELINE;
	if (degrees == NULL || degrees->coords[dimension] < 2)
		return 0;
	struct place place = place_of(degrees, member->rank);
	if (kind <= DIMENSIONS)
		name_group(&place, dimension, member->name);
	else
		snprintf(member->name, sizeof(member->name), "pipeline stage %lld", (long long)place.coords[PIPELINE]);
	return 1;
}

static int by_name(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static void add_sets(struct wlb_stack_sets *sets, const struct member *sorted, int32_t count, int32_t *used)
{
	for (int32_t i = 0; i < count;) {
		int32_t first = i, *members = sets->members + *used;
		for (; i < count && strcmp(sorted[i].name, sorted[first].name) == 0; i++)
			members[i - first] = sorted[i].rank;
		if (i - first < 2)
			continue;
		snprintf(sets->names[sets->count], sizeof(sets->names[0]), "%s", sorted[first].name);
		sets->list[sets->count] = (struct wlb_verdict_group){.kind = WLB_VERDICT_OTHER,
		                                                     .name = sets->names[sets->count],
		                                                     .members = members,
		                                                     .count = i - first};
		sets->count++;
		*used += i - first;
	}
}

int wlb_stack_sets_make(const json_t *reply, struct wlb_stack_sets *sets)
{
	const json_t *ranks = json_object_get(reply, "ranks");
	size_t count = json_array_size(ranks), max = KINDS * count + 1;
	struct place degrees;
	int has_layout = read_layout(reply, &degrees) == 0;
	struct member *sorted = calloc(count + 1, sizeof(*sorted));
	int32_t used = 0;
	*sets = (struct wlb_stack_sets){.list = calloc(max, sizeof(*sets->list)),
	                                .members = calloc(max, sizeof(*sets->members)),
	                                .names = calloc(max, sizeof(*sets->names))};
	if (sorted == NULL || sets->list == NULL || sets->members == NULL || sets->names == NULL) {
		free(sorted);
		return -1;
	}
	for (int kind = 0; kind < KINDS; kind++) {
		int32_t named = 0;
		for (size_t i = 0; i < count; i++)
			named += name_set(json_array_get(ranks, i), has_layout ? &degrees : NULL, kind, &sorted[named]);
		qsort(sorted, (size_t)named, sizeof(*sorted), by_name);
		add_sets(sets, sorted, named, &used);
	}
	free(sorted);
	return 0;
}

void wlb_stack_sets_free(struct wlb_stack_sets *sets)
{
	free(sets->list);
	free(sets->members);
	free(sets->names);
	*sets = (struct wlb_stack_sets){0};
}
