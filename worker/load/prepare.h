/* Prepares a step in host memory: schedule, packer, assignment, shards and tokens, one after the other. It uses no
 * thread and no device. */
#ifndef WORKER_LOAD_PREPARE_H
#define WORKER_LOAD_PREPARE_H

#include <stdatomic.h>

#include "worker/data/dataset.h"
#include "worker/data/schedule.h"
#include "worker/load/assign.h"
#include "worker/load/loaded_step.h"
#include "worker/load/options.h"
#include "worker/load/rows.h"

/* The result of preparing a step; the loader uses two of them alternately. */
struct wlb_prepared {
	struct wlb_rows rows;
	struct wlb_loaded_step step; /* its list is invalid until uploaded */
	void *packer_state;
	size_t packer_state_capacity; /* bytes */
};

struct wlb_preparer {
	const struct wlb_dataset *dataset;
	struct wlb_model model;
	struct wlb_loader_options options;
	int tile_rows;                    /* that the device needs of attention's tiles */
	struct wlb_document_time time;    /* on this rank's device, for assignment and sharding */
	struct wlb_document_time packing; /* independent of device and layout, for packing */
	struct wlb_schedule *schedule;
	struct wlb_packer *packer;
	struct wlb_assigner assigner;
	struct wlb_shards shards;
	int has_wrong_id; /* a token id that is not below vocab_size was read, and the step failed */
	int64_t *tokens;  /* of each document of a micro-batch */
	size_t tokens_capacity;
};

/* The assigner and the packer keep pointers into the preparer, which must not move. A zeroed preparer may be freed. */
int wlb_preparer_init(struct wlb_preparer *preparer, const struct wlb_dataset *dataset, const struct wlb_model *model,
                      const struct wlb_loader_options *options, int tile_rows, struct wlb_error *error);
/* Begins again at the first step. */
int wlb_preparer_rewind(struct wlb_preparer *preparer, struct wlb_error *error);
void wlb_preparer_free(struct wlb_preparer *preparer);
void wlb_prepared_free(struct wlb_prepared *prepared);

/* Prepares the next step. Once *stopping is set it returns early, with a step that must not be used. */
int wlb_prepare(struct wlb_preparer *preparer, struct wlb_prepared *out, const atomic_bool *stopping,
                struct wlb_error *error);

#endif
