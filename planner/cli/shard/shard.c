/* wlb shard: shards micro-batches and measures how balanced the ranks of context parallelism are. */
#include <stdlib.h>
#include <string.h>

#include "common/atomic_file.h"
#include "common/output/printable.h"
#include "planner/batches.h"
#include "planner/cli/commands.h"
#include "planner/cli/shard/report.h"
#include "planner/lengths_file.h"
#include "planner/machine.h"
#include "planner/model_file.h"

enum { RANKS_MAX = 65536, MICRO_BATCH_TOKENS_MAX = 1 << 30 };

struct request {
	int cp, dp, seq_length;
	const char *strategy;
	enum wlb_sharding sharding; /* the one of that name; not read if dynamic */
	bool dynamic;
	const char *lengths, *model, *gpu, *dump;
	bool json;
};

struct job {
	const struct request *request;
	struct wlb_model model;
	struct wlb_kernel_time time;
	struct wlb_length_list list;
	struct wlb_length_stream stream;
	struct wlb_batches batches;
	int64_t *tokens;           /* of each document of the micro-batch */
	struct wlb_placer *placer; /* dynamic */
	struct wlb_shards shards;
	struct wlb_shard_summary summary;
	struct wlb_atomic_file dump;
};

static int reserve(struct job *job, size_t documents, struct wlb_error *error)
{
	int64_t *tokens = reallocarray(job->tokens, documents, sizeof(*tokens));
	if (tokens != NULL)
		job->tokens = tokens;
	if (tokens == NULL)
		return wlb_fail(error, "out of memory for a micro-batch of %zu documents", documents);
	return 0;
}

static double document_flops(const void *job, int64_t tokens)
{
	return wlb_cost_document(&((const struct job *)job)->model, tokens);
}

/* Ranks have the space for tokens that wlb-worker gives them, with micro-batches of a window for each replica, and for
 * any number of keys. */
static int make_placer(struct job *job, int64_t window, struct wlb_error *error)
{
	int cp = job->request->cp;
	int64_t least = wlb_dynamic_cp_max_tokens(job->request->dp, window, 1), usual = window + window / 4;
	const struct wlb_rank_space space = {
		.ranks = job->summary.ranks,
		.key_ranks = job->summary.ranks,
		.rank_tokens = ((usual > least ? usual : least) + cp - 1) / cp,
	};
	job->placer = wlb_placer_new(&space, document_flops, job, error);
	return job->placer != NULL ? 0 : -1;
}

static int assign_ranks(struct job *job, struct wlb_error *error)
{
	size_t count = job->batches.count;
	struct wlb_placement placement;
	if (wlb_placer_place(job->placer, job->tokens, count, 1, &placement, error) != 0)
		return -1;
	return wlb_shard_places(job->tokens, placement.places, count, job->summary.ranks, 0, &job->shards, error);
}

static int shard_batch(struct job *job, struct wlb_error *error)
{
	const struct wlb_batches *batch = &job->batches;
	const struct request *request = job->request;
	if (reserve(job, batch->count, error) < 0)
		return -1;
	for (size_t i = 0; i < batch->count; i++)
		job->tokens[i] = batch->spans[i].tokens;
	int rc = request->dynamic ? assign_ranks(job, error)
	                          : wlb_shard(request->sharding, &job->time, job->tokens, batch->count, request->cp,
	                                      &job->shards, error);
	if (rc < 0)
		return -1;
	if (request->dump != NULL)
		wlb_shard_dump(job->dump.out, job->summary.micro_batches, &job->shards, batch->spans);
	wlb_shard_summary_add(&job->summary, &job->shards, &job->model, &job->time);
	return 0;
}

static int shard_all(struct job *job, struct wlb_error *error)
{
	int got = 0, rc = 0;
	while (rc == 0 && (got = wlb_batches_next(&job->batches, error)) == 1)
		rc = shard_batch(job, error);
	if (rc < 0 || got < 0)
		return -1;
	return job->batches.count > 0 ? shard_batch(job, error) : 0;
}

static int report(const struct job *job, struct wlb_error *error)
{
	if (job->request->json)
		return wlb_json_print_report(wlb_shard_json(&job->summary), error);
	if (wlb_shard_print(&job->summary) < 0)
		return wlb_fail(error, "out of memory for the report");
	wlb_shard_print_ranks(&job->shards, &job->model);
	return 0;
}

static int run_job(struct job *job, struct wlb_error *error)
{
	const struct request *request = job->request;
	int64_t window = request->seq_length > 0 ? request->seq_length : job->list.total_tokens;
	job->stream.list = &job->list;
	wlb_batches_init(&job->batches, wlb_length_stream_next, &job->stream, window, window * request->dp);
	job->summary = (struct wlb_shard_summary){
		.strategy = request->strategy,
		.ranks = request->cp * request->dp,
		.documents = (int64_t)job->list.count,
	};
	if (request->dynamic && make_placer(job, window, error) < 0)
		return -1;
	if (request->dump != NULL) {
		if (wlb_atomic_file_open(&job->dump, request->dump, error) < 0)
			return -1;
		wlb_shard_dump_header(job->dump.out);
	}
	if (shard_all(job, error) < 0)
		return -1;
	if (request->dump != NULL && wlb_atomic_file_commit(&job->dump, error) < 0)
		return -1;
	return report(job, error);
}

/* Sets the times of the GPU's kernels from the speeds in its machine file. */
static int read_kernel_time(struct job *job, struct wlb_error *error)
{
	struct wlb_machine machine;
	if (wlb_machine_file_read(job->request->gpu, &machine, error) < 0)
		return wlb_fail_in(error, "--machine");
	wlb_kernel_time_init(&job->time, &job->model, 1, machine.peak_flops * machine.attention_efficiency,
	                     machine.peak_flops * machine.gemm_efficiency);
	return 0;
}

static int check_window(const struct job *job, struct wlb_error *error)
{
	if ((int64_t)job->request->seq_length * job->request->dp > MICRO_BATCH_TOKENS_MAX)
		return wlb_fail(error, "--seq-length %d x --dp %d: a micro-batch has at most %d tokens",
		                job->request->seq_length, job->request->dp, MICRO_BATCH_TOKENS_MAX);
	if (job->request->seq_length == 0 && job->list.total_tokens > MICRO_BATCH_TOKENS_MAX)
		return wlb_fail(error,
		                "--lengths %s: %lld tokens, and a micro-batch has at most %d; cut the stream into "
		                "micro-batches with --seq-length",
		                job->request->lengths, (long long)job->list.total_tokens, MICRO_BATCH_TOKENS_MAX);
	return 0;
}

/* Checks rules that the rows of the table do not state. */
static int check_request(struct request *request, struct wlb_error *error)
{
	int64_t ranks = (int64_t)request->cp * request->dp;
	request->dynamic = strcmp(request->strategy, "dynamic") == 0;
	if (!request->dynamic && request->dp != 1)
		return wlb_fail(error, "--dp %d: is for --cp-sharding dynamic only; the others shard over cp ranks",
		                request->dp);
	if (ranks > RANKS_MAX)
		return wlb_fail(error, "--cp %d x --dp %d: must be at most %d ranks", request->cp, request->dp,
		                RANKS_MAX);
	return request->dynamic ? 0 : wlb_sharding_parse(request->strategy, &request->sharding, error);
}

/* The input is checked before anything is done: an error in it exits with WLB_EXIT_USAGE. */
static int shard(void *values, struct wlb_error *error)
{
	struct request *request = values;
	struct job job = {.request = request};
	int code = WLB_EXIT_USAGE;
	if (check_request(request, error) == 0 &&
	    wlb_model_file_read(request->model, WLB_MODEL_TO_PLAN, &job.model, error) == 0 &&
	    read_kernel_time(&job, error) == 0 && wlb_length_list_read(request->lengths, &job.list, error) == 0 &&
	    check_window(&job, error) == 0)
		code = run_job(&job, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	wlb_atomic_file_drop(&job.dump);
	wlb_shards_free(&job.shards);
	free(job.tokens);
	wlb_placer_free(job.placer);
	wlb_batches_free(&job.batches);
	wlb_length_list_free(&job.list);
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(INT, "cp", FIELD(cp), "C", "ranks of context parallelism, such as 4"), .required = true, .min = 1,
         .max = RANKS_MAX},
	{WLB_LENGTHS_OPTION(FIELD(lengths)), .required = true},
	{WLB_OPTION(INT, "seq-length", FIELD(seq_length), "N",
                    "micro-batches of at most N tokens, longer documents cut at its multiples; without it all "
                    "documents are one micro-batch"),
         .min = 1, .max = MICRO_BATCH_TOKENS_MAX},
	{WLB_OPTION(TEXT, "cp-sharding", FIELD(strategy), NULL,
                    "adaptive: for each micro-batch the one whose attention takes less time on --machine; dynamic: "
                    "each document on 1, 2, 4 ... of cp x dp ranks"),
         .choices = "per-document|per-sequence|adaptive|dynamic", .initial = "per-document"},
	{WLB_OPTION(INT, "dp", FIELD(dp), "D", "with dynamic: groups of cp ranks, each with a window of its own"),
         .min = 1, .max = RANKS_MAX, .initial = "1"},
	{WLB_MODEL_OPTION(FIELD(model))},
	{WLB_MACHINE_OPTION(FIELD(gpu))},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the measures as a JSON object")},
	{WLB_OPTION(TEXT, "dump", FIELD(dump), "FILE",
                    "a line for each shard: micro_batch rank document_index start length key_start keys; the tokens "
                    "[start, start + length) of the document attend to the keys [key_start, key_start + keys) of the "
                    "micro-batch")},
};

static const struct wlb_option_table table = {
	.command = "wlb shard",
	.about = "Splits micro-batches over the ranks of context parallelism and says how equal their work and tokens "
		 "become.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_shard = {
	.name = "shard",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = shard,
};
