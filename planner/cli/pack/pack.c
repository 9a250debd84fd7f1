/* wlb pack: packs a stream of documents and measures how balanced its micro-batches are. */
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include <jansson.h>

#include "common/atomic_file.h"
#include "common/output/printable.h"
#include "planner/batches.h"
#include "planner/cli/commands.h"
#include "planner/cli/pack/draw.h"
#include "planner/cli/pack/report.h"
#include "planner/cli/pack/tally.h"
#include "planner/lengths_file.h"
#include "planner/model_file.h"

struct request {
	struct wlb_packer_options options;
	const char *lengths, *model, *dump, *svg;
	bool json, drain;
};

/* The state of one run of `wlb pack`. */
struct job {
	const struct request *request;
	struct wlb_model model;
	struct wlb_length_list list;
	struct wlb_length_stream stream;
	struct wlb_batches batches;
	struct wlb_packer *packer;
	struct wlb_pack_tally tally;
	struct wlb_atomic_file dump;
	const struct wlb_step *last; /* packed; owned by the packer */
};

/* Processor time, so that other load on the machine makes no difference. */
static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int pack_batch(struct job *job, const struct wlb_span *batch, size_t count, struct wlb_error *error)
{
	double start_s = now_s();
	const struct wlb_step *step = wlb_packer_next(job->packer, batch, count, error);
	double took_s = now_s() - start_s;
	if (step == NULL || wlb_pack_tally_add(&job->tally, step, took_s, error) < 0)
		return -1;
	if (job->request->dump != NULL)
		wlb_pack_dump_step(job->dump.out, step);
	job->last = step;
	return 0;
}

/* Packs all documents that are left: first the documents that fill no batch, then the documents that the packer holds.
 */
static int drain(struct job *job, struct wlb_error *error)
{
	int rc = 0;
	if (job->batches.count > 0)
		rc = pack_batch(job, job->batches.spans, job->batches.count, error);
	while (rc == 0 && job->last->held_tokens > 0)
		rc = pack_batch(job, NULL, 0, error);
	return rc;
}

static int pack_all(struct job *job, struct wlb_error *error)
{
	int got = 0, rc = 0;
	while (rc == 0 && (got = wlb_batches_next(&job->batches, error)) == 1)
		rc = pack_batch(job, job->batches.spans, job->batches.count, error);
	if (rc < 0 || got < 0)
		return -1;
	if (job->last == NULL) {
		rc = pack_batch(job, job->batches.spans, job->batches.count, error);
		job->batches.count = 0;
	}
	if (rc == 0 && job->request->svg != NULL)
		rc = wlb_pack_draw(job->request->svg, job->last, &job->model, job->request->options.seq_length, error);
	return rc == 0 && job->request->drain ? drain(job, error) : rc;
}

static int report(const struct job *job, struct wlb_error *error)
{
	struct wlb_pack_summary summary;
	if (wlb_pack_summarize(&job->tally, &job->list, &job->request->options, &summary, error) < 0)
		return -1;
	if (job->request->json)
		return wlb_json_print_report(wlb_pack_json(&summary), error);
	if (wlb_pack_print(&summary, &job->tally) < 0)
		return wlb_fail(error, "out of memory for the report");
	if (!job->request->drain)
		wlb_pack_print_step(job->last);
	return 0;
}

static int run_job(struct job *job, struct wlb_error *error)
{
	const struct wlb_packer_options *options = &job->request->options;
	job->stream.list = &job->list;
	wlb_batches_init(&job->batches, wlb_length_stream_next, &job->stream, options->seq_length,
	                 options->seq_length * options->micro_batches);
	if (job->request->dump != NULL) {
		if (wlb_atomic_file_open(&job->dump, job->request->dump, error) < 0)
			return -1;
		wlb_pack_dump_header(job->dump.out);
	}
	if (pack_all(job, error) < 0)
		return -1;
	if (job->request->dump != NULL && wlb_atomic_file_commit(&job->dump, error) < 0)
		return -1;
	return report(job, error);
}

/* The input is checked before anything is packed: an error in it exits with WLB_EXIT_USAGE. */
static int pack(void *values, struct wlb_error *error)
{
	struct request *request = values;
	struct job job = {.request = request};
	struct wlb_packer_options defaults;
	wlb_packer_options_init(&defaults, request->options.seq_length, request->options.micro_batches);
	request->options.target_delay_steps = defaults.target_delay_steps;
	int code = WLB_EXIT_USAGE;
	if (wlb_model_file_read(request->model, WLB_MODEL_TO_PLAN, &job.model, error) == 0 &&
	    wlb_length_list_read(request->lengths, &job.list, error) == 0 &&
	    (job.packer = wlb_packer_new(&job.model, &request->options, error)) != NULL)
		code = run_job(&job, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	wlb_atomic_file_drop(&job.dump);
	wlb_pack_tally_free(&job.tally);
	wlb_packer_free(job.packer);
	wlb_batches_free(&job.batches);
	wlb_length_list_free(&job.list);
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(INT64, "seq-length", FIELD(options.seq_length), "N",
                    "the window, in tokens, such as 131072; longer documents are cut at its multiples"),
         .required = true, .min = 1, .max = 1 << 30},
	{WLB_OPTION(INT, "micro-batches", FIELD(options.micro_batches), "N",
                    "micro-batches of a global batch, such as 8; a global batch is at most N windows"),
         .required = true, .min = 1, .max = 1 << 20},
	{WLB_LENGTHS_OPTION(FIELD(lengths)), .required = true},
	{WLB_MODEL_OPTION(FIELD(model))},
	{WLB_OPTION(CHOICE, "packing", FIELD(options.strategy), NULL,
                    "greedy is as WLB-LLM published it; fixed gives equal lengths, with documents cut; plain lays "
                    "documents end to end and cuts them; dynamic delays and cuts none, and wlb shard --cp-sharding "
                    "dynamic says how equal ranks become then"),
         .choices = "balanced|greedy|fixed|plain|dynamic", .initial = "balanced"},
	{WLB_OPTION(REAL, "max-length-ratio", FIELD(options.max_length_ratio), "X",
                    "a micro-batch holds at most X windows (balanced, greedy)"),
         .min = 1, .max = 64, .initial = "1.25"},
	{WLB_OPTION(INT, "max-delay", FIELD(options.max_delay_steps), "STEPS",
                    "no document waits for more steps (balanced)"),
         .max = 1 << 20, .initial = "32"},
	{WLB_OPTION(FLAG, "drain", FIELD(drain), NULL,
                    "continue after the end of the input until every delayed document is packed")},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the measures as a JSON object")},
	{WLB_OPTION(TEXT, "dump", FIELD(dump), "FILE",
                    "a line for each span: step, micro-batch, document, its first token, tokens")},
	{WLB_OPTION(TEXT, "svg", FIELD(svg), "FILE", "a picture of the last full step")},
};

static const struct wlb_option_table table = {
	.command = "wlb pack",
	.about = "Packs documents into micro-batches of equal predicted work, one global batch a step, and says how "
		 "equal they became and how long documents waited for it.",
	.notes = "Without --drain, documents at the end of the stream that fill no whole batch are not packed, unless "
		 "there is no other batch. They and the delayed documents are counted as held (not packed yet).",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_pack = {
	.name = "pack",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = pack,
};
