/* The verdict of a run that hangs, from its clusters of stacks. */
#include <stdarg.h>
#include <stdio.h>

#include "libverdict/stack_frame.h"
#include "libverdict/verdicts.h"

enum { CLUSTERS_TOLD = 3 }; /* in the evidence, besides the largest */

/* Stacks show who differs, and not why: the ranks that others wait for differ, and so do ranks that save a checkpoint
 * for all. */
static const double certainty = 0.5;

/* Whether the verdict names the ranks of a cluster: of a suspect cluster, or, where the verdict names a group, of each
 * cluster but the largest. */
static int names(const struct wlb_verdict_clusters *clusters, int32_t cluster)
{
	return clusters->group >= 0 ? cluster > 0 : clusters->list[cluster].is_suspect;
}

/* Returns the lowest rank that is named, of those above `after`; -1: there is none. */
static int32_t next_rank(const struct wlb_verdict_clusters *clusters, int32_t after)
{
	int32_t next = -1;
	for (int32_t i = 0; i < clusters->count; i++)
		for (int32_t k = 0; names(clusters, i) && k < clusters->list[i].count; k++) {
			int32_t rank = clusters->list[i].ranks[k];
			if (rank > after && (next < 0 || rank < next))
				next = rank;
		}
	return next;
}

static void name_ranks(const struct wlb_verdict_clusters *clusters, struct wlb_verdict *verdict)
{
	int32_t count = 0, rank = -1;
	for (int32_t i = 0; i < clusters->count; i++)
		count += names(clusters, i) ? clusters->list[i].count : 0;
	for (int32_t i = 0; i < WLB_VERDICT_RANKS && (rank = next_rank(clusters, rank)) >= 0; i++)
		verdict->ranks[i] = rank;
	verdict->rank_count = count;
}

__attribute__((format(printf, 3, 4))) static size_t append(struct wlb_verdict *verdict, size_t used, const char *format,
                                                           ...)
{
	va_list arguments;
	if (used >= sizeof(verdict->evidence))
		return used;
	va_start(arguments, format);
	int length = vsnprintf(verdict->evidence + used, sizeof(verdict->evidence) - used, format, arguments);
	va_end(arguments);
	return length > 0 ? used + (size_t)length : used;
}

static size_t append_place(struct wlb_verdict *verdict, size_t used, const struct wlb_verdict_cluster *cluster,
                           const struct wlb_verdict_stack *stacks)
{
	const struct wlb_verdict_stack *stack = &stacks[cluster->stack];
	char place[128] = "no function that is known";
	if (cluster->innermost < stack->frame_count)
		verdict_frame_write(stack->frames[cluster->innermost], place, sizeof(place));
	return append(verdict, used, "%s", place);
}

/* "6 of 8 ranks are in PMPI_Allreduce (libmpi.so.40), 2 in wait_for_ever (train); all others are of node n2" */
static void tell(const struct wlb_verdict_clusters *clusters, const struct wlb_verdict_stack *stacks,
                 const struct wlb_verdict_group *groups, struct wlb_verdict *verdict)
{
	int32_t all = 0;
	for (int32_t i = 0; i < clusters->count; i++)
		all += clusters->list[i].count;
	size_t used = append(verdict, 0, "%d of %d ranks are in ", (int)clusters->list[0].count, (int)all);
	used = append_place(verdict, used, &clusters->list[0], stacks);
	for (int32_t i = 1; i < clusters->count && i <= CLUSTERS_TOLD; i++) {
		used = append(verdict, used, ", %d in ", (int)clusters->list[i].count);
		used = append_place(verdict, used, &clusters->list[i], stacks);
	}
	if (clusters->count > CLUSTERS_TOLD + 1)
		used = append(verdict, used, ", others in %d more", (int)(clusters->count - CLUSTERS_TOLD - 1));
	if (clusters->group >= 0)
		append(verdict, used, "; all that are not with most ranks are of %s", groups[clusters->group].name);
}

int wlb_verdict_of_clusters(const struct wlb_verdict_clusters *clusters, const struct wlb_verdict_stack *stacks,
                            const struct wlb_verdict_group *groups, struct wlb_verdict *verdict)
{
	if (clusters->count < 2 || !clusters->list[clusters->count - 1].is_suspect)
		return 0;
	*verdict = verdict_blank(WLB_VERDICT_OUTLIERS, WLB_VERDICT_CONFIRMED);
	verdict->group = clusters->group;
	verdict->certainty = certainty;
	name_ranks(clusters, verdict);
	tell(clusters, stacks, groups, verdict);
	return 1;
}
