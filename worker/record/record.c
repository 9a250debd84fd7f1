#include "worker/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/client/node_page.h"
#include "coordinator/client/reporter.h"
#include "worker/launch/attempt_id.h"
#include "worker/launch/attempt_setup.h"

enum { FLUSH_MS = 300 };

struct wlb_recorder {
	const struct wlb_launch *launch;
	struct wlb_reporter *reporter; /* NULL: this rank reports nothing */
	struct wlb_node_page *page;    /* of this node's agent, which reports; NULL: there is none */
	int records;                   /* 1 on rank 0 */
	atomic_flag ended;
	atomic_flag printed;
};

/* The other ranks of this node, for the reporter to watch. */
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

static void find_spool(char *dir, size_t size)
{
	const char *given = getenv("WLB_SPOOL_DIR"), *submitted = getenv("SLURM_SUBMIT_DIR");
	if (given != NULL)
		snprintf(dir, size, "%s", given);
	else
		snprintf(dir, size, "%s/.wlb", submitted != NULL ? submitted : ".");
}

/* Fills in what all reporters have in common, and starts one. */
static struct wlb_reporter *start_reporter(const struct wlb_launch *launch, struct wlb_reporter_options *options,
                                           struct wlb_error *error)
{
	char spool[4096];
	struct wlb_client_config config;
	find_spool(spool, sizeof(spool));
	int configured = wlb_client_config_load(&config, error) == 0;
	if (!configured && launch->rank == 0)
		fprintf(stderr, "wlb-worker: %s; what is recorded waits in %s\n", error->message, spool);
	options->run_id = getenv("WLB_RUN_ID");
	options->source = launch->rank == 0 ? "rank0" : NULL;
	options->spool_dir = spool;
	options->rank = launch->rank;
	return wlb_reporter_start(configured ? &config : NULL, options, error);
}

/* The reporter of this node: it watches the other ranks here. */
static struct wlb_reporter *start_node_reporter(struct wlb_launch *launch, const struct wlb_train_plan *plan,
                                                struct wlb_error *error)
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
		reporter = start_reporter(launch, &options, error);
	}
	free(peer_ranks);
	free(peer_pids);
	return reporter;
}

/* Prints the first failure of recording; the run continues. */
static void print_once(struct wlb_recorder *recorder, const struct wlb_error *error)
{
	if (!atomic_flag_test_and_set(&recorder->printed))
		fprintf(stderr, "wlb-worker: rank %d on %s: not everything is recorded: %s\n", recorder->launch->rank,
		        wlb_launch_node(recorder->launch, recorder->launch->rank), error->message);
}

/* Records and releases `data`. */
static void record(struct wlb_recorder *recorder, const char *type, json_t *data)
{
	struct wlb_error error = {0};
	char *text = data != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
	json_decref(data);
	int rc = text != NULL ? wlb_reporter_record(recorder->reporter, type, text, &error)
	                      : wlb_fail(&error, "out of memory for a record of type %s", type);
	if (rc < 0)
		print_once(recorder, &error);
	free(text);
}

static int silent(const struct wlb_recorder *recorder)
{
	return recorder->reporter == NULL || !recorder->records;
}

static json_t *rank_map(const struct wlb_launch *launch)
{
	json_t *map = json_array();
	int *seen = calloc((size_t)launch->node_count, sizeof(*seen)); /* ranks of each node so far */
	for (int rank = 0; seen != NULL && rank < launch->size; rank++)
		json_array_append_new(map,
		                      json_pack("{s:i, s:s, s:i}", "rank", rank, "node", wlb_launch_node(launch, rank),
		                                "local_rank", seen[launch->node_of[rank]]++));
	free(seen);
	return map;
}

static json_t *model_json(const struct wlb_model *m)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:I}", "model_type", "llama",
	                 "hidden_size", (json_int_t)m->hidden_size, "intermediate_size",
	                 (json_int_t)m->intermediate_size, "num_hidden_layers", (json_int_t)m->num_hidden_layers,
	                 "num_attention_heads", (json_int_t)m->num_attention_heads, "num_key_value_heads",
	                 (json_int_t)m->num_key_value_heads, "head_dim", (json_int_t)m->head_dim, "vocab_size",
	                 (json_int_t)m->vocab_size, "max_position_embeddings", (json_int_t)m->max_position_embeddings,
	                 "rope_theta", m->rope_theta, "rms_norm_eps", m->rms_norm_eps, "tie_word_embeddings",
	                 m->tie_word_embeddings, "parameters", (json_int_t)wlb_model_parameters(m));
}

static void record_attempt(struct wlb_recorder *recorder, const struct wlb_train_plan *plan,
                           const struct wlb_train_options *options)
{
	if (silent(recorder))
		return;
	int resumed = plan->checkpoint[0] != '\0';
	json_t *layout = json_pack("{s:i, s:i, s:i, s:i}", "tp", plan->split.layout.tp, "cp", plan->split.layout.cp,
	                           "pp", plan->split.layout.pp, "dp", plan->split.layout.dp);
	record(recorder, "attempt",
	       json_pack("{s:o, s:i, s:o, s:o, s:I, s:I, s:I, s:s, s:s, s:I, s:s?}", "layout", layout, "world_size",
	                 recorder->launch->size, "rank_map", rank_map(recorder->launch), "model",
	                 model_json(&plan->model), "seq_length", (json_int_t)options->seq_length, "global_batch_size",
	                 (json_int_t)options->global_batch_size, "train_iters", (json_int_t)options->train_iters,
	                 "dtype", wlb_dtype_name((enum wlb_dtype)options->dtype), "device",
	                 options->device == WLB_DEVICE_CUDA ? "cuda" : "cpu", "resumed_step",
	                 (json_int_t)(resumed ? plan->facts.step : 0), "checkpoint",
	                 resumed ? plan->checkpoint : NULL));
}

/* The agent of this node reports for all its ranks, where the plugin started one. */
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
	return recorder->page != NULL ? start_reporter(launch, &records_only, error)
	                              : start_node_reporter(launch, plan, error);
}

struct wlb_recorder *wlb_recorder_start(struct wlb_launch *launch, const struct wlb_train_plan *plan,
                                        const struct wlb_train_options *options, json_t *why, struct wlb_error *error)
{
	struct wlb_recorder *recorder = calloc(1, sizeof(*recorder));
	if (recorder == NULL) {
		wlb_fail(error, "out of memory for the recorder");
		return NULL;
	}
	recorder->launch = launch;
	recorder->records = launch->rank == 0;
	atomic_flag_clear(&recorder->ended);
	atomic_flag_clear(&recorder->printed);
	if (plan->attempt_id[0] == '\0')
		return recorder;
	find_page(recorder, plan->attempt_id);
	if (recorder->page != NULL ? launch->rank != 0 : launch->local_rank != 0)
		return recorder;
	struct wlb_error reason = {0};
	recorder->reporter = start_own_reporter(recorder, launch, plan, &reason);
	if (recorder->reporter == NULL)
		print_once(recorder, &reason);
	record_attempt(recorder, plan, options);
	if (why != NULL && !silent(recorder))
		record(recorder, "plan", json_incref(why));
	return recorder;
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
	struct wlb_error error = {0};
	if (!silent(recorder) && wlb_reporter_record(recorder->reporter, "step", json, &error) < 0)
		print_once(recorder, &error);
}

void wlb_record_checkpoint(struct wlb_recorder *recorder, int64_t step, const char *path, int64_t bytes,
                           double duration_s)
{
	if (!silent(recorder))
		record(recorder, "checkpoint",
		       json_pack("{s:I, s:s, s:I, s:f}", "step", (json_int_t)step, "path", path, "bytes",
		                 (json_int_t)bytes, "duration_s", duration_s));
}

void wlb_record_end(struct wlb_recorder *recorder, const char *state, int exit_code, const char *reason)
{
	if (!silent(recorder) && !atomic_flag_test_and_set(&recorder->ended))
		record(recorder, "attempt_end",
		       json_pack("{s:s, s:i, s:s}", "state", state, "exit_code", exit_code, "reason", reason));
}

void wlb_record_refusal(const struct wlb_launch *launch, int exit_code, const char *reason)
{
	char id[64];
	struct wlb_error error = {0};
	if (wlb_launch_attempt_id(id, sizeof(id), &error) < 0 || id[0] == '\0')
		return;
	/* Without a node: the ranks here end at once, and must not be reported as lost. */
	struct wlb_reporter_options options = {.attempt_id = id};
	struct wlb_recorder recorder = {.launch = launch, .records = 1};
	recorder.reporter = start_reporter(launch, &options, &error);
	if (recorder.reporter == NULL) {
		print_once(&recorder, &error);
		return;
	}
	wlb_record_end(&recorder, "failed", exit_code, reason);
	wlb_reporter_stop(recorder.reporter, FLUSH_MS);
}

int wlb_recorder_must_end(const struct wlb_recorder *recorder, const char **reason)
{
	if (recorder->page != NULL)
		return wlb_node_page_must_end(recorder->page, reason);
	return recorder->reporter != NULL && wlb_reporter_must_end(recorder->reporter, reason);
}

void wlb_recorder_stop(struct wlb_recorder *recorder)
{
	if (recorder == NULL)
		return;
	if (recorder->reporter != NULL)
		wlb_reporter_stop(recorder->reporter, FLUSH_MS);
	wlb_node_page_close(recorder->page);
	free(recorder);
}
