#include "libverdict/step_model.h"

#include <stdlib.h>
#include <string.h>

/* Where the number of micro-batches is not known: so many for each stage, a bubble of a fifth. */
enum { USUAL_FOR_STAGE = 4 };

/* Returns the first rank of the pipeline that a rank is in; shortens the way on the way. */
static int32_t find_first(int32_t *first_of, int32_t rank)
{
	while (first_of[rank] != rank) {
		first_of[rank] = first_of[first_of[rank]];
		rank = first_of[rank];
	}
	return rank;
}

/* Numbers the pipelines: sets of ranks that edges connect. Returns the number of stages of the longest. */
static int32_t number_pipelines(struct verdict_step_model *model, int32_t *first_of, int32_t *stages)
{
	const struct verdict_world *world = model->world;
	int32_t longest = 0;
	for (int32_t r = 0; r < world->ranks; r++)
		first_of[r] = r;
	for (int32_t g = 0; g < world->groups; g++) {
		if (world->group[g].kind != WLB_VERDICT_PP)
			continue;
		const struct verdict_membership *ends = &world->membership[world->group[g].first];
		int32_t a = find_first(first_of, ends[0].rank), b = find_first(first_of, ends[1].rank);
		first_of[a > b ? a : b] = a > b ? b : a;
	}
	for (int32_t r = 0; r < world->ranks; r++) {
		int32_t first = find_first(first_of, r);
		if (first == r)
			model->pipeline_of[r] = model->pipelines++;
		model->pipeline_of[r] = model->pipeline_of[first];
		stages[model->pipeline_of[r]]++;
		longest = stages[model->pipeline_of[r]] > longest ? stages[model->pipeline_of[r]] : longest;
	}
	return longest;
}

int verdict_step_model_init(struct verdict_step_model *model, const struct verdict_world *world, int32_t micro_batches)
{
	size_t ranks = (size_t)world->ranks;
	*model = (struct verdict_step_model){.world = world, .micro_batches = micro_batches};
	model->pipeline_of = calloc(ranks, sizeof(*model->pipeline_of));
	model->stage_s = calloc(ranks, sizeof(*model->stage_s));
	model->sum_s = calloc(ranks, sizeof(*model->sum_s));
	model->most_s = calloc(ranks, sizeof(*model->most_s));
	int32_t *first_of = calloc(ranks, sizeof(*first_of)), *stages = calloc(ranks, sizeof(*stages));
	int failed = model->pipeline_of == NULL || model->stage_s == NULL || model->sum_s == NULL ||
	             model->most_s == NULL || first_of == NULL || stages == NULL;
	int32_t longest = failed ? 0 : number_pipelines(model, first_of, stages);
	if (micro_batches < 1)
		model->micro_batches = USUAL_FOR_STAGE * longest;
	free(first_of);
	free(stages);
	return failed ? -1 : 0;
}

void verdict_step_model_free(struct verdict_step_model *model)
{
	free(model->pipeline_of);
	free(model->stage_s);
	free(model->sum_s);
	free(model->most_s);
}

/* Members of the groups of a kind take as long as the slowest of them. */
static void synchronize(struct verdict_step_model *model, enum wlb_verdict_group_kind kind)
{
	const struct verdict_world *world = model->world;
	for (int32_t g = 0; g < world->groups; g++) {
		const struct verdict_group *group = &world->group[g];
		double most_s = 0.0;
		if (group->kind != kind)
			continue;
		for (int32_t m = group->first; m < group->first + group->count; m++) {
			double mine_s = model->stage_s[world->membership[m].rank];
			most_s = mine_s > most_s ? mine_s : most_s;
		}
		for (int32_t m = group->first; m < group->first + group->count; m++)
			model->stage_s[world->membership[m].rank] = most_s;
	}
}

double verdict_step_model_s(struct verdict_step_model *model, const double *computed_s)
{
	memcpy(model->stage_s, computed_s, (size_t)model->world->ranks * sizeof(*computed_s));
	synchronize(model, WLB_VERDICT_TP);
	synchronize(model, WLB_VERDICT_CP);
	memset(model->sum_s, 0, (size_t)model->pipelines * sizeof(*model->sum_s));
	memset(model->most_s, 0, (size_t)model->pipelines * sizeof(*model->most_s));
	for (int32_t r = 0; r < model->world->ranks; r++) {
		int32_t p = model->pipeline_of[r];
		model->sum_s[p] += model->stage_s[r];
		model->most_s[p] = model->stage_s[r] > model->most_s[p] ? model->stage_s[r] : model->most_s[p];
	}
	double longest_s = 0.0;
	for (int32_t p = 0; p < model->pipelines; p++) {
		/* The slowest stage runs all micro-batches, the others one each before and after it. */
		double mine_s = model->most_s[p] + (model->sum_s[p] - model->most_s[p]) / model->micro_batches;
		longest_s = mine_s > longest_s ? mine_s : longest_s;
	}
	return longest_s;
}
