/* The state of training on one rank, and its operations: open, step, save, close. */
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
	WLB_EXIT_INPUT = 2, /* the same input would fail again in the same way */
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
	struct wlb_groups *groups; /* not NULL: the ranks are connected */
	struct wlb_dataset *dataset;
	struct wlb_loader *loader;
	const struct wlb_loaded_step *loaded; /* the step in progress, or the last one */
	struct wlb_parameters *parameters;
	struct wlb_optimizer *optimizer;
	struct wlb_transformer *transformer;
	struct wlb_pipeline *pipeline;
	struct wlb_metrics *metrics; /* on rank 0 with a metrics file, else NULL */
	struct wlb_step_timer timer; /* of this rank in the step in progress */
	double *report;              /* numbers that the ranks exchange after a step, see step.c */
	int next_is_loaded;          /* 1: every rank has loaded the next step */
	double *loss_sum;            /* device */
	int64_t step;                /* steps done so far */
	int exit_code;               /* of a failure on all ranks, for the error's cause */
};

/* Opens the device of --device and checks that it has all operations that training needs. Returns NULL with the reason
 * on failure. */
struct wlb_device *wlb_trainer_open_device(const struct wlb_launch *launch, const struct wlb_train_options *options,
                                           struct wlb_error *error);

/* Makes all other members, checks the data, and initialises the weights where the plan has no checkpoint to resume
 * from. launch, options, plan, recorder, watchdog and device must be set. Returns 0 or one of the failures of agree.h,
 * with exit_code set. wlb_trainer_close must close the trainer also after a failure, except after WLB_FAILED_HERE. */
int wlb_trainer_open(struct wlb_trainer *trainer, struct wlb_error *error);
void wlb_trainer_close(struct wlb_trainer *trainer);

/* Trains the next step; *facts is the same on all ranks except for the time; its pointers are valid until the next
 * step. Returns 0 or one of the failures. */
int wlb_trainer_step(struct wlb_trainer *trainer, struct wlb_step_facts *facts, struct wlb_error *error);

/* The length of wlb_trainer.report. */
static inline size_t wlb_trainer_report_count(int ranks)
{
	return WLB_STEP_PARTS + 3 * (size_t)ranks + 1;
}

/* Writes a checkpoint of the last step. Collective. Returns 0 or one of the failures, with exit_code set. */
int wlb_trainer_save(struct wlb_trainer *trainer, double loss, struct wlb_error *error);
/* Reads weights, moments and the state of the loader from the plan's checkpoint. Collective. Returns 0 or one of the
 * failures. */
int wlb_trainer_resume(struct wlb_trainer *trainer, struct wlb_error *error);

#endif
