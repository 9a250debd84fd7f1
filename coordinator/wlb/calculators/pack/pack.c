/* wlb pack: how equal the micro-batches of a stream of documents get. */
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include <jansson.h>

#include "common/atomic_file.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/calculators/lengths_file.h"
#include "coordinator/wlb/calculators/model_file.h"
#include "coordinator/wlb/calculators/pack/batches.h"
#include "coordinator/wlb/calculators/pack/draw.h"
#include "coordinator/wlb/calculators/pack/report.h"
#include "coordinator/wlb/calculators/pack/tally.h"
#include "coordinator/wlb/command.h"

static const char help[] =
	"Usage: wlb pack --seq-length N --micro-batches N --lengths FROM [OPTIONS]\n\n"
	"Packs documents into micro-batches of equal predicted work, one global batch a step, and says how equal they\n"
	"became and how long documents waited for it.\n\n"
	"  --seq-length N          the window, in tokens; longer documents are cut at its multiples\n"
	"  --micro-batches N       of a global batch, which is at most N windows\n" WLB_LENGTHS_HELP WLB_MODEL_HELP
	"  --strategy S            balanced (default), greedy (as WLB-LLM published it), fixed or plain\n"
	"  --max-length-ratio X    a micro-batch holds at most X windows (default 1.25)\n"
	"  --max-delay STEPS       balanced: no document waits for more steps (default 32)\n"
	"  --drain                 go on with what is held, and the last documents that fill no batch, until all is "
	"packed\n"
	"  --json                  the measures as a JSON object\n"
	"  --dump FILE             a line for each span: step, micro-batch, document, its first token, tokens\n"
	"  --svg FILE              a picture of the last full step\n\n"
	"Documents that fill no whole batch at the end of the stream are not packed without --drain, but when there "
	"is\n"
	"no other batch. They and what waits count as held.\n";

struct request {
	struct wlb_packer_options options;
	const char *from, *model, *dump, *svg;
	bool json, drain;
};

/* One stream being packed. */
struct job {
	const struct request *request;
	struct wlb_model model;
	struct wlb_length_list list;
	struct wlb_length_stream stream;
	struct wlb_batches batches;
	struct wlb_packer *packer;
	struct wlb_pack_tally tally;
	struct wlb_aside dump;
	const struct wlb_step *last; /* packed; owned by the packer */
};

/* Of the processor, so that a busy machine makes no difference. */
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

/* All that is left: documents that fill no batch, then what the packer holds. */
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
	if (!job->request->json) {
		if (wlb_pack_print(&summary, &job->tally) < 0)
			return wlb_fail(error, "no memory for the report");
		if (!job->request->drain)
			wlb_pack_print_step(job->last);
		return 0;
	}
	json_t *object = wlb_pack_json(&summary);
	int rc = object != NULL ? wlb_api_print(object) : -1;
	json_decref(object);
	return rc == 0 ? 0 : wlb_fail(error, "no memory for the report");
}

static int run_job(struct job *job, struct wlb_error *error)
{
	const struct wlb_packer_options *options = &job->request->options;
	job->stream.list = &job->list;
	wlb_batches_init(&job->batches, wlb_length_stream_next, &job->stream, options->seq_length,
	                 options->seq_length * options->micro_batches);
	if (job->request->dump != NULL) {
		if (wlb_aside_open(&job->dump, job->request->dump, error) < 0)
			return -1;
		wlb_pack_dump_header(job->dump.out);
	}
	if (pack_all(job, error) < 0)
		return -1;
	if (job->request->dump != NULL && wlb_aside_commit(&job->dump, error) < 0)
		return -1;
	return report(job, error);
}

/* The input is judged before anything is packed: what is wrong with it is the user's to put right. */
static int pack(const struct wlb_command *self, const struct request *request)
{
	struct job job = {.request = request};
	struct wlb_error error;
	int code = WLB_EXIT_USAGE;
	if (wlb_model_file_read(request->model, &job.model, &error) == 0 &&
	    wlb_length_list_read(request->from, &job.list, &error) == 0 &&
	    (job.packer = wlb_packer_new(&job.model, &request->options, &error)) != NULL)
		code = run_job(&job, &error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	if (code != WLB_EXIT_DONE)
		wlb_command_fail(self, code, error.message);
	wlb_aside_drop(&job.dump);
	wlb_pack_tally_free(&job.tally);
	wlb_packer_free(job.packer);
	wlb_batches_free(&job.batches);
	wlb_length_list_free(&job.list);
	return code;
}

enum { OPTION_SEQ_LENGTH = 256, OPTION_MICRO_BATCHES, OPTION_RATIO, OPTION_DELAY };

static int read_option(struct request *request, int option, struct wlb_error *error)
{
	struct wlb_packer_options *options = &request->options;
	int number = 0, rc = 0;
	switch (option) {
	case OPTION_SEQ_LENGTH:
		rc = wlb_command_number("--seq-length", optarg, 1, 1 << 30, &number, error);
		options->seq_length = number;
		return rc;
	case OPTION_MICRO_BATCHES:
		return wlb_command_number("--micro-batches", optarg, 1, 1 << 20, &options->micro_batches, error);
	case OPTION_RATIO:
		return wlb_command_real("--max-length-ratio", optarg, 1.0, 64.0, &options->max_length_ratio, error);
	case OPTION_DELAY:
		return wlb_command_number("--max-delay", optarg, 0, 1 << 20, &options->max_delay_steps, error);
	case 'l':
		request->from = optarg;
		return 0;
	case 'm':
		request->model = optarg;
		return 0;
	case 's':
		return wlb_strategy_parse(optarg, &options->strategy, error) < 0 ? wlb_fail_in(error, "--strategy") : 0;
	case 'D':
		request->dump = optarg;
		return 0;
	case 'v':
		request->svg = optarg;
		return 0;
	case 'j':
		request->json = true;
		return 0;
	default:
		request->drain = true;
		return 0;
	}
}

static int check_request(const struct request *request, struct wlb_error *error)
{
	if (request->options.seq_length == 0)
		return wlb_fail(error, "--seq-length is needed: tokens of the window, such as 131072");
	if (request->options.micro_batches == 0)
		return wlb_fail(error, "--micro-batches is needed: those of a global batch, such as 8");
	if (request->from == NULL)
		return wlb_fail(error, "--lengths is needed: a file of one length a line, '-', or gen:skewed");
	return 0;
}

static int pack_main(const struct wlb_command *self, int argc, char **argv)
{
	static const struct option options[] = {{"seq-length", required_argument, NULL, OPTION_SEQ_LENGTH},
	                                        {"micro-batches", required_argument, NULL, OPTION_MICRO_BATCHES},
	                                        {"lengths", required_argument, NULL, 'l'},
	                                        {"model", required_argument, NULL, 'm'},
	                                        {"strategy", required_argument, NULL, 's'},
	                                        {"max-length-ratio", required_argument, NULL, OPTION_RATIO},
	                                        {"max-delay", required_argument, NULL, OPTION_DELAY},
	                                        {"drain", no_argument, NULL, 'd'},
	                                        {"json", no_argument, NULL, 'j'},
	                                        {"dump", required_argument, NULL, 'D'},
	                                        {"svg", required_argument, NULL, 'v'},
	                                        {"help", no_argument, NULL, WLB_OPTION_HELP},
	                                        {0}};
	struct request request = {0};
	struct wlb_error error;
	int option, rc = 0;
	wlb_packer_options_init(&request.options, 0, 0);
	while (rc == 0 && (option = wlb_command_option(self, argc, argv, options)) != -1) {
		if (option == WLB_OPTION_HELP || option == WLB_OPTION_WRONG)
			return option == WLB_OPTION_HELP ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
		rc = read_option(&request, option, &error);
	}
	if (rc == 0 && optind < argc)
		rc = wlb_fail(&error, "'%.60s': takes no argument; lengths come with --lengths", argv[optind]);
	if (rc == 0)
		rc = check_request(&request, &error);
	if (rc != 0)
		return wlb_command_fail(self, WLB_EXIT_USAGE, error.message);
	return pack(self, &request);
}

const struct wlb_command wlb_command_pack = {
	.name = "pack",
	.summary = "Pack documents into micro-batches of equal work",
	.help = help,
	.main = pack_main,
};
