#include "worker/train/near_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/show.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/near_files.h"

/* What the ranks add of a name, beside its step. */
enum { ID_BYTES = sizeof(((struct wlb_near_name *)0)->id), NAME_NUMBERS = ID_BYTES + 1 };

static bool is_first(const struct wlb_near_search *s)
{
	return s->trainer->launch->local_rank == 0;
}

/* A wlb_file_function. */
static int list(void *context, struct wlb_error *error)
{
	struct wlb_near_search *s = context;
	s->count = wlb_near_list(s->folder, s->names, error);
	return s->count < 0 ? -1 : 0;
}

int wlb_near_search_list(struct wlb_near_search *s, struct wlb_error *error)
{
	return wlb_work_with_files(&s->trainer->files, is_first(s) ? list : NULL, s, error);
}

/* Returns this node's newest one that was not looked at. */
static const struct wlb_near_name *newest(const struct wlb_near_search *s)
{
	const struct wlb_near_name *found = NULL;
	for (int i = 0; i < s->count; i++)
		if (s->names[i].step > 0 && (found == NULL || s->names[i].step > found->step))
			found = &s->names[i];
	return found;
}

/* Collective. Tells all ranks the name that the rank `owner` has. */
static int share_name(struct wlb_near_search *s, const struct wlb_near_name *mine, double owner,
                      struct wlb_error *error)
{
	double numbers[NAME_NUMBERS] = {0};
	struct wlb_comm *world = s->trainer->world;
	if (mine != NULL && owner == (double)(wlb_comm_size(world) - wlb_comm_rank(world))) {
		numbers[0] = mine->shards;
		for (int i = 0; i < ID_BYTES; i++)
			numbers[1 + i] = (unsigned char)mine->id[i];
	}
	if (wlb_comm_all_reduce_double(world, numbers, NAME_NUMBERS, WLB_SUM, error) < 0)
		return WLB_FAILED_HERE;
	s->name.shards = (int)numbers[0];
	for (int i = 0; i < ID_BYTES; i++)
		s->name.id[i] = (char)numbers[1 + i];
	for (int i = 0; i < s->count; i++)
		if (s->names[i].step == s->name.step && strcmp(s->names[i].id, s->name.id) == 0)
			s->names[i].step = 0;
	wlb_near_path(s->folder, &s->name, s->path);
	return 0;
}

/* Collective. Takes the newest name of any node: of two of one step that of the first rank that has one. Returns 1, 0
 * where there is none later than `step`, or a failure. */
static int take_newest(struct wlb_near_search *s, int64_t step, struct wlb_error *error)
{
	struct wlb_comm *world = s->trainer->world;
	const struct wlb_near_name *mine = newest(s);
	double latest = mine != NULL ? (double)mine->step : 0.0;
	if (wlb_comm_all_reduce_double(world, &latest, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	s->name.step = (int64_t)latest;
	if (s->name.step <= step)
		return 0;
	double owner = mine != NULL && mine->step == s->name.step ? wlb_comm_size(world) - wlb_comm_rank(world) : 0.0;
	if (wlb_comm_all_reduce_double(world, &owner, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	return share_name(s, mine, owner, error) < 0 ? WLB_FAILED_HERE : 1;
}

/* A wlb_file_function: of each shard, and of the facts of this node, whether they are here. */
static int look(void *context, struct wlb_error *error)
{
	struct wlb_near_search *s = context;
	const struct wlb_launch *l = s->trainer->launch;
	char file[4096 + 32];
	int node = l->node_of[l->rank];
	(void)error;
	for (int i = 0; i < s->name.shards; i++) {
		wlb_near_file(s->path, WLB_NEAR_SHARD, i, file);
		s->found[i] = access(file, R_OK) == 0 ? l->node_count - node : 0;
	}
	snprintf(file, sizeof(file), "%s/" WLB_MANIFEST_NAME, s->path);
	s->found[s->name.shards + node] = access(file, R_OK) == 0;
	return 0;
}

/* Says what of the checkpoint is on no node. Returns 1 where nothing is. */
static int is_whole(struct wlb_near_search *s)
{
	const struct wlb_launch *l = s->trainer->launch;
	int missing = 0;
	for (int i = 0; i < s->name.shards; i++)
		missing += s->found[i] == 0.0;
	s->facts_node = 0;
	while (s->facts_node < l->node_count && !wlb_near_search_has_facts(s, s->facts_node))
		s->facts_node++;
	if (missing == 0 && s->facts_node < l->node_count)
		return 1;
	if (l->rank == 0)
		wlb_show_line(stderr,
		              "wlb-worker: the near checkpoint of step %lld is not whole: %d of its %d shards are on "
		              "no node of this attempt",
		              (long long)s->name.step, missing, s->name.shards);
	return 0;
}

int wlb_near_search_again(struct wlb_near_search *s, struct wlb_error *error)
{
	struct wlb_trainer *t = s->trainer;
	size_t count = (size_t)s->name.shards + (size_t)t->launch->node_count;
	free(s->found);
	s->found = calloc(count, sizeof(*s->found));
	int rc = s->found != NULL ? 0 : wlb_fail(error, "out of memory for the places of %zu shards", count);
	rc = wlb_agree(t->world, rc, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, is_first(s) ? look : NULL, s, error);
	if (rc == 0 && wlb_comm_all_reduce_double(t->world, s->found, count, WLB_MAX, error) < 0)
		rc = WLB_FAILED_HERE;
	return rc < 0 ? rc : is_whole(s);
}

int wlb_near_search_next(struct wlb_near_search *s, int64_t step, struct wlb_error *error)
{
	int rc = take_newest(s, step, error);
	while (rc == 1) {
		rc = wlb_near_search_again(s, error);
		if (rc != 0)
			return rc;
		rc = take_newest(s, step, error);
	}
	return rc;
}

int wlb_near_search_node(const struct wlb_near_search *s, int shard)
{
	return s->trainer->launch->node_count - (int)s->found[shard];
}

bool wlb_near_search_has_facts(const struct wlb_near_search *s, int node)
{
	return s->found[s->name.shards + node] > 0.0;
}
