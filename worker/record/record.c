#include "worker/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_text.h"
#include "common/model_json.h"
#include "common/show.h"
#include "coordinator/client/node_page.h"
#include "coordinator/client/reporter.h"
#include "coordinator/client/spool_dir.h"
#include "worker/data/file_thread.h"
#include "worker/launch/attempt_id.h"
#include "worker/launch/attempt_setup.h"

enum {
	FLUSH_MS = 300,
	LAST_RECORD_S = 10, /* for the record of the end, which no other bound covers */
};

struct wlb_recorder {
	const struct wlb_launch *launch;
	struct wlb_reporter *reporter; /* NULL: this rank reports nothing */
	struct wlb_node_page *page;    /* of this node's agent, which reports; NULL: there is none */
	char spool[PATH_MAX];          /* the folder of the records; "": this rank writes none */
	int records;                   /* 1 on rank 0 */
	atomic_flag ended;
	atomic_int failures; /* to make, write or sync a record */
	atomic_bool stuck;   /* a thread still writes the last record */
};

/* Lists the other ranks of this node, for the reporter to watch. Returns their number, or -1. */
static int find_peers(struct wlb_launch *launch, int *ranks, pid_t *pids, struct wlb_error *error)
{
	int count = 0;
	for (int rank = 0; rank < launch->size; rank++) {
		if (rank == launch->rank || launch->node_of[rank] != launch->node_of[launch->rank])
			continue;
		ranks[count] = rank;
		if (wlb_launch_peer_pid(launch, rank, &pids[count], error) < 0)
			return -1;
		count++;
	}
	return count;
}

/* `wlb run`, which names the attempt, has chosen it. */
static int choose_spool(char dir[PATH_MAX], struct wlb_error *error)
{
	const char *given = getenv("WLB_ATTEMPT_ID") != NULL ? getenv("WLB_SPOOL_DIR") : NULL;
	if (given != NULL && snprintf(dir, PATH_MAX, "%s", given) < PATH_MAX)
		return 0;
	wlb_file_report("opening", "the directory of the records");
	int rc = wlb_spool_dir_choose(NULL, dir, error);
	wlb_file_report_end();
	return rc;
}

/* Sets what all reporters have in common, and starts one. */
static struct wlb_reporter *start_reporter(struct wlb_recorder *recorder, struct wlb_reporter_options *options,
                                           struct wlb_error *error)
{
	const struct wlb_launch *launch = recorder->launch;
	struct wlb_client_config config;
	if (launch->rank == 0 && choose_spool(recorder->spool, error) != 0)
		return NULL;
	int configured = wlb_client_config_load(&config, error) == 0;
	if (!configured && launch->rank == 0)
		wlb_show_line(stderr, "wlb-worker: %s; what is recorded waits in %s", error->message, recorder->spool);
	options->run_id = getenv("WLB_RUN_ID");
	options->source = launch->rank == 0 ? "rank0" : NULL;
	options->spool_dir = recorder->spool;
	options->rank = launch->rank;
	wlb_file_report("opening", recorder->spool);
	struct wlb_reporter *reporter = wlb_reporter_start(configured ? &config : NULL, options, error);
	wlb_file_report_end();
	return reporter;
}

/* Starts the reporter of this node, which watches the other ranks here. */
static struct wlb_reporter *start_node_reporter(struct wlb_recorder *recorder, struct wlb_launch *launch,
                                                const struct wlb_train_plan *plan, struct wlb_error *error)
{
	size_t ranks = (size_t)launch->local_size;
	int *peer_ranks = calloc(ranks, sizeof(*peer_ranks));
	pid_t *peer_pids = calloc(ranks, sizeof(*peer_pids));
	struct wlb_reporter *reporter = NULL;
	int peers = peer_ranks != NULL && peer_pids != NULL ? find_peers(launch, peer_ranks, peer_pids, error)
	                                                    : wlb_fail(error, "out of memory");
	if (peers >= 0) {
		struct wlb_reporter_options options = {
			.attempt_id = plan->attempt_id,
			.node = wlb_launch_node(launch, launch->rank),
			.peer_ranks = peer_ranks,
			.peer_pids = peer_pids,
			.peer_count = peers,
		};
		reporter = start_reporter(recorder, &options, error);
	}
	free(peer_ranks);
	free(peer_pids);
	return reporter;
}

/* Prints the first failure of recording, and counts them; the run continues. */
static void note_failure(struct wlb_recorder *recorder, const struct wlb_error *error)
{
	if (atomic_fetch_add(&recorder->failures, 1) == 0)
		fprintf(stderr, "wlb-worker: rank %d on %s: not everything is recorded: %s\n", recorder->launch->rank,
		        wlb_launch_node(recorder->launch, recorder->launch->rank), error->message);
}

static void record_text(struct wlb_recorder *recorder, const char *type, const char *text)
{
	struct wlb_error error = {0};
	wlb_file_report("writing", recorder->spool);
	int rc = wlb_reporter_record(recorder->reporter, type, text, &error);
	wlb_file_report_end();
	if (rc < 0)
		note_failure(recorder, &error);
}

/* Records and releases `data`; NULL: out of memory. */
static void record(struct wlb_recorder *recorder, const char *type, json_t *data)
{
	struct wlb_error error;
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	json_decref(data);
	if (text != NULL) {
		record_text(recorder, type, text);
	} else {
		wlb_fail(&error, "out of memory for a record of type %s", type);
		note_failure(recorder, &error);
	}
	free(text);
}

static int records_nothing(const struct wlb_recorder *recorder)
{
	return recorder->reporter == NULL || !recorder->records;
}

/* Opens the page of this node's agent, which reports for all ranks of the node, where the plugin started one. */
static void find_page(struct wlb_recorder *recorder, const char *attempt_id)
{
	struct wlb_error reason = {0};
	const char *path = getenv("WLB_NODE_PAGE");
	if (path == NULL)
		return;
	recorder->page = wlb_node_page_open(path, attempt_id, &reason);
	if (recorder->page == NULL && recorder->launch->local_rank == 0)
		fprintf(stderr, "wlb-worker: rank %d on %s: %s; this rank reports itself\n", recorder->launch->rank,
		        wlb_launch_node(recorder->launch, recorder->launch->rank), reason.message);
}

static struct wlb_reporter *start_own_reporter(struct wlb_recorder *recorder, struct wlb_launch *launch,
                                               const struct wlb_train_plan *plan, struct wlb_error *error)
{
	struct wlb_reporter_options records_only = {.attempt_id = plan->attempt_id};
	return recorder->page != NULL ? start_reporter(recorder, &records_only, error)
	                              : start_node_reporter(recorder, launch, plan, error);
}

struct wlb_recorder *wlb_recorder_start(struct wlb_launch *launch, const struct wlb_train_plan *plan,
                                        const struct wlb_train_options *options, struct wlb_error *error)
{
	struct wlb_recorder *recorder = calloc(1, sizeof(*recorder));
	if (recorder == NULL) {
		wlb_fail(error, "out of memory for the recorder");
		return NULL;
	}
	recorder->launch = launch;
	recorder->records = launch->rank == 0;
	atomic_flag_clear(&recorder->ended);
	if (plan->attempt_id[0] == '\0')
		return recorder;
	find_page(recorder, plan->attempt_id);
	if (recorder->page != NULL ? launch->rank != 0 : launch->local_rank != 0)
		return recorder;
	struct wlb_error reason = {0};
	recorder->reporter = start_own_reporter(recorder, launch, plan, &reason);
	if (recorder->reporter == NULL)
		note_failure(recorder, &reason);
	wlb_record_attempt(recorder, plan, options);
	if (!records_nothing(recorder) && plan->why[0] != '\0')
		record(recorder, "plan", json_loads(plan->why, 0, NULL));
	return recorder;
}

static json_t *rank_map(const struct wlb_launch *launch)
{
	json_t *map = json_array();
	int *seen = calloc((size_t)launch->node_count, sizeof(*seen)); /* ranks of each node so far */
	for (int rank = 0; seen != NULL && rank < launch->size; rank++)
		json_array_append_new(map, json_pack("{s:i, s:o, s:i}", "rank", rank, "node",
		                                     wlb_json_text(wlb_launch_node(launch, rank)), "local_rank",
		                                     seen[launch->node_of[rank]]++));
	free(seen);
	return map;
}

static json_t *model_json(const struct wlb_model *m)
{
	json_t *json = wlb_model_json(m);
	json_object_set_new(json, "parameters", json_integer(wlb_model_parameters(m)));
	return json;
}

/* Whether a signal to the ranks' Slurm step has this run save. It also gets to what starts a rank, a script say, and
 * ends that where it does not expect it: so srun must have started this process itself. */
static bool saves_on_request(const struct wlb_train_options *options)
{
	const char *task = getenv("SLURM_TASK_PID");
	return options->save != NULL && task != NULL && atol(task) == (long)getpid();
}

/* Returns the object, which the caller releases, or NULL if out of memory. */
static json_t *attempt_json(const struct wlb_launch *launch, const struct wlb_train_plan *plan,
                            const struct wlb_train_options *options)
{
	int resumed = plan->checkpoint[0] != '\0';
	json_t *layout = json_pack("{s:i, s:i, s:i, s:i}", "tp", plan->split.layout.tp, "cp", plan->split.layout.cp,
	                           "pp", plan->split.layout.pp, "dp", plan->split.layout.dp);
	return json_pack("{s:o, s:i, s:o, s:o, s:I, s:I, s:I, s:s, s:s, s:I, s:o?, s:b}", "layout", layout,
	                 "world_size", launch->size, "rank_map", rank_map(launch), "model", model_json(&plan->model),
	                 "seq_length", (json_int_t)options->seq_length, "global_batch_size",
	                 (json_int_t)options->global_batch_size, "train_iters", (json_int_t)options->train_iters,
	                 "dtype", wlb_dtype_name((enum wlb_dtype)options->dtype), "device",
	                 options->device == WLB_DEVICE_CUDA ? "cuda" : "cpu", "resumed_step",
	                 (json_int_t)(resumed ? plan->facts.step : 0), "checkpoint",
	                 resumed ? wlb_json_text(plan->checkpoint) : NULL, "saves_on_request",
	                 saves_on_request(options));
}

void wlb_record_attempt(struct wlb_recorder *recorder, const struct wlb_train_plan *plan,
                        const struct wlb_train_options *options)
{
	if (!records_nothing(recorder))
		record(recorder, "attempt", attempt_json(recorder->launch, plan, options));
}

void wlb_record_gpus(struct wlb_recorder *recorder, const char *json)
{
	if (!records_nothing(recorder))
		record_text(recorder, "gpus", json);
}

void wlb_record_progress(struct wlb_recorder *recorder, int64_t step)
{
	if (recorder->page != NULL)
		wlb_node_page_set_step(recorder->page, step);
	else if (recorder->reporter != NULL)
		wlb_reporter_progress(recorder->reporter, step);
}

void wlb_record_step(struct wlb_recorder *recorder, const char *json)
{
	if (!records_nothing(recorder))
		record_text(recorder, "step", json);
}

void wlb_record_checkpoint(struct wlb_recorder *recorder, const struct wlb_saved *saved)
{
	if (!records_nothing(recorder))
		record(recorder, "checkpoint",
		       json_pack("{s:I, s:o, s:I, s:f, s:f}", "step", (json_int_t)saved->step, "path",
		                 wlb_json_text(saved->path), "bytes", (json_int_t)saved->bytes, "duration_s",
		                 saved->duration_s, "stall_s", saved->stall_s));
}

void wlb_record_event(struct wlb_recorder *recorder, const char *kind, const char *detail)
{
	if (!records_nothing(recorder))
		record(recorder, "event", json_pack("{s:s, s:o}", "kind", kind, "detail", wlb_json_text(detail)));
}

void wlb_record_evaluation(struct wlb_recorder *recorder, const struct wlb_evaluation_facts *f)
{
	if (!records_nothing(recorder))
		record(recorder, "evaluation",
		       json_pack("{s:I, s:o, s:I, s:f}", "step", (json_int_t)f->step, "loss",
		                 isfinite(f->loss) ? json_real(f->loss) : json_null(), "tokens", (json_int_t)f->tokens,
		                 "duration_s", f->duration_s));
}

struct last_record {
	struct wlb_file_thread thread;
	struct wlb_recorder *recorder;
	int of_refusal; /* 1: `own` is the recorder, whose reporter is started for this record only */
	struct wlb_recorder own;
	char attempt_id[64];
	char state[16];
	int exit_code;
	char reason[sizeof(((struct wlb_error *)0)->message)];
};

static void write_last(void *argument)
{
	struct last_record *last = argument;
	struct wlb_recorder *recorder = last->recorder;
	if (last->of_refusal) {
		/* Without a node: the ranks here end at once, and must not be reported as lost. */
		struct wlb_reporter_options options = {.attempt_id = last->attempt_id};
		struct wlb_error error = {0};
		recorder->reporter = start_reporter(recorder, &options, &error);
		if (recorder->reporter == NULL) {
			note_failure(recorder, &error);
			return;
		}
	}
	record(recorder, "attempt_end",
	       json_pack("{s:s, s:i, s:o}", "state", last->state, "exit_code", last->exit_code, "reason",
	                 wlb_json_text(last->reason)));
	if (last->of_refusal)
		wlb_reporter_stop(recorder->reporter, FLUSH_MS);
}

/* Writes the record in a thread and frees `last`, unless the spool makes no progress: the process then ends without the
 * record, and the thread keeps what it uses. */
static void write_last_within_limit(struct last_record *last)
{
	struct wlb_error error;
	struct wlb_recorder *recorder = last->recorder;
	if (wlb_file_thread_start(&last->thread, "the last record", write_last, last, &error) < 0) {
		note_failure(recorder, &error);
	} else if (!wlb_file_thread_join_within(&last->thread, LAST_RECORD_S)) {
		atomic_store(&recorder->stuck, true);
		wlb_fail(&error, "%.500s: the last record has made no progress for %d s: check its file system",
		         recorder->spool, LAST_RECORD_S);
		note_failure(recorder, &error);
		return;
	}
	free(last);
}

static struct last_record *new_last_record(const char *state, int exit_code, const char *reason)
{
	struct last_record *last = calloc(1, sizeof(*last));
	if (last == NULL)
		return NULL;
	snprintf(last->state, sizeof(last->state), "%s", state);
	wlb_text_store(last->reason, sizeof(last->reason), reason);
	last->exit_code = exit_code;
	return last;
}

void wlb_record_end(struct wlb_recorder *recorder, const char *state, int exit_code, const char *reason)
{
	if (records_nothing(recorder) || atomic_flag_test_and_set(&recorder->ended))
		return;
	struct last_record *last = new_last_record(state, exit_code, reason);
	if (last == NULL)
		return;
	last->recorder = recorder;
	write_last_within_limit(last);
}

void wlb_record_refusal(const struct wlb_launch *launch, int exit_code, const char *reason)
{
	struct wlb_error error = {0};
	struct last_record *last = new_last_record("failed", exit_code, reason);
	if (last == NULL)
		return;
	if (wlb_launch_attempt_id(last->attempt_id, sizeof(last->attempt_id), &error) < 0 ||
	    last->attempt_id[0] == '\0') {
		free(last);
		return;
	}
	last->of_refusal = 1;
	last->recorder = &last->own;
	last->own.launch = launch;
	last->own.records = 1;
	write_last_within_limit(last);
}

int wlb_recorder_must_end(const struct wlb_recorder *recorder, const char **reason)
{
	if (recorder->page != NULL)
		return wlb_node_page_must_end(recorder->page, reason);
	return recorder->reporter != NULL && wlb_reporter_must_end(recorder->reporter, reason);
}

void wlb_recorder_stop(struct wlb_recorder *recorder)
{
	if (recorder == NULL || atomic_load(&recorder->stuck))
		return;
	int failures = atomic_load(&recorder->failures);
	if (failures > 1)
		fprintf(stderr, "wlb-worker: rank %d: recording has failed %d times\n", recorder->launch->rank,
		        failures);
	if (recorder->reporter != NULL)
		wlb_reporter_stop(recorder->reporter, FLUSH_MS);
	wlb_node_page_close(recorder->page);
	free(recorder);
}
