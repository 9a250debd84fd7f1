/* The state of training on one rank, and its operations: open, step, save, close. */
#ifndef WORKER_TRAIN_TRAINER_H
#define WORKER_TRAIN_TRAINER_H

#include "worker/checkpoint/save_lock.h"
#include "worker/comm/comm.h"
#include "worker/launch/attempt_setup.h"
#include "worker/launch/launch.h"
#include "worker/launch/options.h"
#include "worker/load/loader.h"
#include "worker/model/transformer.h"
#include "worker/optimizer/optimizer.h"
#include "worker/parallel/groups.h"
#include "worker/record/metrics.h"
#include "worker/record/rank_area.h"
#include "worker/record/record.h"
#include "worker/record/span_file.h"
#include "worker/record/watchdog.h"
#include "worker/train/agree.h"
#include "worker/train/evaluation.h"
#include "worker/train/file_work.h"
#include "worker/train/outputs.h"
#include "worker/train/pipeline.h"
#include "worker/train/sdc_check.h"
#include "worker/train/step_times.h"

enum {
	WLB_EXIT_FAILED = 1,
	WLB_EXIT_INPUT = 2, /* the same input would fail again in the same way */
};

/* In the host's copy of a step's sums, behind those of all ranks: the sum of the loss of this rank's own tokens. */
enum { WLB_OWN_LOSS = WLB_STEP_SUMS, WLB_HOST_SUMS };

/* A step that has been computed, or that the device still computes, and whose loss, norm and times the host has not
 * read yet. */
struct wlb_unread_step {
	struct wlb_step_facts facts;        /* what is known when the step begins */
	double *sums_host;                  /* [WLB_HOST_SUMS], memory of alloc_host: valid when the event is reached */
	struct wlb_event *began, *computed; /* timed */
	struct wlb_step_events *events;     /* of its parts; NULL where the host's clock measures them */
	struct wlb_step_times times;        /* of this rank */
	double work;                        /* of this rank, predicted */
	double predicted_s;                 /* of this rank's passes */
	int64_t own_tokens;                 /* whose loss this rank computes */
	double loader_s, storage_s;         /* the host waited for the loader, and the loader for files meanwhile */
	struct wlb_step_transfers transfers;
	double started_s;
	double median_norm; /* of the steps before it; NaN: not known, or not compared */
};

/* The most steps that are unread at once. */
enum { WLB_UNREAD_STEPS_MAX = 2 };

struct wlb_save;
struct wlb_near;
struct wlb_parts;

struct wlb_trainer {
	struct wlb_launch *launch;
	const struct wlb_train_options *options;
	struct wlb_train_plan *plan;
	struct wlb_recorder *recorder;
	struct wlb_watchdog *watchdog;
	struct wlb_device *device;
	struct wlb_rank_area area;
	struct wlb_comm *world;
	struct wlb_file_waiting files;
	struct wlb_groups *groups; /* not NULL: the ranks are connected */
	int gpu_ranks;             /* that compute on this rank's GPU; 0 on the CPU */
	struct wlb_dataset *dataset;
	int64_t loss_tokens; /* rank 0: of a dataset with a loss mask, how many targets count */
	int file_failure;    /* of this rank, as wlb_dataset_open and wlb_outputs_open */
	struct wlb_loader *loader;
	const struct wlb_loaded_step *loaded; /* the step in progress, or the last one */
	struct wlb_parameters *parameters;
	struct wlb_optimizer *optimizer;
	struct wlb_transformer *transformer;
	struct wlb_pipeline *pipeline;
	struct wlb_evaluation evaluation;
	struct wlb_sdc_check *sdc_check; /* NULL: no checks */
	struct wlb_save_lock save_lock;  /* held on rank 0 of a run that saves, unless save_lock.h says why not */
	struct wlb_save *save;           /* NULL: the run does not save */
	struct wlb_near *near;           /* NULL: it makes no near checkpoints (near_save.h) */
	struct wlb_outputs outputs;      /* of rank 0 */
	struct wlb_span_file *spans;     /* NULL: no steps are traced */
	double spans_ended_s;            /* by the device, of the last step that was traced */
	struct wlb_step_timer timer;     /* of this rank in the step in progress */
	double *report;                  /* numbers that the ranks exchange after a step, see step.c */
	int next_is_loaded;              /* 1: every rank has loaded the next step */
	struct wlb_recent_norms norms;   /* of steps that were read and not skipped */
	int64_t bad_steps;               /* that were skipped in a row, the last one read among them */
	int save_asked;                  /* 1: a checkpoint is due or asked for; the same on all ranks */
	double saved_s;                  /* when the last one began, or training */
	int stop_asked;                  /* 1: a rank was asked to save and stop; the same on all ranks */
	int stop_refused, save_refused;  /* 1: it was said that nothing can be saved */
	struct wlb_unread_step unread[WLB_UNREAD_STEPS_MAX]; /* a ring */
	int first_unread;
	int unread_count;
	int queue_depth; /* steps that may be unread when the next one begins */
	double *sums;    /* device, [WLB_STEP_SUMS]: of the step that was queued last */
	int64_t step;    /* steps computed so far */
	double ended_s;  /* when the last step was read; 0: none was */
	double aside_s;  /* since then, in checkpoints */
	struct wlb_step_stride stride;
	int has_other_data;   /* 1: a new phase trains another dataset */
	int checkpoint_bytes; /* of an element of the checkpoint that the run goes on from; 0: none */
	int has_wrong_input;  /* this rank has found it, and others may not */
	int exit_code;        /* of a failure on all ranks, for the error's cause */
};

/* Makes all other members, checks the data and the published model, and draws the weights where they are read neither
 * from a checkpoint nor from there. launch, options, plan, recorder, watchdog and device must be set. Returns 0 or one
 * of the failures of agree.h, with exit_code set. wlb_trainer_close must close the trainer also after a failure, except
 * after WLB_FAILED_HERE. */
int wlb_trainer_open(struct wlb_trainer *trainer, struct wlb_error *error);
void wlb_trainer_close(struct wlb_trainer *trainer);

/* Collective, after a failure of all ranks. Sets exit_code to WLB_EXIT_INPUT where rank 0 says that the input is wrong:
 * where rank 0 works with the same input without error, or cannot now, other nodes or another time may be better.
 * Returns WLB_FAILED_EVERYWHERE, or WLB_FAILED_HERE where the collective failed. */
int wlb_trainer_judge_failure(struct wlb_trainer *trainer, int is_input, struct wlb_error *error);

/* Tells wlb-agent what this rank does from now on. The ranks must be connected. */
void wlb_trainer_set_activity(const struct wlb_trainer *trainer, enum wlb_activity activity);

/* Trains the next step. Fewer than WLB_UNREAD_STEPS_MAX steps must be unread. The device may still compute it
 * afterwards, and whether its loss and norm are finite is not known before it is read. Returns 0 or WLB_FAILED_HERE. */
int wlb_trainer_step(struct wlb_trainer *trainer, struct wlb_error *error);

/* Waits for the oldest unread step, of which there must be one, and reads its numbers. Collective. *facts is the same
 * on all ranks except for the time; its pointers are valid until the next call. Returns 0 or one of the failures: where
 * the step's loss or norm is not finite and it may not be skipped, it has changed neither weights nor moments, and the
 * run must end. */
int wlb_trainer_read_step(struct wlb_trainer *trainer, struct wlb_step_facts *facts, struct wlb_error *error);

/* Whether the run begins with the weights of a published model or of a checkpoint. */
static inline int wlb_trainer_begins_with_weights(const struct wlb_trainer *t)
{
	return t->plan->weights[0] != '\0';
}

/* The length of wlb_trainer.report. */
static inline size_t wlb_trainer_report_count(int ranks)
{
	return WLB_STEP_PARTS + 3 * (size_t)ranks + 6;
}

/* -- checkpoints, save.c -- */
/* Makes t->save, with the memory for the copies. The trainer has an optimizer. Returns -1 with the reason. */
int wlb_save_open(struct wlb_trainer *trainer, struct wlb_error *error);
void wlb_save_close(struct wlb_trainer *trainer); /* t->save may be NULL */
/* The copies; with --save-local of all that the rank keeps, else of what it owns. */
struct wlb_parts *wlb_save_parts(const struct wlb_trainer *trainer);

/* Sets the numbers that the ranks sum: whether this rank still works for the save in flight, and whether it has
 * failed. */
void wlb_save_count(const struct wlb_trainer *trainer, double *working, double *failed);
/* Goes on with the save, by these sums, which are the same on all ranks. Rank 0 prints and records what becomes of it.
 * Returns 0, or WLB_FAILED_HERE. */
int wlb_save_advance(struct wlb_trainer *trainer, double working, double failed, struct wlb_error *error);
/* Goes on with messages of the save in flight until the device reaches the event. */
void wlb_save_attend(const struct wlb_trainer *trainer, struct wlb_event *event);
/* Whether a checkpoint is being saved, and whether that or a near one is; the same on all ranks. */
int wlb_save_is_in_flight(const struct wlb_trainer *trainer);
int wlb_save_is_busy(const struct wlb_trainer *trainer);
/* Counts a checkpoint that is left out since one is in flight. Of those that one leaves out rank 0 names the first, and
 * says how many they were when it has ended. */
void wlb_save_leave_out(const struct wlb_trainer *trainer);
/* What the device is told to do from now on waits for the copies. */
void wlb_save_await_copy(const struct wlb_trainer *trainer);
/* Begins a checkpoint of the last step, which must have been read, once the one before has ended. Collective. Returns
 * 0, or WLB_FAILED_HERE where the one before does not end. */
int wlb_trainer_save(struct wlb_trainer *trainer, double loss, struct wlb_error *error);
/* Begins a near checkpoint of the last step, which must have been read, while no save is in flight. */
void wlb_trainer_save_near(struct wlb_trainer *trainer, double loss);
/* Waits until no checkpoint is being saved, at the end of the run. Collective. Returns 0 or one of the failures, with
 * exit_code set, also where the last one is not saved. */
int wlb_trainer_finish_save(struct wlb_trainer *trainer, struct wlb_error *error);
/* Reads weights, moments and the state of the loader from the plan's checkpoint. Collective. Returns 0 or one of the
 * failures. */
int wlb_trainer_resume(struct wlb_trainer *trainer, struct wlb_error *error);
/* Reads the weights of the plan, whose tensors have been compared with the model's; the moments stay zero. Collective.
 * Returns as wlb_trainer_resume. */
int wlb_trainer_read_weights(struct wlb_trainer *trainer, struct wlb_error *error);

#endif
