#include "libverdict/step_model.h"

#include <stdlib.h>

/* Where the number of micro-batches is not known: so many for each stage, a bubble of a fifth. */
enum { USUAL_FOR_STAGE = 4 };

/* Returns the first rank of the set that a rank is in; shortens the way on the way. */
static int32_t find_first(int32_t *first_of, int32_t rank)
{
	while (first_of[rank] != rank) {
		first_of[rank] = first_of[first_of[rank]];
		rank = first_of[rank];
	}
	return rank;
}

/* Unites the members of the groups of a kind. */
static void unite(const struct verdict_world *world, enum wlb_verdict_group_kind kind, int32_t *first_of)
{
	for (int32_t g = 0; g < world->groups; g++) {
		const struct verdict_group *group = &world->group[g];
		for (int32_t m = group->first + 1; group->kind == kind && m < group->first + group->count; m++) {
			int32_t a = find_first(first_of, world->membership[group->first].rank);
			int32_t b = find_first(first_of, world->membership[m].rank);
			first_of[a > b ? a : b] = a > b ? b : a;
		}
	}
}

/* Numbers the sets in the order of their first ranks, into number_of[ranks]. Returns how many they are. */
static int32_t number_sets(const struct verdict_world *world, int32_t *first_of, int32_t *number_of)
{
	int32_t sets = 0;
	for (int32_t r = 0; r < world->ranks; r++) {
		int32_t first = find_first(first_of, r);
		number_of[r] = first == r ? sets++ : number_of[first];
	}
	return sets;
}

/* Lists the pipelines of replicas, by the replica of their first ranks. `keys` is scratch. */
static int list_pipelines(struct verdict_step_model *model, int32_t *keys)
{
	for (int32_t p = 0; p < model->pipelines; p++)
		keys[p] = model->replica_of[model->of_pipeline.list[model->of_pipeline.first[p]]];
	return verdict_lists_build(&model->of_replica, keys, model->pipelines, model->replicas);
}

static int list_groups(struct verdict_step_model *model)
{
	const struct verdict_world *world = model->world;
	int32_t *keys = calloc((size_t)world->groups + 1, sizeof(*keys));
	if (keys == NULL)
		return -1;
	for (int32_t g = 0; g < world->groups; g++) {
		enum wlb_verdict_group_kind kind = world->group[g].kind;
		int32_t replica = model->replica_of[world->membership[world->group[g].first].rank];
		int listed = kind == WLB_VERDICT_TP || kind == WLB_VERDICT_CP;
		keys[g] = listed ? 2 * replica + (kind == WLB_VERDICT_CP) : 2 * model->replicas;
	}
	int result = verdict_lists_build(&model->synchronized, keys, world->groups, 2 * model->replicas + 1);
	free(keys);
	return result;
}

/* `first_of` and `number_of` are scratch, [ranks]. */
static int find_sets(struct verdict_step_model *model, int32_t *first_of, int32_t *number_of)
{
	const struct verdict_world *world = model->world;
	for (int32_t r = 0; r < world->ranks; r++)
		first_of[r] = r;
	unite(world, WLB_VERDICT_PP, first_of);
	model->pipelines = number_sets(world, first_of, number_of);
	if (verdict_lists_build(&model->of_pipeline, number_of, world->ranks, model->pipelines) < 0)
		return -1;
	unite(world, WLB_VERDICT_TP, first_of);
	unite(world, WLB_VERDICT_CP, first_of);
	model->replicas = number_sets(world, first_of, model->replica_of);
	return list_pipelines(model, number_of) < 0 || list_groups(model) < 0 ? -1 : 0;
}

static int32_t longest_pipeline(const struct verdict_step_model *model)
{
	int32_t longest = 0;
	for (int32_t p = 0; p < model->pipelines; p++) {
		int32_t stages = model->of_pipeline.first[p + 1] - model->of_pipeline.first[p];
		longest = stages > longest ? stages : longest;
	}
	return longest;
}

int verdict_step_model_init(struct verdict_step_model *model, const struct verdict_world *world, int32_t micro_batches)
{
	size_t ranks = (size_t)world->ranks;
	*model = (struct verdict_step_model){.world = world, .micro_batches = micro_batches};
	model->replica_of = calloc(ranks, sizeof(*model->replica_of));
	model->stage_s = calloc(ranks, sizeof(*model->stage_s));
	int32_t *first_of = calloc(ranks, sizeof(*first_of)), *number_of = calloc(ranks, sizeof(*number_of));
	int failed = model->replica_of == NULL || model->stage_s == NULL || first_of == NULL || number_of == NULL ||
	             find_sets(model, first_of, number_of) < 0;
	if (!failed && micro_batches < 1)
		model->micro_batches = USUAL_FOR_STAGE * longest_pipeline(model);
	free(first_of);
	free(number_of);
	return failed ? -1 : 0;
}

void verdict_step_model_free(struct verdict_step_model *model)
{
	verdict_lists_free(&model->of_pipeline);
	verdict_lists_free(&model->of_replica);
	verdict_lists_free(&model->synchronized);
	free(model->replica_of);
	free(model->stage_s);
}

/* Members of a group take as long as the slowest of them. */
static void synchronize(struct verdict_step_model *model, const struct verdict_group *group)
{
	const struct verdict_membership *members = &model->world->membership[group->first];
	double most_s = 0.0;
	for (int32_t m = 0; m < group->count; m++) {
		double mine_s = model->stage_s[members[m].rank];
		most_s = mine_s > most_s ? mine_s : most_s;
	}
	for (int32_t m = 0; m < group->count; m++)
		model->stage_s[members[m].rank] = most_s;
}

/* The slowest stage runs all micro-batches, the others one each before and after it. */
static double pipeline_s(const struct verdict_step_model *model, int32_t pipeline)
{
	const struct verdict_lists *ranks = &model->of_pipeline;
	double sum_s = 0.0, most_s = 0.0;
	for (int32_t i = ranks->first[pipeline]; i < ranks->first[pipeline + 1]; i++) {
		double mine_s = model->stage_s[ranks->list[i]];
		sum_s += mine_s;
		most_s = mine_s > most_s ? mine_s : most_s;
	}
	return most_s + (sum_s - most_s) / model->micro_batches;
}

double verdict_step_model_replica_s(struct verdict_step_model *model, int32_t replica, const double *computed_s)
{
	const struct verdict_lists *ranks = &model->of_pipeline, *pipelines = &model->of_replica;
	const struct verdict_lists *groups = &model->synchronized;
	double longest_s = 0.0;
	for (int32_t p = pipelines->first[replica]; p < pipelines->first[replica + 1]; p++) {
		int32_t pipeline = pipelines->list[p];
		for (int32_t i = ranks->first[pipeline]; i < ranks->first[pipeline + 1]; i++)
			model->stage_s[ranks->list[i]] = computed_s[ranks->list[i]];
	}
	for (int32_t i = groups->first[2 * replica]; i < groups->first[2 * replica + 2]; i++)
		synchronize(model, &model->world->group[groups->list[i]]);
	for (int32_t p = pipelines->first[replica]; p < pipelines->first[replica + 1]; p++) {
		double mine_s = pipeline_s(model, pipelines->list[p]);
		longest_s = mine_s > longest_s ? mine_s : longest_s;
	}
	return longest_s;
}

double verdict_step_model_s(struct verdict_step_model *model, const double *computed_s)
{
	double longest_s = 0.0;
	for (int32_t replica = 0; replica < model->replicas; replica++) {
		double mine_s = verdict_step_model_replica_s(model, replica, computed_s);
		longest_s = mine_s > longest_s ? mine_s : longest_s;
	}
	return longest_s;
}
