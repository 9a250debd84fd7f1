/*
 * How long a step is, given what its ranks compute: ranks that are in one tp or cp group take as long as the slowest of
 * them, a pipeline as one forward, one backward does (Narayanan et al. 2019), and the step as the slowest pipeline.
 * With the computation of slow ranks replaced by what they would have computed, the difference is what they cost (the
 * what-if analysis of Lin et al. 2025). Internal.
 */
#ifndef LIBVERDICT_STEP_MODEL_H
#define LIBVERDICT_STEP_MODEL_H

#include "libverdict/world.h"

/* A replica is a set of ranks that tp and cp groups and edges of pipelines connect. How long it takes depends on its
 * own ranks alone. */
struct verdict_step_model {
	const struct verdict_world *world;
	int32_t micro_batches;
	int32_t pipelines;
	int32_t replicas;
	int32_t *replica_of;               /* [ranks] */
	struct verdict_lists of_pipeline;  /* ranks */
	struct verdict_lists of_replica;   /* pipelines */
	struct verdict_lists synchronized; /* groups: the tp groups of replica r by 2 r, its cp groups by 2 r + 1 */
	double *stage_s;                   /* [ranks] */
};

/* `world` must outlive the model. Returns -1 if out of memory; verdict_step_model_free frees it in either case. */
int verdict_step_model_init(struct verdict_step_model *model, const struct verdict_world *world, int32_t micro_batches);
void verdict_step_model_free(struct verdict_step_model *model);

/* How long the step is, and one replica of it. computed_s: [ranks], of which a replica's own are read; what is not
 * known is 0. */
double verdict_step_model_s(struct verdict_step_model *model, const double *computed_s);
double verdict_step_model_replica_s(struct verdict_step_model *model, int32_t replica, const double *computed_s);

#endif
