#include <stdlib.h>

#include "libverdict/error.h"
#include "libverdict/stack_frame.h"
#include "libverdict/wlb_verdict.h"

/* A stack as it is compared: from the outermost frame to `innermost`. */
struct compared {
	const struct wlb_verdict_stack *stack;
	int32_t index; /* of the stack, of those given */
	int32_t innermost;
};

/* The clusters and what they point to. */
struct memory {
	struct wlb_verdict_clusters clusters; /* first, so that both have one address */
	int32_t *ranks;                       /* [count] cluster after cluster */
	int32_t *outliers;                    /* [outlier_count] outside the largest, ascending */
	int32_t outlier_count;
};

/* ---- what of a stack counts -------------------------------------------------------------------------------------- */

static int32_t innermost_of(const struct wlb_verdict_stack *stack)
{
	int32_t last = stack->frame_count - 1, first = 0;
	for (int32_t i = last; i >= 0; i--)
		if (verdict_frame_is_communication(stack->frames[i]))
			return i;
	while (first < last && verdict_frame_is_c_library(stack->frames[first]) &&
	       verdict_frame_is_c_library(stack->frames[first + 1]))
		first++;
	return first;
}

/* The outermost frames first. */
static int compare_stacks(const struct compared *a, const struct compared *b)
{
	int32_t i = a->stack->frame_count - 1, k = b->stack->frame_count - 1;
	for (; i >= a->innermost && k >= b->innermost; i--, k--) {
		int order = verdict_frame_compare(a->stack->frames[i], b->stack->frames[k]);
		if (order != 0)
			return order;
	}
	return (i >= a->innermost) - (k >= b->innermost);
}

static int by_stack(const void *a, const void *b)
{
	const struct compared *x = a, *y = b;
	int order = compare_stacks(x, y);
	return order != 0 ? order : (x->stack->rank > y->stack->rank) - (x->stack->rank < y->stack->rank);
}

/* ---- clusters ---------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	const struct wlb_verdict_cluster *x = a, *y = b;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->ranks[0] > y->ranks[0]) - (x->ranks[0] < y->ranks[0]);
}

static void make_clusters(struct memory *memory, const struct compared *sorted, int32_t count)
{
	struct wlb_verdict_clusters *clusters = &memory->clusters;
	for (int32_t i = 0; i < count; i++) {
		if (i == 0 || compare_stacks(&sorted[i - 1], &sorted[i]) != 0)
			clusters->list[clusters->count++] = (struct wlb_verdict_cluster){
				.ranks = memory->ranks + i, .stack = sorted[i].index, .innermost = sorted[i].innermost};
		clusters->list[clusters->count - 1].count++;
		memory->ranks[i] = sorted[i].stack->rank;
	}
	qsort(clusters->list, (size_t)clusters->count, sizeof(*clusters->list), by_size);
}

/* Returns 0 where none is suspect. */
static int name_suspects(struct wlb_verdict_clusters *clusters, int32_t count)
{
	if (clusters->count < 2 || clusters->list[0].count <= count - clusters->list[0].count)
		return 0;
	int32_t fewest = clusters->list[clusters->count - 1].count;
	for (int32_t i = 1; i < clusters->count; i++)
		clusters->list[i].is_suspect = clusters->list[i].count == fewest;
	return 1;
}

/* ---- the group that outliers share ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void list_outliers(struct memory *memory)
{
	const struct wlb_verdict_clusters *clusters = &memory->clusters;
	for (int32_t i = 1; i < clusters->count; i++)
		for (int32_t k = 0; k < clusters->list[i].count; k++)
			memory->outliers[memory->outlier_count++] = clusters->list[i].ranks[k];
	qsort(memory->outliers, (size_t)memory->outlier_count, sizeof(*memory->outliers), by_value);
}

static int holds_all_outliers(const struct memory *memory, const struct wlb_verdict_group *group)
{
	int32_t found = 0;
	for (int32_t m = 0; m < group->count; m++)
		found += bsearch(&group->members[m], memory->outliers, (size_t)memory->outlier_count,
		                 sizeof(*memory->outliers), by_value) != NULL;
	return found == memory->outlier_count;
}

static int32_t find_shared_group(const struct memory *memory, int32_t count, const struct wlb_verdict_group *groups,
                                 int32_t group_count)
{
	int32_t best = -1;
	for (int32_t g = 0; g < group_count; g++) {
		int is_smaller = best < 0 || groups[g].count < groups[best].count;
		if (groups[g].count < count && is_smaller && holds_all_outliers(memory, &groups[g]))
			best = g;
	}
	return best;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static int check_ranks(const struct wlb_verdict_stack *stacks, int32_t count, int32_t *scratch,
                       struct wlb_verdict_error *error)
{
	for (int32_t i = 0; i < count; i++)
		scratch[i] = stacks[i].rank;
	qsort(scratch, (size_t)count, sizeof(*scratch), by_value);
	for (int32_t i = 0; i < count; i++) {
		if (scratch[i] < 0)
			return verdict_fail(error, "rank %d: must not be negative", (int)scratch[i]);
		if (i > 0 && scratch[i] == scratch[i - 1])
			return verdict_fail(error, "rank %d is listed twice; give one stack of each rank",
			                    (int)scratch[i]);
	}
	return 0;
}

static struct memory *allocate(int32_t count)
{
	struct memory *memory = calloc(1, sizeof(*memory));
	if (memory == NULL)
		return NULL;
	memory->clusters.group = -1;
	memory->clusters.list = calloc((size_t)count + 1, sizeof(*memory->clusters.list));
	memory->ranks = calloc((size_t)count + 1, sizeof(*memory->ranks));
	memory->outliers = calloc((size_t)count + 1, sizeof(*memory->outliers));
	if (memory->clusters.list != NULL && memory->ranks != NULL && memory->outliers != NULL)
		return memory;
	wlb_verdict_clusters_free(&memory->clusters);
	return NULL;
}

struct wlb_verdict_clusters *wlb_verdict_clusters_new(const struct wlb_verdict_stack *stacks, int32_t count,
                                                      const struct wlb_verdict_group *groups, int32_t group_count,
                                                      struct wlb_verdict_error *error)
{
	struct memory *memory = allocate(count);
	struct compared *sorted = calloc((size_t)count + 1, sizeof(*sorted));
	int rc = memory != NULL && sorted != NULL ? 0 : verdict_fail(error, "out of memory for %d stacks", (int)count);
	if (rc == 0)
		rc = check_ranks(stacks, count, memory->ranks, error);
	if (rc != 0) {
		free(sorted);
		wlb_verdict_clusters_free(memory != NULL ? &memory->clusters : NULL);
		return NULL;
	}
	for (int32_t i = 0; i < count; i++)
		sorted[i] = (struct compared){&stacks[i], i, innermost_of(&stacks[i])};
	qsort(sorted, (size_t)count, sizeof(*sorted), by_stack);
	make_clusters(memory, sorted, count);
	free(sorted);
	if (name_suspects(&memory->clusters, count)) {
		list_outliers(memory);
		if (memory->outlier_count > 1)
			memory->clusters.group = find_shared_group(memory, count, groups, group_count);
	}
	return &memory->clusters;
}

void wlb_verdict_clusters_free(struct wlb_verdict_clusters *clusters)
{
	struct memory *memory = (struct memory *)clusters;
	if (memory == NULL)
		return;
	free(memory->clusters.list);
	free(memory->ranks);
	free(memory->outliers);
	free(memory);
}
