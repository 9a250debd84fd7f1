#include "worker/train/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/file.h"
#include "common/seconds.h"
#include "worker/checkpoint/published.h"
#include "worker/data/input.h"
#include "worker/model/published.h"
#include "worker/train/device.h"
#include "worker/train/open_dataset.h"
#include "worker/train/rank_gpus.h"
#include "worker/train/transport.h"

/* A dataset of more tokens is not scanned before the run: its ids are then checked as they are used. */
#define SCAN_TOKENS INT64_C(2000000000)

void wlb_trainer_set_activity(const struct wlb_trainer *t, enum wlb_activity activity)
{
	double now_s = wlb_now_s();
	wlb_rank_trace_set_activity(wlb_comm_trace_memory(wlb_comm_get_trace(t->world)), activity, now_s);
	wlb_span_file_set_activity(t->spans, activity, now_s);
}

static int most_on_node(const struct wlb_launch *launch)
{
	int most = 1;
	for (int i = 0; i < launch->node_count; i++)
		most = launch->ranks_on[i] > most ? launch->ranks_on[i] : most;
	return most;
}

/* In which a rank tells up to 8 calls of each of its some ten communicators with their times: so that a node tells no
 * more in a second than a report takes (coordinator/agent/calls.h), and the run no more than 5 MB. */
static double choice_window_s(int ranks, int ranks_per_node)
{
	return fmax(1.0, fmax(ranks_per_node / 6.0, ranks / 750.0));
}

static int connect_ranks(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_launch *l = t->launch;
	t->world = wlb_comm_open_world(t->device, l->rank, l->size, error);
	if (t->world == NULL)
		return -1;
	struct wlb_comm_trace *trace = wlb_comm_get_trace(t->world);
	wlb_rank_area_open(&t->area, t->plan->attempt_id, l->rank);
	if (t->area.trace != NULL) {
		wlb_comm_trace_keep_in(trace, t->area.trace);
		wlb_rank_trace_set_choice(t->area.trace, choice_window_s(l->size, most_on_node(l)));
	}
	wlb_step_stride_init(&t->stride, l->size, most_on_node(l));
	wlb_trainer_set_activity(t, WLB_ACTIVITY_STARTING);
	wlb_watchdog_watch_collectives(t->watchdog, trace);
	t->files = (struct wlb_file_waiting){
		.world = t->world,
		.collective_timeout_s = 60.0 * t->options->timeout_minutes,
		.storage_timeout_s = 60.0 * t->options->storage_timeout_minutes,
	};
	if (wlb_choose_transport(t->launch, t->world, t->options->transport, 60.0 * t->options->timeout_minutes,
	                         "wlb-worker", error) < 0)
		return -1;
	t->groups = wlb_groups_open(t->world, &t->plan->split, wlb_launch_place(l), &t->plan->model, error);
	if (t->groups == NULL)
		return -1;
	t->gpu_ranks = wlb_record_rank_gpus(l, t->device, t->world, t->recorder, error);
	return t->gpu_ranks >= 0 ? 0 : -1;
}

/* Whether the run goes on with the tokens that were checked when it began: the checkpoint has their digest. */
static int has_checked_tokens(const struct wlb_trainer *t)
{
	uint64_t digest = t->plan->checkpoint[0] != '\0' ? t->plan->facts.schedule.token_digest : 0;
	return digest != 0 && digest == wlb_dataset_token_digest(t->dataset);
}

/* One rank of each node reads a part of the tokens, where that takes seconds; of more tokens each id is checked as it
 * is trained. Returns 0, -1 or WLB_UNREADABLE (input.h). */
static int check_tokens(struct wlb_trainer *t, const char *option, const char *path, const struct wlb_dataset *dataset,
                        struct wlb_error *error)
{
	const struct wlb_launch *l = t->launch;
	if (l->local_rank != 0 || wlb_dataset_tokens(dataset) / l->node_count > SCAN_TOKENS)
		return 0;
	int64_t largest = wlb_dataset_max_token(dataset, l->node_of[l->rank], l->node_count, error);
	if (largest < 0)
		return (int)largest;
	if (largest < t->plan->model.vocab_size)
		return 0;
	t->has_wrong_input = 1;
	return wlb_fail(error,
	                "%s %.500s: it holds token id %lld, vocab_size of %.500s is %lld; ids must be below "
	                "vocab_size",
	                option, path, (long long)largest, t->options->model, (long long)t->plan->model.vocab_size);
}

/* For rank 0, which says it: counts the tokens that are trained. Returns 0, -1 or WLB_UNREADABLE (input.h). */
static int count_loss_tokens(struct wlb_trainer *t, struct wlb_error *error)
{
	if (t->launch->rank != 0 || !wlb_dataset_has_loss_mask(t->dataset))
		return 0;
	t->loss_tokens = wlb_dataset_count_targets(t->dataset, error);
	if (t->loss_tokens != 0)
		return t->loss_tokens < 0 ? (int)t->loss_tokens : 0;
	return wlb_fail(error, "--data-path %.500s: its loss mask counts none of its tokens: there is nothing to train",
	                t->options->data_path);
}

/* For the dataset to be compared with that of the checkpoint, and for the next checkpoint. The ranks of a node have the
 * same files. Returns 0, -1 or WLB_UNREADABLE (input.h). */
static int digest_tokens(struct wlb_trainer *t, struct wlb_error *error)
{
	return t->launch->local_rank == 0 ? wlb_dataset_digest_tokens(t->dataset, error) : 0;
}

static struct wlb_loader_options loader_options(const struct wlb_trainer *t)
{
	const struct wlb_train_options *o = t->options;
	return (struct wlb_loader_options){
		.seq_length = o->seq_length,
		.global_batch_size = o->global_batch_size,
		.ramp = o->ramp,
		.seed = (uint64_t)o->seed,
		.packing = t->plan->packing,
		.sharding = (enum wlb_sharding)o->cp_sharding,
		.micro_batches = t->plan->split.micro_batches,
		.max_tokens = t->plan->max_tokens,
		.layout = t->plan->split.layout,
		.coords = t->groups->coords,
		.last_step = o->train_iters,
		.check_interval = o->sdc_check_interval,
		.halved_rows = o->tp_halves,
		.speeds = &t->plan->speeds,
		.storage_timeout_s = 60.0 * o->storage_timeout_minutes,
	};
}

/* A wlb_file_function. */
static int check_dataset(void *trainer, struct wlb_error *error)
{
	struct wlb_trainer *t = trainer;
	const struct wlb_train_options *o = t->options;
	t->file_failure = wlb_schedule_check(t->dataset, error);
	if (t->file_failure < 0)
		wlb_fail_in(error, "--data-path %.500s", o->data_path);
	if (t->file_failure == 0)
		t->file_failure = digest_tokens(t, error);
	if (t->file_failure == 0 && !has_checked_tokens(t))
		t->file_failure = check_tokens(t, "--data-path", t->options->data_path, t->dataset, error);
	if (t->file_failure == 0)
		t->file_failure = count_loss_tokens(t, error);
	return t->file_failure;
}

/* Adds to the message which option names documents of which none can be evaluated. Returns -1. */
static int fail_in_eval_data(const struct wlb_train_options *o, struct wlb_error *error)
{
	if (o->eval_data_path != NULL)
		return wlb_fail_in(error, "--eval-data-path %.500s", o->eval_data_path);
	return wlb_fail_in(error,
	                   "--split %.100s: the second part is evaluated and must be larger, or 0, or --eval-data-path "
	                   "must name other documents",
	                   o->data_split);
}

/* A wlb_file_function. */
static int check_eval_dataset(void *trainer, struct wlb_error *error)
{
	struct wlb_trainer *t = trainer;
	const struct wlb_train_options *o = t->options;
	const char *other = o->eval_data_path;
	t->file_failure = wlb_schedule_check(t->evaluation.dataset, error) < 0 ? fail_in_eval_data(o, error) : 0;
	if (t->file_failure == 0)
		t->file_failure = check_tokens(t, other != NULL ? "--eval-data-path" : "--data-path",
		                               other != NULL ? other : o->data_path, t->evaluation.dataset, error);
	return t->file_failure;
}

int wlb_trainer_judge_failure(struct wlb_trainer *t, int is_input, struct wlb_error *error)
{
	double of_input = (t->launch->rank == 0 || t->has_wrong_input) && is_input ? 1.0 : 0.0;
	if (wlb_comm_all_reduce_double(t->world, &of_input, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	t->exit_code = of_input > 0.0 ? WLB_EXIT_INPUT : WLB_EXIT_FAILED;
	return WLB_FAILED_EVERYWHERE;
}

/* Collective where rc is the failure of all ranks: then it sets exit_code, from file_failure. Returns rc. */
static int judge_files(struct wlb_trainer *t, int rc, struct wlb_error *error)
{
	return rc == WLB_FAILED_EVERYWHERE ? wlb_trainer_judge_failure(t, t->file_failure == -1, error) : rc;
}

/* Collective. Sets exit_code. */
static int open_files(struct wlb_trainer *t, wlb_file_function *function, struct wlb_error *error)
{
	return judge_files(t, wlb_work_with_files(&t->files, function, t, error), error);
}

/* Collective. Sets exit_code. Of an index the ranks of rank 0's node judge together, as rank 0 does of what it reads
 * alone. */
static int open_chosen(struct wlb_trainer *t, const struct wlb_dataset_choice *choice, struct wlb_dataset **dataset,
                       struct wlb_error *error)
{
	const struct wlb_launch *l = t->launch;
	int rc = wlb_open_dataset(l, &t->files, choice, dataset, &t->file_failure, error);
	int is_index = *dataset != NULL && t->file_failure == -1;
	t->has_wrong_input = is_index && l->node_of[l->rank] == l->node_of[0];
	return judge_files(t, rc, error);
}

/* Collective. */
static int open_dataset(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_dataset_choice choice = wlb_data_choice_of(&t->options->data, WLB_SPLIT_TRAIN);
	int rc = open_chosen(t, &choice, &t->dataset, error);
	return rc == 0 ? open_files(t, check_dataset, error) : rc;
}

/* Collective. Opens --eval-data-path, or the second part of the split. */
static int open_eval_dataset(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_dataset_source other = {.prefix = t->options->eval_data_path};
	const struct wlb_dataset_choice of_other = {.sources = &other, .count = 1, .to = 1.0};
	const struct wlb_dataset_choice of_split = wlb_data_choice_of(&t->options->data, WLB_SPLIT_VALID);
	int rc = open_chosen(t, other.prefix != NULL ? &of_other : &of_split, &t->evaluation.dataset, error);
	return rc == 0 ? open_files(t, check_eval_dataset, error) : rc;
}

static int open_loader(struct wlb_trainer *t, struct wlb_error *error)
{
	struct wlb_loader_options options = loader_options(t);
	t->loader = wlb_loader_new(t->dataset, &t->plan->model, &options, t->device, error);
	return t->loader != NULL ? 0 : -1;
}

/* Collective. */
static int open_evaluation(struct wlb_trainer *t, struct wlb_error *error)
{
	struct wlb_loader_options options = loader_options(t);
	options.last_step = t->options->eval_iters;
	options.check_interval = 0;
	options.ramp = (struct wlb_batch_ramp){0}; /* each evaluation takes the same documents */
	int rc = open_eval_dataset(t, error);
	if (rc < 0)
		return rc;
	t->exit_code = WLB_EXIT_FAILED;
	return wlb_agree(t->world, wlb_evaluation_open(&t->evaluation, t->device, &t->plan->model, &options, error),
	                 error);
}

/* A wlb_file_function: checks early that the outputs can be written. For rank 0. */
static int open_outputs(void *trainer, struct wlb_error *error)
{
	struct wlb_trainer *t = trainer;
	t->file_failure = wlb_outputs_open(t->options, t->plan->attempt_id, wlb_launch_node(t->launch, 0),
	                                   &t->save_lock, &t->outputs, error);
	return t->file_failure;
}

/* The parts of a step that are timed: its passes, and twice the optimizer. */
static int open_events(struct wlb_trainer *t, int number, struct wlb_error *error)
{
	int most = (int)wlb_plan_passes(&t->plan->split, t->groups->coords.pp) + 2;
	t->unread[number].events = wlb_step_events_new(t->device, t->groups, number, most, error);
	return t->unread[number].events != NULL ? 0 : -1;
}

static int allocate_sums(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_ops *ops = t->device->ops;
	t->queue_depth = wlb_queue_depth(t->device);
	t->sums = ops->alloc(t->device, WLB_STEP_SUMS * sizeof(double), error);
	if (t->sums == NULL)
		return wlb_fail_in(error, "loss and norm of a step");
	for (int i = 0; i < WLB_UNREAD_STEPS_MAX; i++) {
		struct wlb_unread_step *step = &t->unread[i];
		step->sums_host = ops->alloc_host(t->device, WLB_HOST_SUMS * sizeof(double), error);
		step->began = step->sums_host != NULL ? ops->event_new(t->device, 1, error) : NULL;
		step->computed = step->began != NULL ? ops->event_new(t->device, 1, error) : NULL;
		if (step->computed == NULL || (t->queue_depth > 0 && open_events(t, i, error) < 0))
			return -1;
	}
	return 0;
}

static void release_sums(struct wlb_trainer *t)
{
	const struct wlb_ops *ops = t->device->ops;
	for (int i = 0; i < WLB_UNREAD_STEPS_MAX; i++) {
		wlb_step_events_free(t->unread[i].events);
		ops->event_free(t->device, t->unread[i].began);
		ops->event_free(t->device, t->unread[i].computed);
		ops->release_host(t->device, t->unread[i].sums_host);
	}
	ops->release(t->device, t->sums);
}

/* Lists the tensors of the files of the published model; those that are in one are each a part of it. `names` has one
 * for each tensor of ours. */
static void list_published(const struct wlb_parameters *model, char (*names)[WLB_PUBLISHED_NAME_BYTES],
                           struct wlb_tensor_part *parts)
{
	for (int i = 0; i < model->count; i++) {
		parts[i] = (struct wlb_tensor_part){.name = names[i], .block = model->tensors[i].block};
		wlb_published_block(&model->shape, model->tensors[i].name, names[i], &parts[i].block);
	}
}

/* A wlb_file_function: compares the published model with that of the plan. For rank 0. */
static int check_published(void *trainer, struct wlb_error *error)
{
	struct wlb_trainer *t = trainer;
	struct wlb_parameters *model = wlb_parameters_of_model(&t->plan->model, t->device, error);
	size_t count = model != NULL ? (size_t)model->count : 0;
	struct wlb_tensor_part *parts = calloc(count + 1, sizeof(*parts));
	char(*names)[WLB_PUBLISHED_NAME_BYTES] = calloc(count + 1, sizeof(*names));
	t->file_failure = WLB_UNREADABLE;
	if (model == NULL || parts == NULL || names == NULL) {
		wlb_fail(error, "out of memory to compare the published model");
	} else {
		list_published(model, names, parts);
		t->file_failure = wlb_published_check(t->options->init_from, parts, model->count, error);
	}
	if (t->file_failure < 0)
		wlb_fail_in(error, "--init-from");
	free(names);
	free(parts);
	wlb_parameters_free(model);
	return t->file_failure;
}

/* A wlb_tensor_store. */
static int store_masters(void *optimizer, int tensor, const void *values_host, struct wlb_error *error)
{
	return wlb_optimizer_store(optimizer, WLB_STATE_MASTERS, tensor, values_host, error);
}

static int make_model(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_hyperparameters *h = &t->plan->hyper;
	const struct wlb_plan *split = &t->plan->split;
	struct wlb_loader_options load = loader_options(t);
	struct wlb_optimizer_options optimizer = {
		.beta1 = h->adam_beta1,
		.beta2 = h->adam_beta2,
		.epsilon = h->adam_eps,
		.weight_decay = h->weight_decay,
		.clip_grad = h->clip_grad,
	};
	t->parameters = wlb_parameters_new(&t->plan->model, split, &t->groups->coords, t->device, error);
	if (t->parameters == NULL)
		return -1;
	t->optimizer = wlb_optimizer_new(t->parameters, t->groups, &optimizer, error);
	if (t->optimizer == NULL)
		return -1;
	int stage = t->groups->coords.pp;
	t->transformer = wlb_transformer_new(t->parameters, t->groups, split, (int)wlb_plan_in_flight(split, stage),
	                                     wlb_pipeline_slots(split, stage), wlb_loader_max_rows(&load),
	                                     wlb_loader_max_keys(&load), error);
	if (t->transformer == NULL)
		return -1;
	t->pipeline = wlb_pipeline_new(split, t->parameters, t->groups, t->transformer, t->optimizer, error);
	t->report = calloc(wlb_trainer_report_count(t->launch->size), sizeof(*t->report));
	if (t->pipeline == NULL || allocate_sums(t, error) < 0)
		return -1;
	if (t->report == NULL)
		return wlb_fail(error, "out of memory for the times of %d ranks", t->launch->size);
	if (t->plan->checkpoint[0] != '\0' || wlb_trainer_begins_with_weights(t))
		return 0;
	double std = t->options->init_method_std > 0.0 ? t->options->init_method_std : t->plan->model.initializer_range;
	return wlb_parameters_init(t->parameters, (uint64_t)t->options->seed, std, store_masters, t->optimizer, error);
}

static int open_check(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_sdc_check_uses uses = {
		.launch = t->launch,
		.device = t->device,
		.groups = t->groups,
		.parameters = t->parameters,
		.optimizer = t->optimizer,
		.pipeline = t->pipeline,
		.plan = &t->plan->split,
	};
	t->sdc_check = wlb_sdc_check_new(&uses, error);
	int rc = wlb_agree(t->world, t->sdc_check != NULL ? 0 : -1, error);
	if (rc == 0 && wlb_sdc_check_open(t->sdc_check, error) < 0)
		rc = WLB_FAILED_HERE;
	return rc;
}

int wlb_trainer_open(struct wlb_trainer *t, struct wlb_error *error)
{
	if (connect_ranks(t, error) < 0)
		return WLB_FAILED_HERE;
	int rc = open_dataset(t, error);
	if (rc < 0)
		return rc;
	t->exit_code = WLB_EXIT_FAILED; /* a device without memory is no bad input */
	rc = wlb_agree(t->world, open_loader(t, error), error);
	if (rc == 0 && t->options->evaluates)
		rc = open_evaluation(t, error);
	if (rc < 0)
		return rc;
	rc = open_files(t, t->launch->rank == 0 ? open_outputs : NULL, error);
	if (rc == 0 && t->options->init_from != NULL && wlb_trainer_begins_with_weights(t))
		rc = open_files(t, t->launch->rank == 0 ? check_published : NULL, error);
	if (rc < 0)
		return rc;
	t->exit_code = WLB_EXIT_FAILED;
	rc = wlb_agree(t->world, make_model(t, error), error);
	return rc == 0 && t->options->sdc_check_interval > 0 ? open_check(t, error) : rc;
}

void wlb_trainer_close(struct wlb_trainer *t)
{
	/* Closing communicators frees the trace that the watchdog reads, and waits for the other ranks. */
	wlb_watchdog_watch_exit(t->watchdog);
	free(t->report);
	wlb_sdc_check_free(t->sdc_check);
	wlb_pipeline_free(t->pipeline);
	wlb_transformer_free(t->transformer);
	wlb_optimizer_free(t->optimizer);
	wlb_parameters_free(t->parameters);
	wlb_evaluation_close(&t->evaluation);
	wlb_loader_free(t->loader);
	wlb_dataset_close(t->dataset);
	wlb_save_lock_release(&t->save_lock);
	wlb_outputs_close(&t->outputs);
	wlb_span_file_close(t->spans);
	if (t->device != NULL)
		release_sums(t);
	wlb_groups_close(t->groups);
	wlb_comm_close(t->world);
	wlb_rank_area_close(&t->area); /* which has the trace of the communicators */
	wlb_watchdog_stop(t->watchdog);
	wlb_device_close(t->device);
}
