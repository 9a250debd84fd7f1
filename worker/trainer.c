#include "worker/trainer.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/client/file.h"

/* A dataset of more tokens is not read through before the run: ids are then checked as they are used. */
#define SCAN_TOKENS INT64_C(2000000000)

int wlb_trainer_agree(struct wlb_trainer *t, int rc, struct wlb_error *error)
{
	/* The largest number is that of the lowest rank that failed. */
	double mine = rc < 0 ? (double)(t->launch->size - t->launch->rank) : 0.0;
	double largest = mine;
	if (wlb_comm_all_reduce_double(t->world, &largest, 1, WLB_MAX, error) < 0)
		return -1;
	if (largest == 0.0)
		return 0;
	if (largest != mine)
		error->message[0] = '\0';
	return -1;
}

/* As many threads as this rank's share of the CPUs that it may use. */
static int default_threads(const struct wlb_launch *launch)
{
	cpu_set_t set;
	int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return cpus > launch->local_size ? cpus / launch->local_size : 1;
}

struct wlb_device *wlb_trainer_open_device(const struct wlb_launch *launch, const struct wlb_train_options *options,
                                           struct wlb_error *error)
{
	enum wlb_dtype dtype = (enum wlb_dtype)options->dtype;
	int threads = options->threads > 0 ? (int)options->threads : default_threads(launch);
	struct wlb_device *device = options->device == WLB_DEVICE_CUDA
	                                    ? wlb_device_open_cuda(launch->local_rank, dtype, error)
	                                    : wlb_device_open_cpu(dtype, threads, error);
	if (device != NULL && wlb_transformer_check_device(device, error) == 0)
		return device;
	wlb_device_close(device);
	return NULL;
}

static int connect_ranks(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_launch *l = t->launch;
	t->exit_code = WLB_EXIT_FAILED;
	t->watchdog = wlb_watchdog_start(l, t->recorder, 60.0 * t->options->timeout_minutes, error);
	if (t->watchdog == NULL)
		return -1;
	t->world = wlb_comm_open_world(t->device, l->rank, l->size, error);
	if (t->world == NULL)
		return -1;
	wlb_watchdog_watch(t->watchdog, wlb_comm_get_trace(t->world));
	struct wlb_coordinates at = wlb_layout_coordinates(&t->plan->layout, l->rank);
	/* Ranks that differ in dp alone: their number with dp taken out is the same. */
	struct wlb_coordinates first = {.tp = at.tp, .cp = at.cp, .pp = at.pp};
	t->dp = wlb_comm_split(t->world, wlb_layout_rank(&t->plan->layout, &first), at.dp, "dp", error);
	return t->dp != NULL ? 0 : -1;
}

static int check_tokens(struct wlb_trainer *t, struct wlb_error *error)
{
	if (t->launch->rank != 0 || wlb_dataset_tokens(t->dataset) > SCAN_TOKENS)
		return 0;
	int64_t largest = wlb_dataset_max_token(t->dataset, error);
	if (largest < 0)
		return -1;
	if (largest < t->plan->model.vocab_size)
		return 0;
	return wlb_fail(error,
	                "--data-path %.500s: it holds token id %lld, vocab_size of %.500s is %lld; ids must be below "
	                "vocab_size",
	                t->options->data_path, (long long)largest, t->options->model,
	                (long long)t->plan->model.vocab_size);
}

static int open_data(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_train_options *o = t->options;
	t->exit_code = WLB_EXIT_INPUT;
	t->dataset = wlb_dataset_open(o->data_path, error);
	if (t->dataset == NULL || check_tokens(t, error) < 0)
		return -1;
	t->schedule = wlb_schedule_new(t->dataset, o->seq_length, o->global_batch_size, (uint64_t)o->seed, error);
	return t->schedule != NULL ? 0 : -1;
}

/* What is written later must be writable now. */
static int open_outputs(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_train_options *o = t->options;
	t->exit_code = WLB_EXIT_INPUT;
	if (t->launch->rank != 0)
		return 0;
	if (o->save != NULL && wlb_dir_make(o->save, 0777, error) < 0)
		return wlb_fail_in(error, "--save");
	if (o->save != NULL && access(o->save, W_OK | X_OK) < 0)
		return wlb_fail(error, "--save %.500s: it cannot be written: %s", o->save, strerror(errno));
	if (o->metrics_file == NULL)
		return 0;
	t->metrics = wlb_metrics_open(o->metrics_file, error);
	return t->metrics != NULL ? 0 : -1;
}

static int make_model(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_train_options *o = t->options;
	const struct wlb_model *shape = &t->plan->model;
	struct wlb_optimizer_options optimizer = {
		.beta1 = o->adam_beta1,
		.beta2 = o->adam_beta2,
		.epsilon = o->adam_eps,
		.weight_decay = o->weight_decay,
		.clip_grad = o->clip_grad,
	};
	t->exit_code = WLB_EXIT_FAILED;
	if ((t->parameters = wlb_parameters_new(shape, t->device, error)) == NULL ||
	    (t->optimizer = wlb_optimizer_new(t->parameters, &optimizer, error)) == NULL ||
	    (t->activations = wlb_activations_new(shape, t->device, o->max_tokens, error)) == NULL ||
	    (t->batch = wlb_micro_batch_new(t->device, o->max_tokens, error)) == NULL ||
	    (t->loss_sum = t->device->ops->alloc(t->device, sizeof(double), error)) == NULL)
		return -1;
	if (t->plan->checkpoint[0] != '\0')
		return wlb_trainer_resume(t, error);
	return wlb_parameters_init(t->parameters, (uint64_t)o->seed, o->init_method_std, error);
}

int wlb_trainer_open(struct wlb_trainer *t, struct wlb_error *error)
{
	if (connect_ranks(t, error) < 0)
		return -1;
	if (wlb_trainer_agree(t, open_data(t, error), error) < 0 ||
	    wlb_trainer_agree(t, open_outputs(t, error), error) < 0)
		return -1;
	return wlb_trainer_agree(t, make_model(t, error), error);
}

void wlb_trainer_close(struct wlb_trainer *t)
{
	/* Closing communicators takes the trace that the watchdog looks at, and waits for the other ranks. */
	wlb_watchdog_leave(t->watchdog);
	wlb_deal_free(&t->deal);
	wlb_micro_batch_free(t->batch);
	wlb_activations_free(t->activations);
	wlb_optimizer_free(t->optimizer);
	wlb_parameters_free(t->parameters);
	wlb_schedule_free(t->schedule);
	wlb_dataset_close(t->dataset);
	wlb_metrics_close(t->metrics);
	if (t->device != NULL)
		t->device->ops->release(t->device, t->loss_sum);
	wlb_comm_close(t->dp);
	wlb_comm_close(t->world);
	wlb_watchdog_stop(t->watchdog);
	wlb_device_close(t->device);
}
