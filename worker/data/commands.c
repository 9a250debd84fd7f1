#include "worker/data/commands.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/show.h"
#include "worker/data/build.h"
#include "worker/data/info.h"
#include "worker/data/input.h"

enum { LARGEST_DOCUMENT_BYTES = 1 << 30 }; /* its tokens must be counted in an int32 */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static void report_build(const struct wlb_build_options *options, const struct wlb_build_result *r)
{
	char omitted[128] = "";
	if (r->not_text + r->too_short + r->links > 0)
		snprintf(omitted, sizeof(omitted), " (left out: %lld not text, %lld too short, %lld symbolic links)",
		         (long long)r->not_text, (long long)r->too_short, (long long)r->links);
	wlb_show_line(stdout, "%s.bin, %s.idx: %lld documents, %lld tokens from %lld files%s", options->output_prefix,
	              options->output_prefix, (long long)r->documents, (long long)r->tokens, (long long)r->files,
	              omitted);
	if (r->not_text > 0)
		printf("the first that is not text: %s\n", r->first_not_text.message);
	if (r->unreadable > 0)
		fprintf(stderr, "wlb data: %lld could not be read and are left out, the first: %s\n",
		        (long long)r->unreadable, r->first_unreadable.message);
}

struct build_request {
	struct wlb_option_list inputs;
	struct wlb_build_options options;
	const char *tokenizer; /* the only one there is */
};

static int build(void *values, struct wlb_error *error)
{
	struct build_request *request = values;
	struct wlb_build_result result;
	int bad_input;
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is then an error of write(2) */
	request->options.inputs = request->inputs.texts;
	request->options.show_progress = isatty(STDERR_FILENO);
	request->options.source.interrupted = &interrupted;
	request->options.source.largest_bytes = LARGEST_DOCUMENT_BYTES;
	if (wlb_build(&request->options, &result, &bad_input, error) < 0)
		return bad_input ? WLB_EXIT_USAGE : WLB_EXIT_FAILED;
	report_build(&request->options, &result);
	return WLB_EXIT_DONE;
}

#define FIELD(name) offsetof(struct build_request, name)

static const struct wlb_option build_options[] = {
	{WLB_OPTION(LIST, "input", FIELD(inputs), "PATH",
                    "files and directories (searched whole); gzip is decompressed; a text file is one document, JSON "
                    "has one in each object, told by the content; may be given several times"),
         .required = true},
	{WLB_OPTION(LIST, NULL, FIELD(inputs), "PATH...", "more inputs")},
	{WLB_OPTION(TEXT, "output-prefix", FIELD(options.output_prefix), "PREFIX",
                    "where the dataset goes; an old one is replaced"),
         .required = true},
	{WLB_OPTION(
		 TEXT, "json-key", FIELD(options.source.json_key), "KEY",
		 "field of a JSON object that holds the text; a line of JSONL that is not an object with such a text "
		 "is an error"),
         .initial = "text"},
	{WLB_OPTION(INT64, "min-bytes", FIELD(options.min_bytes), "N", "leave out documents of fewer bytes"),
         .max = WLB_OPTION_UNBOUNDED, .initial = "1"},
	{WLB_OPTION(TEXT, "tokenizer", FIELD(tokenizer), NULL,
                    "each byte is a token, 0 to 255, and 256 ends a document: a model needs a vocabulary of 257; the "
                    "only tokenizer of this version"),
         .choices = "bytes", .initial = "bytes"},
};

static const struct wlb_option_table build_table = {
	.command = "wlb data build",
	.about = "Turns text into a Megatron-LM dataset, PREFIX.bin and PREFIX.idx.",
	.options = build_options,
	.count = sizeof(build_options) / sizeof(build_options[0]),
};

static const struct wlb_command build_command = {
	.name = "build",
	.summary = "Turn text into a dataset",
	.options = &build_table,
	.values_bytes = sizeof(struct build_request),
	.run = build,
};

struct info_request {
	const char *prefix;
	bool json;
};

static int info(void *values, struct wlb_error *error)
{
	const struct info_request *request = values;
	struct wlb_dataset *dataset;
	int opened = wlb_dataset_open(request->prefix, &dataset, error);
	if (opened < 0)
		return opened == WLB_UNREADABLE ? WLB_EXIT_FAILED : WLB_EXIT_USAGE;
	struct wlb_info found;
	int rc = wlb_info_compute(dataset, &found, error);
	wlb_dataset_close(dataset);
	if (rc == 0 && request->json)
		rc = wlb_info_print_json(&found, stdout);
	else if (rc == 0)
		wlb_info_print(&found, request->prefix, stdout);
	return rc < 0 ? WLB_EXIT_FAILED : WLB_EXIT_DONE;
}

static const struct wlb_option info_options[] = {
	{WLB_OPTION(TEXT, NULL, offsetof(struct info_request, prefix), "PREFIX",
                    "the dataset PREFIX.bin and PREFIX.idx"),
         .required = true},
	{WLB_OPTION(FLAG, "json", offsetof(struct info_request, json), NULL,
                    "one JSON object instead of text: documents, tokens, length (mean, max, p10, p50, p90, p95, p99, "
                    "p99.9) and histogram, whose bins double in width")},
};

static const struct wlb_option_table info_table = {
	.command = "wlb data info",
	.about = "Shows how many documents a dataset has and how long they are.",
	.options = info_options,
	.count = sizeof(info_options) / sizeof(info_options[0]),
};

static const struct wlb_command info_command = {
	.name = "info",
	.summary = "Show how many documents a dataset has and how long they are",
	.options = &info_table,
	.values_bytes = sizeof(struct info_request),
	.run = info,
};

static const struct wlb_command *const commands[] = {&build_command, &info_command};

const struct wlb_program wlb_data_program = {
	.name = "wlb data",
	.version = "wlb-data " WLB_VERSION,
	.about = "Makes training datasets from text, and shows what is in one.",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};
