#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/seconds.h"
#include "worker/train/trainer.h"

static double learning_rate(const struct wlb_train_options *o, int64_t step)
{
	struct wlb_lr_schedule schedule = {
		.max_lr = o->lr,
		.min_lr = o->min_lr,
		.warmup_iters = o->lr_warmup_iters,
		.decay_iters = o->lr_decay_iters,
		.decay = (enum wlb_lr_decay)o->lr_decay_style,
	};
	return wlb_learning_rate(&schedule, step);
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

static int load(struct wlb_trainer *t, struct wlb_step_facts *facts, struct wlb_error *error)
{
	double waited_s;
	if (!t->next_is_loaded && await_loaders(t, error) < 0)
		return -1;
	if (wlb_loader_next(t->loader, &t->loaded, &waited_s, error) < 0)
		return -1;
	t->timer.times.s[WLB_TIME_LOADER] += waited_s;
	*facts = (struct wlb_step_facts){
		.step = t->loaded->step,
		.lr = learning_rate(t->options, t->loaded->step),
		.tokens = t->loaded->tokens,
		.documents = t->loaded->documents,
		.held_tokens = t->loaded->held_tokens,
	};
	return 0;
}

/* Sets *loss to the mean loss of the global batch. Ranks without a head, and all but one of those that share a head,
 * add 0. */
static int sum_loss(struct wlb_trainer *t, double *loss, struct wlb_error *error)
{
	double sum = 0.0;
	t->device->ops->to_host(t->device, &sum, t->loss_sum, sizeof(sum));
	if (wlb_comm_all_reduce_double(t->world, &sum, 1, WLB_SUM, error) < 0)
		return -1;
	*loss = sum / (double)t->loaded->tokens;
	return 0;
}

static void pass_begins(void *trainer)
{
	struct wlb_trainer *t = trainer;
	wlb_step_timer_start(&t->timer);
}

static void pass_ended(void *trainer, int backward)
{
	struct wlb_trainer *t = trainer;
	wlb_step_timer_stop(&t->timer, backward ? WLB_TIME_BACKWARD : WLB_TIME_FORWARD);
}

static int run_passes(struct wlb_trainer *t, struct wlb_step_facts *facts, struct wlb_error *error)
{
	const struct wlb_pass_watch watch = {.begins = pass_begins, .ended = pass_ended, .context = t};
	wlb_step_timer_start(&t->timer);
	wlb_optimizer_begin(t->optimizer);
	t->device->ops->zero(t->device, t->loss_sum, sizeof(double));
	wlb_step_timer_stop(&t->timer, WLB_TIME_OPTIMIZER);
	if (wlb_pipeline_run(t->pipeline, t->loaded, t->loss_sum, &watch, error) < 0)
		return -1;
	return sum_loss(t, &facts->loss, error);
}

/* Updates the weights. Loss and norm are the same on all ranks, and so is an error in them: WLB_FAILED_EVERYWHERE. */
static int update(struct wlb_trainer *t, struct wlb_step_facts *facts, struct wlb_error *error)
{
	wlb_step_timer_start(&t->timer);
	int loss_is_finite = isfinite(facts->loss);
	int rc = loss_is_finite ? wlb_optimizer_step(t->optimizer, facts->step, facts->lr, &facts->grad_norm, error)
	                        : wlb_optimizer_drop_step(t->optimizer, error);
	if (rc < 0)
		return WLB_FAILED_HERE;
	if (rc > 0 || !loss_is_finite) {
		wlb_fail(error, "step %lld: the %s not finite: lower --lr, or raise --lr-warmup-iters",
		         (long long)facts->step, loss_is_finite ? "gradients are" : "loss is");
		if (t->launch->rank != 0)
			error->message[0] = '\0'; /* rank 0 has the same message */
		return WLB_FAILED_EVERYWHERE;
	}
	wlb_step_timer_stop(&t->timer, WLB_TIME_OPTIMIZER);
	return 0;
}

/* Returns the largest value over the mean of all ranks; 1 is perfect. */
static double imbalance(const double *of_ranks, int ranks)
{
	double most = 0.0, sum = 0.0;
	for (int i = 0; i < ranks; i++) {
		most = fmax(most, of_ranks[i]);
		sum += of_ranks[i];
	}
	return sum > 0.0 ? most * ranks / sum : 1.0;
}

/* Sends every rank the parts of the step's time: t->report holds the sums of the parts over all ranks, then each rank's
 * predicted work, its measured one and the memory it has allocated, by place in the layout, then the number of ranks
 * whose next step is not loaded yet. */
static int exchange_report(struct wlb_trainer *t, struct wlb_step_facts *facts, struct wlb_error *error)
{
	int ranks = t->launch->size;
	size_t count = wlb_trainer_report_count(ranks);
	const struct wlb_step_times *times = &t->timer.times;
	double *work = t->report + WLB_STEP_PARTS, *compute_s = work + ranks;
	double *memory = compute_s + ranks, *not_loaded = memory + ranks;
	struct wlb_error ignored; /* the next step has the same */
	wlb_step_timer_end(&t->timer);
	memset(t->report, 0, count * sizeof(double));
	memcpy(t->report, times->s, sizeof(times->s));
	work[t->groups->place] = t->loaded->work;
	compute_s[t->groups->place] = times->compute_s;
	memory[t->groups->place] = (double)t->device->allocated_bytes;
	*not_loaded = wlb_loader_await(t->loader, 0.0, &ignored) > 0 ? 0.0 : 1.0;
	if (wlb_comm_all_reduce_double(t->world, t->report, count, WLB_SUM, error) < 0)
		return -1;
	for (int i = 0; i < WLB_STEP_PARTS; i++)
		facts->time_s[i] = t->report[i] / ranks;
	for (int i = 0; i < ranks; i++)
		facts->memory_bytes =
			memory[i] > (double)facts->memory_bytes ? (int64_t)memory[i] : facts->memory_bytes;
	facts->ranks = ranks;
	facts->rank_work = work;
	facts->rank_compute_s = compute_s;
	facts->predicted_imbalance = imbalance(work, ranks);
	facts->imbalance = imbalance(compute_s, ranks);
	t->next_is_loaded = *not_loaded == 0.0;
	return 0;
}

int wlb_trainer_step(struct wlb_trainer *t, struct wlb_step_facts *facts, struct wlb_error *error)
{
	double started_s = wlb_now_s();
	wlb_step_timer_begin(&t->timer, t->device, t->groups);
	if (load(t, facts, error) < 0 || run_passes(t, facts, error) < 0)
		return WLB_FAILED_HERE;
	int rc = update(t, facts, error);
	if (rc < 0)
		return rc;
	if (exchange_report(t, facts, error) < 0)
		return WLB_FAILED_HERE;
	t->step = facts->step;
	facts->step_time_s = wlb_now_s() - started_s;
	return 0;
}
