/* Everything that one rank trains with, and what is done with it: open, step, save, close. */
#ifndef WORKER_TRAIN_TRAINER_H
#define WORKER_TRAIN_TRAINER_H

#include "worker/comm/comm.h"
#include "worker/launch/attempt_setup.h"
#include "worker/launch/launch.h"
#include "worker/launch/options.h"
#include "worker/load/loader.h"
#include "worker/model/transformer.h"
#include "worker/optimizer/optimizer.h"
#include "worker/parallel/groups.h"
#include "worker/record/metrics.h"
#include "worker/record/record.h"
#include "worker/record/watchdog.h"
#include "worker/train/agree.h"
#include "worker/train/file_work.h"
#include "worker/train/pipeline.h"
#include "worker/train/step_times.h"

enum {
	WLB_EXIT_FAILED = 1,
	WLB_EXIT_INPUT = 2, /* the same input would fail the same way */
};

struct wlb_trainer {
	struct wlb_launch *launch;
	const struct wlb_train_options *options;
	const struct wlb_train_plan *plan;
	struct wlb_recorder *recorder;
	struct wlb_watchdog *watchdog;
	struct wlb_device *device;
	struct wlb_comm *world;
	struct wlb_file_waiting files;
	struct wlb_groups *groups; /* there: the ranks are connected */
	struct wlb_dataset *dataset;
	struct wlb_loader *loader;
	const struct wlb_loaded_step *loaded; /* the step under way, or the one just done */
	struct wlb_parameters *parameters;
	struct wlb_optimizer *optimizer;
	struct wlb_transformer *transformer;
	struct wlb_pipeline *pipeline;
	struct wlb_metrics *metrics; /* rank 0, where asked for */
	struct wlb_step_timer timer; /* of this rank in the step under way */
	double *report;              /* what ranks tell each other of a step, see step.c */
	double *loss_sum;            /* device */
	int64_t step;                /* done so far */
	int exit_code;               /* of a failure on all ranks: what the error tells of */
};

/* The device of --device, checked to have what training needs; NULL with the reason. */
struct wlb_device *wlb_trainer_open_device(const struct wlb_launch *launch, const struct wlb_train_options *options,
                                           struct wlb_error *error);

/* Makes all the rest, checks the data, and initialises the weights where the plan has no checkpoint to resume from. 0
 * or one of the failures, with exit_code set. What was made is closed by wlb_trainer_close, unless WLB_FAILED_HERE.
 * Expects launch, options, plan, recorder and device to be set. */
int wlb_trainer_open(struct wlb_trainer *trainer, struct wlb_error *error);
void wlb_trainer_close(struct wlb_trainer *trainer);

/* Trains the next step; *facts is the same on all ranks but for the time; what it points to is valid until the next. 0
 * or one of the failures. */
int wlb_trainer_step(struct wlb_trainer *trainer, struct wlb_step_facts *facts, struct wlb_error *error);

/* Writes a checkpoint of the step just done. Collective. 0 or one of the failures, with exit_code set. */
int wlb_trainer_save(struct wlb_trainer *trainer, double loss, struct wlb_error *error);
/* Reads weights, moments and the loader's place from the plan's checkpoint. Collective. 0 or one of the failures. */
int wlb_trainer_resume(struct wlb_trainer *trainer, struct wlb_error *error);

#endif
