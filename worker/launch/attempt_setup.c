#include "worker/launch/attempt_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/model_config.h"
#include "common/number.h"
#include "common/seconds.h"
#include "common/show.h"
#include "common/uuid.h"
#include "planner/machine_choose.h"
#include "planner/node_type.h"
#include "planner/plan_record.h"
#include "worker/checkpoint/manifest.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"
#include "worker/launch/attempt_id.h"
#include "worker/launch/auto_request.h"
#include "worker/launch/settings.h"
#include "worker/load/loader.h"

static const double STALE_S = 60.0; /* the default of NFS's acdirmax */

/* Reads the policy that the launcher resolved into WLB_TP, WLB_CP, WLB_PP and WLB_DP. Returns 1; 0 where they are not
 * set; -1 on error. */
static int policy_of_launcher(struct wlb_policy *policy, struct wlb_error *error)
{
	const char *tp = getenv("WLB_TP"), *cp = getenv("WLB_CP"), *pp = getenv("WLB_PP"), *dp = getenv("WLB_DP");
	if (tp == NULL || cp == NULL || pp == NULL || dp == NULL)
		return 0;
	char text[128];
	snprintf(text, sizeof(text), "tp=%.20s,cp=%.20s,pp=%.20s,dp=%.20s", tp, cp, pp, dp);
	if (wlb_policy_parse(text, policy, error) < 0)
		return wlb_fail_in(error, "WLB_TP, WLB_CP, WLB_PP, WLB_DP");
	return 1;
}

/* Takes --layout where given, else the launcher's choice, else the job's policy, else auto. Sets *of_launcher to 1
 * where the launcher chose it. */
static int find_policy(const struct wlb_train_options *options, struct wlb_policy *policy, int *of_launcher,
                       struct wlb_error *error)
{
	*of_launcher = 0;
	if (options->layout != NULL)
		return wlb_policy_parse(options->layout, policy, error) < 0 ? wlb_fail_in(error, "--layout") : 0;
	int chosen = policy_of_launcher(policy, error);
	*of_launcher = chosen > 0;
	if (chosen != 0)
		return chosen < 0 ? -1 : 0;
	const char *text = getenv("WLB_LAYOUT");
	if (wlb_policy_parse(text != NULL ? text : "auto", policy, error) < 0)
		return wlb_fail_in(error, "WLB_LAYOUT");
	return 0;
}

static void keep_record(const struct wlb_auto_request *request, const struct wlb_auto *found,
                        struct wlb_train_plan *plan)
{
	json_t *record = wlb_plan_record(request, found);
	size_t bytes = record != NULL ? json_dumpb(record, plan->why, sizeof(plan->why) - 1, JSON_COMPACT) : 0;
	plan->why[bytes < sizeof(plan->why) ? bytes : 0] = '\0';
	json_decref(record);
}

/* Asks the planner for a plan with every rank; `type` has the memory of a text of the request.
 * --storage-timeout-minutes bounds the reading of the files, and not the search, which computes. */
static void make_request(const struct wlb_launch *launch, const struct wlb_train_options *options, char *type,
                         size_t size, struct wlb_auto_request *request)
{
	wlb_file_report("reading", options->data_path);
	wlb_train_auto_request(options, wlb_gpu_type(type, size) ? type : NULL, request);
	request->nodes = wlb_launch_nodes(launch);
	request->every_rank = 1;
	request->files_are_read = wlb_file_report_end;
}

/* Sets the plan that the planner predicts the shortest step of, with memory for it, for a layout and settings that are
 * given: whether all stages share the head, and with packing auto whether it is dynamic. One that has neither where it
 * cannot predict. */
static void predict(const struct wlb_launch *launch, const struct wlb_train_options *options,
                    const struct wlb_train_settings *settings, const struct wlb_layout *layout, struct wlb_plan *best)
{
	char type[128];
	struct wlb_auto_request request;
	struct wlb_auto found = {0};
	struct wlb_error error;
	struct wlb_train_options chosen = *options; /* the request points into it */
	chosen.packing = settings->packing;
	make_request(launch, &chosen, type, sizeof(type), &request);
	request.fixed.tp = layout->tp;
	request.fixed.cp = layout->cp;
	request.fixed.pp = layout->pp;
	request.fixed.dp = layout->dp;
	request.fixed.interleave = settings->interleave;
	request.fixed.micro_batch_windows = (int32_t)settings->micro_batch_size;
	request.fixed.recompute = (int)settings->recompute;
	request.fixed.recompute_layers = settings->recompute_layers;
	*best = (struct wlb_plan){0};
	if (wlb_auto_find(&request, &found, &error) == 0)
		*best = found.result->ranked[0].plan;
	wlb_auto_free(&found);
}

static int packing_of(const struct wlb_plan *best)
{
	return best->dynamic_cp > 0 ? WLB_STRATEGY_DYNAMIC : WLB_STRATEGY_BALANCED;
}

/* Searches the layout for `auto` with the planner; plan->why receives the reason. */
static int find_split(const struct wlb_launch *launch, const struct wlb_train_options *options, int packing,
                      struct wlb_layout *layout, struct wlb_train_settings *settings, struct wlb_train_plan *plan,
                      struct wlb_error *error)
{
	char type[128];
	struct wlb_auto_request request;
	struct wlb_auto found = {0};
	struct wlb_train_options chosen = *options; /* the request points into it */
	chosen.packing = packing;
	make_request(launch, &chosen, type, sizeof(type), &request);
	int rc = wlb_auto_find(&request, &found, error);
	if (rc == 0) {
		const struct wlb_plan *best = &found.result->ranked[0].plan;
		*layout = best->layout;
		*settings = (struct wlb_train_settings){
			.micro_batch_size = found.micro_batch_windows,
			.interleave = best->interleave,
			.recompute = best->recompute,
			.recompute_layers = best->recompute_layers,
			.head_stages = best->shared_head ? WLB_HEAD_ALL : WLB_HEAD_LAST,
			.packing = packing != WLB_PACKING_AUTO ? packing : packing_of(best),
			.zero_stage = best->zero_stage,
		};
		keep_record(&request, &found, plan);
	} else {
		wlb_fail_in(error, "layout auto");
	}
	wlb_auto_free(&found);
	return rc;
}

/* Returns the packing of --packing; of auto that of the checkpoint that the run continues, where there is one. */
static int given_packing(const struct wlb_train_options *options)
{
	char path[4096];
	struct wlb_checkpoint_facts facts;
	struct wlb_error unused; /* find_checkpoint reports it */
	const char *dir = wlb_train_own_dir(options);
	if (options->packing == WLB_PACKING_AUTO && dir != NULL &&
	    wlb_checkpoint_newest_before(dir, INT64_MAX, path, &unused) > 0 &&
	    wlb_checkpoint_read_facts(path, &facts, &unused) == 0)
		return (int)facts.packing;
	return options->packing;
}

/* Finds the layout, and the settings beside it. */
static int find_settings(const struct wlb_launch *launch, const struct wlb_train_options *options,
                         struct wlb_layout *layout, struct wlb_train_settings *settings, struct wlb_train_plan *plan,
                         struct wlb_error *error)
{
	int of_launcher, packing = given_packing(options);
	struct wlb_policy policy;
	struct wlb_plan predicted;
	const struct wlb_nodes nodes = wlb_launch_nodes(launch);
	if (find_policy(options, &policy, &of_launcher, error) < 0)
		return -1;
	if (policy.kind == WLB_POLICY_AUTO)
		return find_split(launch, options, packing, layout, settings, plan, error);
	if (wlb_train_settings_find(options, of_launcher, settings, error) < 0 ||
	    wlb_layout_choose(&policy, &nodes, &plan->model, layout, error) < 0)
		return -1;
	if (options->layout == NULL && layout->pp > 1) /* as a layout that is found here */
		settings->zero_stage = 1;
	settings->packing = packing != WLB_PACKING_AUTO ? packing : settings->packing;
	int has_head = layout->pp > 1 && settings->head_stages == WLB_HEAD_AUTO;
	if (!has_head && settings->packing != WLB_PACKING_AUTO)
		return 0;
	predict(launch, options, settings, layout, &predicted);
	if (has_head)
		settings->head_stages = predicted.shared_head ? WLB_HEAD_ALL : WLB_HEAD_LAST;
	if (settings->packing == WLB_PACKING_AUTO)
		settings->packing = packing_of(&predicted);
	return 0;
}

/* Chooses the layout and the micro-batches that follow from it. */
static int choose_split(const struct wlb_launch *launch, const struct wlb_train_options *options,
                        struct wlb_train_plan *plan, struct wlb_error *error)
{
	struct wlb_train_settings settings;
	struct wlb_plan *split = &plan->split;
	struct wlb_loader_options loading = {0};
	if (find_settings(launch, options, &loading.layout, &settings, plan, error) < 0)
		return -1;
	plan->packing = loading.packing = (enum wlb_strategy)settings.packing;
	if (wlb_loader_micro_batches(options->seq_length, options->global_batch_size, settings.micro_batch_size,
	                             options->max_tokens, settings.interleave, &loading, error) < 0)
		return -1;
	*split = (struct wlb_plan){
		.layout = loading.layout,
		.interleave = settings.interleave,
		.micro_batches = loading.micro_batches,
		.zero_stage = settings.zero_stage,
		.recompute = settings.recompute,
		.recompute_layers = settings.recompute_layers,
		.account_for_embedding = options->account_for_embedding,
		.account_for_loss = options->account_for_loss,
		.shared_head = loading.layout.pp > 1 && settings.head_stages == WLB_HEAD_ALL,
		.dynamic_cp = loading.packing == WLB_STRATEGY_DYNAMIC ? wlb_loader_key_ranks(&loading) : 0,
	};
	plan->max_tokens = loading.max_tokens;
	return wlb_plan_check(split, &plan->model, error);
}

/* Returns the mean number of tokens of a micro-batch on each of its context-parallel ranks. */
static double mean_rows(const struct wlb_train_options *options, const struct wlb_plan *split)
{
	double tokens = (double)(options->global_batch_size * options->seq_length);
	double rows = tokens / ((double)split->micro_batches * split->layout.dp * split->layout.cp);
	return rows > 1.0 ? rows : 1.0;
}

static int names_machine(const struct wlb_train_options *options)
{
	const char *variable = getenv("WLB_MACHINE");
	return options->machine != NULL || (variable != NULL && *variable != '\0');
}

/* Returns 1 where the machine of the run was named, or follows from the type of its GPUs. The CPU device without a name
 * has the speeds that are compiled in. */
static int has_machine(const struct wlb_train_options *options, const char *type)
{
	return names_machine(options) || (options->device == WLB_DEVICE_CUDA && type != NULL);
}

/* Sets the speeds by which documents are assigned: those that are compiled in for a type of GPU without a machine, such
 * as a part of one (MIG), which a layout that was given can have. */
static int read_machine(const struct wlb_launch *launch, const struct wlb_train_options *options,
                        struct wlb_train_plan *plan, struct wlb_error *error)
{
	char text[128];
	const char *from, *type = wlb_gpu_type(text, sizeof(text)) ? text : NULL;
	if (!has_machine(options, type))
		return 0;
	struct wlb_machine *machine = calloc(1, sizeof(*machine));
	int rc = machine != NULL ? wlb_machine_choose(options->machine, type, launch->local_size, machine, &from, error)
	                         : wlb_fail(error, "out of memory for a machine");
	if (rc == 0) {
		wlb_document_speeds_of(machine, &plan->model, plan->split.layout.tp, mean_rows(options, &plan->split),
		                       &plan->speeds);
		plan->speeds.key_s = wlb_machine_key_s(machine, &plan->model, &plan->split.layout);
	}
	free(machine);
	return names_machine(options) ? rc : 0;
}

/* How long a text may be does not change what the model computes. */
static int check_same_model(const struct wlb_model *was, const struct wlb_model *is, struct wlb_error *error)
{
	struct wlb_model expected = *was;
	char differences[640];
	expected.max_position_embeddings = is->max_position_embeddings;
	int count = wlb_manifest_compare_models(&expected, is, differences, sizeof(differences));
	if (count == 0)
		return 0;
	return wlb_fail(error, "it was made with another model: %s; give the same, or another --load directory",
	                count > 0 ? differences : "out of memory to compare them");
}

/* Compares an option with that of the checkpoint, by what both print. Notes a change that the new phase may make. */
static int check_option(const struct wlb_train_options *options, enum wlb_phase_change change, const char *name,
                        const char *was, const char *is, struct wlb_train_plan *plan, struct wlb_error *error)
{
	size_t used = strlen(plan->changes);
	if (strcmp(was, is) == 0)
		return 0;
	if ((options->phase_changes & change) == 0)
		return wlb_fail(error,
		                "it was made with --%s %s, %s is asked for; give the same, or --new-phase %s to change "
		                "it, or another --load directory",
		                name, was, is, name);
	snprintf(plan->changes + used, sizeof(plan->changes) - used, "%s--%s was %s, is %s", used > 0 ? "; " : "", name,
	         was, is);
	plan->keeps_order = plan->keeps_order && (change == WLB_PHASE_BATCH || change == WLB_PHASE_RAMP);
	return 0;
}

static int check_number(const struct wlb_train_options *options, enum wlb_phase_change change, const char *name,
                        long long was, long long is, struct wlb_train_plan *plan, struct wlb_error *error)
{
	char texts[2][32];
	snprintf(texts[0], sizeof(texts[0]), "%lld", was);
	snprintf(texts[1], sizeof(texts[1]), "%lld", is);
	return check_option(options, change, name, texts[0], texts[1], plan, error);
}

static int check_ramp(const struct wlb_train_options *options, struct wlb_train_plan *plan, struct wlb_error *error)
{
	char was[WLB_BATCH_RAMP_TEXT_BYTES], is[WLB_BATCH_RAMP_TEXT_BYTES];
	wlb_batch_ramp_format(&plan->facts.ramp, was);
	wlb_batch_ramp_format(&options->ramp, is);
	return check_option(options, WLB_PHASE_RAMP, "rampup-batch-size", was, is, plan, error);
}

/* Sets what the optimizer computes with: the values of the command line, or the checkpoint's where that was asked for.
 * A run whose values change without a word would not be the run that was planned. */
static int choose_hyperparameters(const struct wlb_train_options *options, struct wlb_train_plan *plan,
                                  struct wlb_error *error)
{
	char changes[640];
	const struct wlb_checkpoint_facts *facts = &plan->facts;
	plan->hyper = options->hyper;
	if (!facts->has_hyper && options->use_checkpoint_hyper)
		return wlb_fail(error,
		                "it is of an earlier version, which did not record learning rate and optimizer: leave "
		                "out --use-checkpoint-opt_param-scheduler");
	if (!facts->has_hyper) {
		wlb_show_line(stderr,
		              "wlb-worker: checkpoint %s is of an earlier version, which did not record learning rate, "
		              "schedule and optimizer: those of the command line are taken",
		              plan->checkpoint);
		return 0;
	}
	if (wlb_hyperparameters_compare(&facts->hyper, &options->hyper, changes, sizeof(changes)) == 0)
		return 0;
	if (!options->override_hyper && !options->use_checkpoint_hyper)
		return wlb_fail(error,
		                "%s: give the same, or --override-opt_param-scheduler to change them, or "
		                "--use-checkpoint-opt_param-scheduler to keep the checkpoint's",
		                changes);
	wlb_show_line(stderr, "wlb-worker: checkpoint %s: %s: those of the %s are taken", plan->checkpoint, changes,
	              options->override_hyper ? "command line" : "checkpoint");
	if (options->use_checkpoint_hyper)
		plan->hyper = facts->hyper;
	return 0;
}

/* Another batch, packing or seed selects other documents: the run is a continuation only where that is asked for. */
static int check_resume(const struct wlb_train_options *options, struct wlb_train_plan *plan, struct wlb_error *error)
{
	const struct wlb_checkpoint_facts *facts = &plan->facts;
	plan->changes[0] = '\0';
	plan->keeps_order = 1;
	if (check_same_model(&facts->model, &plan->model, error) < 0 ||
	    check_number(options, WLB_PHASE_SEQ_LENGTH, "seq-length", facts->seq_length, options->seq_length, plan,
	                 error) < 0 ||
	    check_number(options, WLB_PHASE_BATCH, "global-batch-size", facts->global_batch_size,
	                 options->global_batch_size, plan, error) < 0 ||
	    check_ramp(options, plan, error) < 0 ||
	    check_number(options, WLB_PHASE_SEED, "seed", (long long)facts->seed, options->seed, plan, error) < 0 ||
	    check_option(options, WLB_PHASE_PACKING, "packing", wlb_strategy_name(facts->packing),
	                 wlb_strategy_name(plan->packing), plan, error) < 0 ||
	    choose_hyperparameters(options, plan, error) < 0)
		return wlb_fail_in(error, "checkpoint %.1000s", plan->checkpoint);
	return 0;
}

/* Returns as wlb_checkpoint_newest_step; waits for the step as long as the list of a directory may be stale on NFS. */
static int64_t await_step(const char *dir, int64_t step, struct wlb_error *error)
{
	double until_s = wlb_now_s() + STALE_S;
	int64_t newest = wlb_checkpoint_newest_step(dir, error);
	while (newest >= 0 && newest < step && wlb_now_s() < until_s) {
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
		newest = wlb_checkpoint_newest_step(dir, error);
	}
	return newest;
}

/* Whether the checkpoint that the run has saved is one of `dir`; also where it is not known. A script may give each
 * start of its job another directory. */
static int is_saved_in(const char *dir)
{
	char stored[4096 * 3]; /* the path has been stored, too */
	const char *path = getenv("WLB_CHECKPOINT_PATH");
	size_t length = wlb_text_store(stored, sizeof(stored), dir);
	while (length > 1 && stored[length - 1] == '/')
		length--;
	return path == NULL ||
	       (strncmp(path, stored, length) == 0 && path[length] == '/' && strstr(path + length, "/step_") != NULL);
}

const char *wlb_train_own_dir(const struct wlb_train_options *options)
{
	return options->finetune ? options->save : options->load;
}

static const char *own_option(const struct wlb_train_options *options)
{
	return options->finetune ? "--save" : "--load";
}

/* Fails where the run has saved a later step in its directory than rank 0 finds there: a file system that is not
 * mounted on its node, or a stale list, would begin the training anew without a word. A checkpoint that is there and
 * damaged is found. Returns WLB_UNREADABLE then: another node may find it. */
static int check_saved_step(const struct wlb_train_options *options, struct wlb_error *error)
{
	int64_t saved;
	const char *text = getenv("WLB_CHECKPOINT_STEP"), *dir = wlb_train_own_dir(options);
	if (text == NULL || options->save == NULL || strcmp(options->save, dir) != 0 || !is_saved_in(dir))
		return 0;
	if (wlb_number_parse("WLB_CHECKPOINT_STEP", text, 0, INT64_MAX, &saved, error) < 0)
		return -1;
	int64_t newest = await_step(dir, saved, error);
	if (newest < 0) {
		wlb_fail_in(error, "%s", own_option(options));
		return (int)newest;
	}
	if (newest >= saved)
		return 0;
	wlb_fail(error,
	         "%s %.500s: the newest checkpoint found there is of step %lld%s, and this run has saved step %lld: "
	         "check that the file system is mounted here; where the checkpoints were removed on purpose, submit a "
	         "new job, which is a new run",
	         own_option(options), dir, (long long)newest, newest == 0 ? " (there is none)" : "", (long long)saved);
	return WLB_UNREADABLE;
}

/* Takes what wlb_checkpoint_newest_before found, which it returned: its facts are read and checked. */
static int take_found(const struct wlb_train_options *options, int found, struct wlb_train_plan *plan,
                      struct wlb_error *error)
{
	if (found <= 0) {
		plan->checkpoint[0] = '\0';
		return found;
	}
	int rc = wlb_checkpoint_read_facts(plan->checkpoint, &plan->facts, error);
	return rc < 0 ? rc : check_resume(options, plan, error);
}

int wlb_train_plan_take(const struct wlb_train_options *options, const char *path, struct wlb_train_plan *plan,
                        struct wlb_error *error)
{
	snprintf(plan->checkpoint, sizeof(plan->checkpoint), "%s", path);
	return take_found(options, 1, plan, error);
}

/* Prints what --model changes of the published model, such as angles for longer windows: it may be meant, or not. */
static void tell_differences(const struct wlb_train_options *options, const struct wlb_model *model)
{
	char path[4096], differences[640];
	struct wlb_model published;
	struct wlb_error unknown; /* a folder without config.json, or with one that cannot be trained */
	snprintf(path, sizeof(path), "%s/config.json", options->init_from);
	if (wlb_model_config_read(path, WLB_MODEL_TO_TRAIN, &published, &unknown) < 0 ||
	    wlb_manifest_compare_models(&published, model, differences, sizeof(differences)) <= 0)
		return;
	wlb_show_line(stderr, "wlb-worker: --model %s differs from %s: %s", options->model, path, differences);
}

/* Sets the folder with whose weights the run begins: that of --init-from, or the newest checkpoint of --finetune. */
static int find_weights(const struct wlb_train_options *options, struct wlb_train_plan *plan, struct wlb_error *error)
{
	struct wlb_checkpoint_facts facts;
	if (options->init_from != NULL &&
	    snprintf(plan->weights, sizeof(plan->weights), "%s", options->init_from) >= (int)sizeof(plan->weights))
		return wlb_fail(error, "--init-from %.100s...: the path is too long", options->init_from);
	if (options->init_from != NULL)
		tell_differences(options, &plan->model);
	if (!options->finetune)
		return 0;
	int rc = wlb_checkpoint_newest(options->load, plan->weights, error);
	if (rc == 0)
		return wlb_fail(error, "--finetune: --load %.500s has no checkpoint whose weights could be taken",
		                options->load);
	if (rc > 0)
		rc = wlb_checkpoint_read_facts(plan->weights, &facts, error);
	if (rc == 0 && (rc = check_same_model(&facts.model, &plan->model, error)) < 0)
		wlb_fail_in(error, "checkpoint %.1000s", plan->weights);
	if (rc < 0)
		wlb_fail_in(error, "--load");
	return rc;
}

static int find_checkpoint(const struct wlb_train_options *options, struct wlb_train_plan *plan,
                           struct wlb_error *error)
{
	int rc = 0;
	if (wlb_train_own_dir(options) != NULL) {
		rc = check_saved_step(options, error);
		if (rc < 0)
			return rc;
		int found =
			wlb_checkpoint_newest_before(wlb_train_own_dir(options), INT64_MAX, plan->checkpoint, error);
		if (found < 0)
			wlb_fail_in(error, "%s", own_option(options));
		rc = take_found(options, found, plan, error);
	}
	return rc == 0 && plan->checkpoint[0] == '\0' ? find_weights(options, plan, error) : rc;
}

int wlb_train_plan_fall_back(const struct wlb_train_options *options, struct wlb_train_plan *plan,
                             struct wlb_error *error)
{
	int found = wlb_checkpoint_newest_before(wlb_train_own_dir(options), plan->facts.step, plan->checkpoint, error);
	if (found == 0)
		return wlb_fail(
			error,
			"%.500s: its checkpoints have been removed since the run began: is another run saving there?",
			wlb_train_own_dir(options));
	return take_found(options, found, plan, error);
}

static int check_sequence(const struct wlb_train_options *options, const struct wlb_model *model,
                          struct wlb_error *error)
{
	if (options->seq_length <= model->max_position_embeddings)
		return 0;
	return wlb_fail(error, "--seq-length %lld: it must not exceed max_position_embeddings of %.500s, %lld",
	                (long long)options->seq_length, options->model, (long long)model->max_position_embeddings);
}

int wlb_train_plan_make(const struct wlb_launch *launch, const struct wlb_train_options *options,
                        struct wlb_train_plan *plan, struct wlb_error *error)
{
	memset(plan, 0, sizeof(*plan));
	plan->hyper = options->hyper;
	wlb_file_report("reading", options->model);
	if (wlb_model_config_read(options->model, WLB_MODEL_TO_TRAIN, &plan->model, error) < 0 ||
	    check_sequence(options, &plan->model, error) < 0 || choose_split(launch, options, plan, error) < 0 ||
	    read_machine(launch, options, plan, error) < 0)
		return -1;
	int rc = find_checkpoint(options, plan, error);
	if (rc < 0)
		return rc;
	wlb_file_report_end();
	plan->state = WLB_PLAN_MADE;
	if (wlb_uuid_make(plan->save_id, sizeof(plan->save_id), error) < 0)
		return -1;
	return wlb_launch_attempt_id(plan->attempt_id, sizeof(plan->attempt_id), error);
}
