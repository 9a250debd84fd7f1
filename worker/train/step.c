#include <math.h>
#include <stdio.h>

#include "common/seconds.h"
#include "worker/train/spans.h"
#include "worker/train/trainer.h"

static double learning_rate(const struct wlb_hyperparameters *h, int64_t step)
{
	struct wlb_lr_schedule schedule = {
		.max_lr = h->lr,
		.min_lr = h->min_lr,
		.warmup_iters = h->lr_warmup_iters,
		.decay_iters = h->lr_decay_iters,
		.decay = (enum wlb_lr_decay)h->lr_decay_style,
	};
	return wlb_learning_rate(&schedule, step);
}

/* Tells wlb-agent the step in progress, and the work that is predicted for it; 0: not known yet. */
static void tell_step(const struct wlb_trainer *t, int64_t step, double work)
{
	wlb_rank_trace_set_step(wlb_comm_trace_memory(wlb_comm_get_trace(t->world)), step, work);
}

struct loader_wait {
	struct wlb_trainer *trainer;
	double began_s;
	int printed;
};

/* A wlb_file_await. A wait that would have ended the run if it were one for a collective is printed, since the run is
 * slow and only this rank knows the file. */
static int await_loader(void *context, double seconds, struct wlb_error *error)
{
	struct loader_wait *wait = context;
	const struct wlb_trainer *t = wait->trainer;
	int rc = wlb_loader_await(t->loader, seconds, error);
	double waited_s = wlb_now_s() - wait->began_s;
	if (rc != 0 || wait->printed || waited_s <= t->files.collective_timeout_s)
		return rc;
	wait->printed = 1;
	fprintf(stderr,
	        "wlb-worker: rank %d on %s: step %lld has waited %.1f s for its documents: %s is read slowly; the run "
	        "continues while it makes progress\n",
	        t->launch->rank, wlb_launch_node(t->launch, t->launch->rank), (long long)t->step + 1, waited_s,
	        wlb_dataset_path(t->dataset));
	return 0;
}

/* Waits until every rank has its documents, so that none waits in a collective for the disk of another. */
static int await_loaders(struct wlb_trainer *t, struct wlb_error *error)
{
	struct loader_wait wait = {.trainer = t, .began_s = wlb_now_s()};
	double before_s = wlb_comm_blocked_s(t->world);
	if (wlb_await_files(&t->files, await_loader, &wait, error) < 0)
		return -1;
	double world_s = wlb_comm_blocked_s(t->world) - before_s;
	t->timer.times.s[WLB_TIME_LOADER] += wlb_now_s() - wait.began_s - world_s;
	return 0;
}

/* Returns the tokens of a micro-batch whose loss this rank computes and adds. */
static int64_t head_tokens(const struct wlb_trainer *t, const struct wlb_micro_batch *batch)
{
	if (batch->tokens == 0)
		return 0;
	int stage = t->groups->coords.pp, is_last = stage == t->groups->layout.pp - 1;
	struct wlb_head_rows rows = {.count = is_last ? batch->rows / t->groups->layout.tp : 0};
	if (t->groups->head_rows != NULL)
		rows = wlb_head_rows_of(t->transformer, batch, stage);
	return wlb_head_tokens(t->transformer, batch, rows);
}

/* Keeps of the loaded step what is told of it when it has ended. */
static void note_loaded(const struct wlb_trainer *t, struct wlb_unread_step *step, double read_s)
{
	step->work = t->loaded->work;
	step->predicted_s = t->loaded->predicted_s;
	step->loader_s = t->timer.times.s[WLB_TIME_LOADER];
	step->storage_s = read_s;
	step->own_tokens = 0;
	for (int32_t m = 0; m < t->loaded->micro_batches; m++)
		step->own_tokens += head_tokens(t, &t->loaded->list[m]);
	tell_step(t, t->loaded->step, t->loaded->predicted_s);
}

static int load(struct wlb_trainer *t, struct wlb_unread_step *step, struct wlb_error *error)
{
	double waited_s, read_before_s = wlb_loader_read_s(t->loader);
	wlb_trainer_set_activity(t, WLB_ACTIVITY_LOADING);
	if (!t->next_is_loaded && await_loaders(t, error) < 0)
		return -1;
	if (wlb_loader_next(t->loader, &t->loaded, &waited_s, error) < 0) {
		t->has_wrong_input = wlb_loader_has_wrong_id(t->loader);
		return -1;
	}
	t->next_is_loaded = 0; /* not known of the one after */
	t->timer.times.s[WLB_TIME_LOADER] += waited_s;
	note_loaded(t, step, wlb_loader_read_s(t->loader) - read_before_s);
	step->facts = (struct wlb_step_facts){
		.step = t->loaded->step,
		.lr = learning_rate(&t->plan->hyper, t->loaded->step),
		.tokens = t->loaded->tokens,
		.loss_tokens = t->loaded->loss_tokens,
		.windows = t->loaded->windows,
		.is_in_ramp = t->loaded->windows < t->options->global_batch_size,
		.documents = t->loaded->documents,
		.held_tokens = t->loaded->held_tokens,
	};
	return 0;
}

static void pass_begins(void *trainer, int backward)
{
	struct wlb_trainer *t = trainer;
	wlb_step_timer_start(&t->timer, backward ? WLB_TIME_BACKWARD : WLB_TIME_FORWARD);
}

/* Ends a part of the step. Where the host's clock measures it, the device must have ended it too. */
static int part_queued(void *trainer, struct wlb_error *error)
{
	struct wlb_trainer *t = trainer;
	if (t->queue_depth == 0 && t->device->ops->synchronize(t->device, error) < 0)
		return -1;
	wlb_spans_stop_part(t);
	return 0;
}

static int run_passes(struct wlb_trainer *t, struct wlb_error *error)
{
	double *loss_sum = t->sums + WLB_SUM_LOSS;
	wlb_trainer_set_activity(t, WLB_ACTIVITY_COMPUTING);
	const struct wlb_pass_watch watch = {.begins = pass_begins, .queued = part_queued, .context = t};
	wlb_step_timer_start(&t->timer, WLB_TIME_OPTIMIZER);
	wlb_optimizer_begin(t->optimizer);
	t->device->ops->zero(t->device, loss_sum, sizeof(*loss_sum));
	wlb_spans_stop_part(t);
	return wlb_pipeline_run(t->pipeline, t->loaded, loss_sum, &watch, error);
}

/* Returns the largest gradient norm with which the step updates weights. */
static double most_norm(const struct wlb_trainer *t, const struct wlb_unread_step *step)
{
	return isnan(step->median_norm) ? INFINITY : t->options->bad_norm_ratio * step->median_norm;
}

/* Updates the weights, and queues the copies of the step's sums to the host. */
static int update(struct wlb_trainer *t, struct wlb_unread_step *step, struct wlb_error *error)
{
	const double *own_loss = t->sums + WLB_SUM_LOSS; /* before the optimizer makes it that of all ranks */
	wlb_step_timer_start(&t->timer, WLB_TIME_OPTIMIZER);
	t->device->ops->to_host_start(t->device, NULL, step->sums_host + WLB_OWN_LOSS, own_loss, sizeof(*own_loss));
	wlb_save_await_copy(t);
	/* Of the step before the norm need not be known yet, whatever the device. */
	step->median_norm = wlb_recent_norms_median(&t->norms, step->facts.step - WLB_UNREAD_STEPS_MAX);
	if (wlb_optimizer_step(t->optimizer, step->facts.step, step->facts.lr, most_norm(t, step), t->sums, error) < 0)
		return -1;
	t->device->ops->to_host_start(t->device, NULL, step->sums_host, t->sums, WLB_STEP_SUMS * sizeof(double));
	if (part_queued(t, error) < 0)
		return -1;
	/* The last event of the step: when it is reached, so are those of its parts. */
	t->device->ops->event_record(t->device, step->computed, NULL);
	return 0;
}

int wlb_trainer_step(struct wlb_trainer *t, struct wlb_error *error)
{
	struct wlb_unread_step *step = &t->unread[(t->first_unread + t->unread_count) % WLB_UNREAD_STEPS_MAX];
	wlb_span_file_begin_step(t->spans, t->step + 1);
	step->started_s = wlb_now_s();
	tell_step(t, t->step + 1, 0.0);
	t->device->ops->event_record(t->device, step->began, NULL);
	wlb_step_timer_begin(&t->timer, t->device, t->groups, step->events);
	wlb_step_transfers_begin(&step->transfers, t->groups);
	if (load(t, step, error) < 0 || run_passes(t, error) < 0 || update(t, step, error) < 0)
		return WLB_FAILED_HERE;
	wlb_step_timer_end(&t->timer);
	step->times = t->timer.times;
	wlb_step_transfers_end(&step->transfers, t->groups, step->events == NULL);
	t->unread_count++;
	t->step = step->facts.step;
	return 0;
}
