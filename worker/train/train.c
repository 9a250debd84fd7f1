#include "worker/train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "common/exit_saved.h"
#include "common/seconds.h"
#include "common/show.h"
#include "worker/data/file_thread.h"
#include "worker/data/input.h"
#include "worker/launch/plan_agree.h"
#include "worker/train/device.h"
#include "worker/train/near_resume.h"
#include "worker/train/near_save.h"
#include "worker/train/out_of_memory.h"
#include "worker/train/spans.h"
#include "worker/train/stop_signals.h"
#include "worker/train/trainer.h"

/* That an abort waits for the removal of a file. */
static const double RELEASE_MAX_S = 1.0;

/* Prints the one line that says why the run ends; where it is not for all ranks, it names this rank. */
static void print_reason(const struct wlb_launch *launch, const char *message, int for_all)
{
	if (message[0] == '\0')
		return;
	if (for_all)
		wlb_show_line(stderr, "wlb-worker: %s", message);
	else
		wlb_show_line(stderr, "wlb-worker: rank %d on %s: %s", launch->rank,
		              wlb_launch_node(launch, launch->rank), message);
}

/* Must be called before ranks that fail together end: srun --kill-on-bad-exit kills ranks that end later, and the
 * step's exit code would be that of the signal. */
static void keep_exit_code(void)
{
	wlb_stop_signals_ignore_term();
}

/* Ends a run that failed before the attempt began, where every rank knows of the failure. Only rank 0 prints and
 * records it; the message names rank 0 where the cause is not the input. Returns `code`. */
static int refuse(struct wlb_launch *launch, int code, const char *message)
{
	char done = 0;
	launch->exit_code = code;
	keep_exit_code();
	if (launch->rank == 0) {
		print_reason(launch, message, code == WLB_EXIT_INPUT);
		wlb_record_refusal(launch, code, message);
	}
	/* All ranks wait until it is recorded. If that fails, they end nevertheless. */
	wlb_launch_share(launch, "wlb.refused", &done, sizeof(done), NULL);
	return code;
}

static void print_beginning(const struct wlb_train_options *o, const struct wlb_train_plan *plan)
{
	const char *load = o->finetune ? NULL : o->load, *from = plan->weights;
	wlb_show_line(stdout, "%s%s%sstarting at step 1 with %s%s", load != NULL ? "no checkpoint in " : "",
	              load != NULL ? load : "", load != NULL ? ": " : "",
	              *from != '\0' ? "the weights of " : "initial weights", from);
}

/* Prints and records where the run begins otherwise than it would by itself. For rank 0. */
static void tell_phase(const struct wlb_trainer *t)
{
	char detail[4400];
	const char *changes = t->plan->changes, *other = t->has_other_data ? "another dataset in --data-path" : "";
	if (wlb_trainer_begins_with_weights(t))
		snprintf(detail, sizeof(detail), "step 1: the weights of %s", t->plan->weights);
	else if (*changes != '\0' || *other != '\0')
		snprintf(detail, sizeof(detail), "step %lld: %s%s%s", (long long)t->step + 1, changes,
		         *changes != '\0' && *other != '\0' ? "; " : "", other);
	else
		return;
	if (!wlb_trainer_begins_with_weights(t))
		wlb_show_line(stdout, "a new phase begins with %s", detail);
	wlb_record_event(t->recorder, "phase", detail);
}

static void print_start(const struct wlb_trainer *t)
{
	char layout[64];
	wlb_layout_format(&t->plan->split.layout, layout, sizeof(layout));
	const char *gradients = t->device->gradients == t->device->master ? "" : ", gradients in bfloat16";
	printf("%lld parameters, %s, %s%s | %d ranks on %d nodes, %s | %lld documents, %lld tokens\n",
	       (long long)wlb_model_parameters(&t->plan->model), t->device->name, wlb_dtype_name(t->device->compute),
	       gradients, t->launch->size, t->launch->node_count, layout, (long long)wlb_dataset_documents(t->dataset),
	       (long long)wlb_dataset_tokens(t->dataset));
	if (wlb_dataset_has_loss_mask(t->dataset))
		printf("the loss is that of %lld tokens: the others are masked\n", (long long)t->loss_tokens);
	int is_rounded = t->checkpoint_bytes > (int)wlb_dtype_bytes(t->device->master);
	if (t->step > 0)
		wlb_show_line(stdout, "resuming after step %lld from %s%s%s%s", (long long)t->step, t->plan->checkpoint,
		              is_rounded ? ": its float64 values are rounded to " : "",
		              is_rounded ? wlb_dtype_name(t->device->master) : "",
		              t->step < t->options->train_iters ? "" : ": nothing is left of --train-iters");
	else if (t->options->load != NULL || wlb_trainer_begins_with_weights(t))
		print_beginning(t->options, t->plan);
	tell_phase(t);
	fflush(stdout);
}

/* Rank 0 writes the step to the metrics file and the record, and prints it. */
static int report_step(struct wlb_trainer *t, const struct wlb_step_facts *facts, struct wlb_error *error)
{
	/* The record holds only a summary of the ranks: the numbers of thousands of ranks would fill the database. */
	char *of_ranks = t->outputs.metrics != NULL ? wlb_step_json(facts, 1, error) : NULL;
	char *summary = wlb_step_json(facts, 0, error);
	int rc = summary != NULL ? 0 : -1;
	if (rc == 0 && t->outputs.metrics != NULL)
		rc = of_ranks != NULL ? wlb_metrics_write(t->outputs.metrics, of_ranks, error) : -1;
	if (summary != NULL)
		wlb_record_step(t->recorder, summary);
	if (t->outputs.tensorboard != NULL)
		wlb_tensorboard_step(t->outputs.tensorboard, facts);
	free(of_ranks);
	free(summary);
	if (facts->step % t->options->log_interval == 0 || facts->step == t->options->train_iters)
		wlb_metrics_print(facts, t->options->train_iters);
	return rc;
}

/* Returns 1 where a checkpoint of the last step is due. */
static int save_is_due(const struct wlb_trainer *t)
{
	const struct wlb_train_options *o = t->options;
	if (o->save == NULL)
		return 0;
	return t->save_asked || t->step == o->train_iters || (o->save_interval > 0 && t->step % o->save_interval == 0);
}

/* Returns 1 where a near checkpoint of the last step is due. It is left out while another save is in flight, and in the
 * steps before a checkpoint that is due, which would wait for it. */
static int near_save_is_due(const struct wlb_trainer *t)
{
	enum { STEPS_OF_SAVE = 6 }; /* one for each of its phases */
	const struct wlb_train_options *o = t->options;
	if (t->near == NULL || t->step % o->save_local_interval != 0 || wlb_save_is_busy(t) || save_is_due(t))
		return 0;
	int64_t to_save = o->save_interval > 0 ? o->save_interval - t->step % o->save_interval : INT64_MAX;
	return to_save >= STEPS_OF_SAVE && o->train_iters - t->step >= STEPS_OF_SAVE;
}

/* Reads and reports steps until at most `most` are unread. *loss is that of the last one. */
static int report_steps(struct wlb_trainer *t, int most, double *loss, struct wlb_error *error)
{
	while (t->unread_count > most) {
		struct wlb_step_facts facts;
		int rc = wlb_trainer_read_step(t, &facts, error);
		if (rc < 0)
			return rc;
		wlb_record_progress(t->recorder, facts.step);
		if (t->launch->rank == 0 && report_step(t, &facts, error) < 0)
			return WLB_FAILED_HERE;
		if (!facts.is_skipped)
			*loss = facts.loss;
	}
	return 0;
}

/* Returns 1 where the ranks have agreed to save and stop after the last step, before --train-iters. */
static int must_stop(const struct wlb_trainer *t)
{
	return t->stop_asked && t->options->save != NULL && t->step < t->options->train_iters;
}

/* Says once that the run goes on although that signal has asked it to save. */
static void refuse_save(const struct wlb_trainer *t, int is_asked, int *is_refused, const char *signal)
{
	if (!is_asked || *is_refused || t->options->save != NULL)
		return;
	*is_refused = 1;
	if (t->launch->rank == 0)
		fprintf(stderr, "wlb-worker: %s: without --save DIR nothing can be saved: the run goes on\n", signal);
}

/* Returns 1 where the last step is one that a check for silent data corruption follows. */
static int check_is_due(const struct wlb_trainer *t)
{
	return t->sdc_check != NULL && t->step % t->options->sdc_check_interval == 0;
}

/* Runs that check. The step must have been read. Collective. Returns 0 or WLB_FAILED_HERE. */
static int check(struct wlb_trainer *t, struct wlb_error *error)
{
	double started_s = wlb_now_s();
	int rc = wlb_sdc_check_run(t->sdc_check, t->step, t->loaded->check, error);
	t->aside_s += wlb_now_s() - started_s;
	return rc < 0 ? WLB_FAILED_HERE : 0;
}

/* Returns 1 where an evaluation follows the last step. */
static int evaluation_is_due(const struct wlb_trainer *t)
{
	const struct wlb_train_options *o = t->options;
	return o->evaluates && (t->step == o->train_iters || (o->eval_interval > 0 && t->step % o->eval_interval == 0));
}

/* Returns 1 where one comes before the next step, which is the first of the run or of a phase. */
static int evaluates_at_start(const struct wlb_trainer *t)
{
	int begins = t->step == 0 || t->plan->changes[0] != '\0' || t->has_other_data;
	return t->options->evaluates && t->options->eval_at_start && begins;
}

/* Evaluates, and reports it on rank 0. Returns 0 or WLB_FAILED_HERE. */
static int evaluate(struct wlb_trainer *t, struct wlb_error *error)
{
	struct wlb_evaluation_facts facts;
	wlb_trainer_set_activity(t, WLB_ACTIVITY_EVALUATING);
	if (wlb_evaluation_run(&t->evaluation, t->pipeline, &t->files, &facts, error) < 0)
		return WLB_FAILED_HERE;
	facts.step = t->step;
	if (t->ended_s > 0.0) /* else it is in the time of no step */
		t->aside_s += facts.duration_s;
	if (t->launch->rank != 0)
		return 0;
	char *line = wlb_evaluation_json(&facts, error);
	int rc = line == NULL                                                                           ? -1
	         : t->outputs.metrics != NULL && wlb_metrics_write(t->outputs.metrics, line, error) < 0 ? -1
	                                                                                                : 0;
	free(line);
	wlb_record_evaluation(t->recorder, &facts);
	if (t->outputs.tensorboard != NULL)
		wlb_tensorboard_evaluation(t->outputs.tensorboard, &facts);
	wlb_evaluation_print(&facts);
	return rc < 0 ? WLB_FAILED_HERE : 0;
}

/* Returns 1 where a checkpoint is left out since the one before is still being written. That of the last step is not.
 */
static int skips_save(struct wlb_trainer *t)
{
	if (t->options->save_when_busy != WLB_SAVE_SKIP || must_stop(t) || t->step == t->options->train_iters ||
	    !wlb_save_is_in_flight(t))
		return 0;
	t->save_asked = 0;
	wlb_save_leave_out(t);
	return 1;
}

/* Trains until --train-iters, or until the ranks must stop. All steps are read before a checkpoint, so that no
 * checkpoint is of a step whose loss or norm is not finite, and before a check, so that no step has the time of a
 * check. Returns 0 or one of the failures of a step. A checkpoint may be being saved then. */
static int run_steps(struct wlb_trainer *t, struct wlb_error *error)
{
	double loss = 0.0;
	if (evaluates_at_start(t) && evaluate(t, error) < 0)
		return WLB_FAILED_HERE;
	while (t->step < t->options->train_iters && !must_stop(t)) {
		int rc = wlb_trainer_step(t, error);
		int is_checked = check_is_due(t), is_evaluated = evaluation_is_due(t), is_near = near_save_is_due(t);
		int read_all =
			save_is_due(t) || is_checked || is_evaluated || is_near || t->step == t->options->train_iters;
		if (rc == 0)
			rc = report_steps(t, read_all ? 0 : t->queue_depth, &loss, error);
		if (rc == 0 && (must_stop(t) || save_is_due(t)))
			rc = report_steps(t, 0, &loss, error);
		if (rc == 0 && is_checked)
			rc = check(t, error);
		if (rc == 0 && is_evaluated && !must_stop(t)) /* whose time is short */
			rc = evaluate(t, error);
		if (rc == 0 && (save_is_due(t) || must_stop(t)) && !skips_save(t))
			rc = wlb_trainer_save(t, loss, error);
		else if (rc == 0 && is_near && near_save_is_due(t))
			wlb_trainer_save_near(t, loss);
		refuse_save(t, t->stop_asked, &t->stop_refused, "SIGUSR1");
		refuse_save(t, t->save_asked, &t->save_refused, "SIGUSR2");
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Trains, and waits for the last checkpoint. */
static int train_and_save(struct wlb_trainer *t, struct wlb_error *error)
{
	struct wlb_error of_save = {0};
	int rc = run_steps(t, error);
	if (rc == WLB_FAILED_HERE)
		return rc;
	int saved = wlb_trainer_finish_save(t, &of_save);
	if (saved == 0 || (rc < 0 && saved == WLB_FAILED_EVERYWHERE))
		return rc;
	*error = of_save;
	return saved;
}

/* Returns 1 where the cause of a failure on all ranks may be this rank's node: its memory, or its mount of the data or
 * of --save. */
static int may_be_node(const struct wlb_trainer *t)
{
	return t->device->no_memory.asked_bytes > 0 || t->file_failure == WLB_UNREADABLE;
}

static void release(void *lock)
{
	wlb_save_lock_release(lock);
}

/* An abort leaves the file of the lock there, which is harmless. The file system may not answer, so a thread removes
 * the file, with a copy of the lock: another thread may still work with the lock. */
static void release_lock(const struct wlb_save_lock *of_trainer)
{
	static struct wlb_save_lock lock;
	static struct wlb_file_thread thread;
	lock = *of_trainer;
	if (wlb_file_thread_start(&thread, "removal of a lock", release, &lock, NULL) == 0)
		wlb_file_thread_join_within(&thread, RELEASE_MAX_S);
}

/* Prints and records a failure, and ends every rank where the others do not know of it. Returns the exit code. */
static int fail(struct wlb_trainer *t, struct wlb_error *error, int everywhere)
{
	int code = everywhere ? t->exit_code : t->has_wrong_input ? WLB_EXIT_INPUT : WLB_EXIT_FAILED;
	int for_all = (t->launch->rank == 0 || t->has_wrong_input) && everywhere && !may_be_node(t);
	keep_exit_code();
	wlb_out_of_memory_explain(t, error);
	print_reason(t->launch, error->message, for_all);
	wlb_record_end(t->recorder, "failed", code,
	               error->message[0] != '\0' ? error->message : "a rank failed: the job's output says why");
	if (!everywhere) {
		release_lock(&t->save_lock);
		wlb_launch_abort(t->launch, code);
	}
	return code;
}

/* Prints and records that the run has stopped before its end, after a checkpoint. Returns the exit code. */
static int stop(struct wlb_trainer *t)
{
	char reason[96];
	snprintf(reason, sizeof(reason), "SIGUSR1: saved step %lld and stopped", (long long)t->step);
	keep_exit_code();
	print_reason(t->launch, t->launch->rank == 0 ? reason : "", 1);
	wlb_record_end(t->recorder, "ended", WLB_EXIT_SAVED, reason);
	return WLB_EXIT_SAVED;
}

/* Opens the trainer, resumes where there is a checkpoint, and trains. Returns the exit code. */
static int open_and_train(struct wlb_trainer *t)
{
	struct wlb_error error = {0};
	int rc = wlb_trainer_open(t, &error);
	if (rc == 0 && t->options->save != NULL)
		rc = wlb_agree(t->world, wlb_save_open(t, &error), &error);
	if (rc == 0 && t->options->trace_dir != NULL)
		rc = wlb_agree(t->world, wlb_spans_open(t, &error), &error);
	if (rc == 0 && t->options->save_local != NULL)
		rc = wlb_near_open(t, wlb_save_parts(t), &error);
	if (rc == 0 && t->near != NULL)
		rc = wlb_near_resume(t, &error);
	if (rc == 0 && t->step == 0 && t->plan->checkpoint[0] != '\0')
		rc = wlb_trainer_resume(t, &error);
	else if (rc == 0 && t->step == 0 && wlb_trainer_begins_with_weights(t))
		rc = wlb_trainer_read_weights(t, &error);
	if (rc < 0)
		return fail(t, &error, rc == WLB_FAILED_EVERYWHERE);
	if (t->launch->rank == 0)
		print_start(t);
	if (t->outputs.tensorboard != NULL)
		wlb_tensorboard_start(t->outputs.tensorboard, t->step);
	t->exit_code = WLB_EXIT_FAILED;
	t->saved_s = wlb_now_s();
	rc = train_and_save(t, &error);
	if (rc == 0 && wlb_near_end(t, &error) < 0)
		rc = WLB_FAILED_HERE;
	wlb_trainer_set_activity(t, WLB_ACTIVITY_ENDING);
	if (rc == 0 && must_stop(t))
		return stop(t);
	if (rc == 0)
		wlb_record_end(t->recorder, "complete", 0, "");
	return rc == 0 ? 0 : fail(t, &error, rc == WLB_FAILED_EVERYWHERE);
}

static int train_planned(struct wlb_launch *launch, const struct wlb_train_options *options,
                         struct wlb_train_plan *plan, struct wlb_device *device)
{
	struct wlb_error error = {0};
	struct wlb_trainer trainer = {
		.launch = launch, .options = options, .plan = plan, .device = device, .save_lock = WLB_SAVE_UNLOCKED};
	/* The watchdog is first: it bounds the recorder's calls on the spool. */
	trainer.watchdog = wlb_watchdog_start(launch, 60.0 * options->timeout_minutes,
	                                      60.0 * options->storage_timeout_minutes, &error);
	if (trainer.watchdog != NULL)
		trainer.recorder = wlb_recorder_start(launch, plan, options, &error);
	if (trainer.recorder == NULL) {
		print_reason(launch, error.message, launch->rank == 0);
		wlb_launch_abort(launch, WLB_EXIT_FAILED);
	}
	wlb_watchdog_record(trainer.watchdog, trainer.recorder);
	int code = open_and_train(&trainer);
	/* The ranks end together: until it is stopped the recorder reports a rank that has ended as lost. */
	wlb_watchdog_watch_exit(trainer.watchdog);
	wlb_recorder_stop(trainer.recorder);
	wlb_launch_disconnect(launch);
	wlb_near_close(&trainer);
	wlb_save_close(&trainer);
	wlb_trainer_close(&trainer);
	return code;
}

/* Trains with options that are the same on every rank: rank 0 decides and prints messages for all. */
static int train_with_options(struct wlb_launch *launch, const struct wlb_train_options *options)
{
	struct wlb_error device_error = {0}, error = {0};
	struct wlb_train_plan plan;
	struct wlb_device *device =
		wlb_open_device(launch, (enum wlb_device_kind)options->device, (enum wlb_dtype)options->dtype,
	                        (enum wlb_main_grads)options->main_grads, (int)options->threads, &device_error);
	int is_fault =
		wlb_is_gpu_at_fault(launch, (enum wlb_device_kind)options->device, (enum wlb_dtype)options->dtype);
	if (wlb_train_plan_agree(launch, options, is_fault ? WLB_PLAN_FAILED : WLB_PLAN_REFUSED,
	                         device == NULL ? device_error.message : NULL, &plan, &error) < 0) {
		print_reason(launch, error.message, launch->rank == 0);
		if (launch->fence_timed_out) {
			/* The fences of all ranks end so. */
			wlb_device_close(device);
			return EX_TEMPFAIL;
		}
		wlb_launch_abort(launch, WLB_EXIT_FAILED);
	}
	if (plan.state != WLB_PLAN_MADE) {
		wlb_device_close(device);
		return refuse(launch, plan.state == WLB_PLAN_REFUSED ? WLB_EXIT_INPUT : WLB_EXIT_FAILED, plan.reason);
	}
	if (device == NULL) { /* here, but not on rank 0: another node may have what this one lacks */
		print_reason(launch, device_error.message, launch->rank == 0);
		wlb_launch_abort(launch, WLB_EXIT_FAILED);
	}
	return train_planned(launch, options, &plan, device);
}

static int train_launched(struct wlb_launch *launch, int argc, char **argv)
{
	struct wlb_error error = {0};
	struct wlb_train_options options;
	int asked = wlb_train_options_parse(argc, argv, &options, &error);
	if (asked < 0)
		return refuse(launch, WLB_EXIT_INPUT, error.message);
	if (asked == WLB_OPTIONS_READ)
		return train_with_options(launch, &options);
	if (launch->rank == 0)
		wlb_options_print(&wlb_train_option_table, (enum wlb_options_asked)asked, stdout);
	return 0;
}

int wlb_train(int argc, char **argv)
{
	struct wlb_error error = {0};
	int code = WLB_EXIT_FAILED;
	struct wlb_launch *launch = NULL;
	if (wlb_stop_signals_open(&error) == 0)
		launch = wlb_launch_open(&code, &error);
	if (launch == NULL) {
		if (error.message[0] != '\0')
			fprintf(stderr, "wlb-worker: %s\n", error.message);
		return code;
	}
	code = train_launched(launch, argc, argv);
	wlb_launch_close(launch);
	return code;
}
