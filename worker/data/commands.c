#include "worker/data/commands.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/show.h"
#include "worker/data/build.h"
#include "worker/data/facts.h"
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
	char omitted[160] = "";
	if (r->omitted.not_text + r->omitted.too_short + r->omitted.no_text + r->links > 0)
		snprintf(omitted, sizeof(omitted),
		         " (left out: %lld not text, %lld too short, %lld null, %lld symbolic links)",
		         (long long)r->omitted.not_text, (long long)r->omitted.too_short, (long long)r->omitted.no_text,
		         (long long)r->links);
	wlb_show_line(stdout, "%s.bin, %s.idx: %lld documents, %lld tokens from %lld files%s", options->output_prefix,
	              options->output_prefix, (long long)r->documents, (long long)r->tokens, (long long)r->files,
	              omitted);
	if (r->resumed_documents > 0)
		printf("an earlier build had left %lld of the documents\n", (long long)r->resumed_documents);
	if (r->omitted.not_text > 0)
		printf("the first that is not text: %s\n", r->first.not_text.message);
	if (r->omitted.no_text > 0)
		printf("the first that is null: %s\n", r->first.no_text.message);
	if (r->refused > 0)
		wlb_show_line(stdout, "%lld conversations are refused and are empty documents, the first: %s",
		              (long long)r->refused, r->first.refused.message);
	if (r->omitted.unreadable > 0)
		fprintf(stderr, "wlb data: %lld could not be read and are left out, the first: %s\n",
		        (long long)r->omitted.unreadable, r->first.unreadable.message);
}

struct build_request {
	struct wlb_option_list inputs;
	struct wlb_build_options options;
	const char *tokenizer; /* "bytes", or a path */
	bool strict;
	bool messages;
};

/* Returns how many processors this process may use, and at most as many processes as are allowed. */
static int count_processors(void)
{
	cpu_set_t allowed;
	int count = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
	return count < WLB_ENCODER_MOST_WORKERS ? count : WLB_ENCODER_MOST_WORKERS;
}

/* Takes what the documents are. */
static int check_messages(struct build_request *request, struct wlb_error *error)
{
	struct wlb_encoder_options *o = &request->options.encoder;
	struct wlb_source_options *source = &request->options.source;
	if (source->json_key == NULL)
		source->json_key = request->messages ? "messages" : "text";
	if (!request->messages)
		return o->tokenizer.chat_template != NULL ? wlb_fail(error, "--chat-template is for --messages") : 0;
	if (o->tokenizer.path == NULL)
		return wlb_fail(error, "--messages needs a tokenizer with a chat template: name it by --tokenizer");
	if (o->append_eod || o->prepend_bos || o->split_sentences || request->options.min_bytes > 0)
		return wlb_fail(error,
		                "--messages excludes --append-eod, --prepend-bos, --split-sentences and --min-bytes: "
		                "the chat template adds all special tokens, and a conversation is one sequence");
	o->tokenizer.messages_key = source->json_key;
	source->takes_messages = 1;
	source->takes_sentences = 0;
	return 0;
}

/* Takes the tokenizer, and refuses options that it does not have. */
static int check_tokenizer(struct build_request *request, struct wlb_error *error)
{
	struct wlb_encoder_options *o = &request->options.encoder;
	if (strcmp(request->tokenizer, "bytes") != 0) {
		o->tokenizer.path = request->tokenizer;
		request->options.source.takes_sentences = 1;
		return 0;
	}
	request->options.min_bytes += request->options.min_bytes == 0;
	if (o->prepend_bos || o->split_sentences || o->tokenizer.eod_token != NULL || o->tokenizer.bos_token != NULL)
		return wlb_fail(error,
		                "--prepend-bos, --split-sentences, --eod-token and --bos-token are for a "
		                "tokenizer: with --tokenizer bytes 256 ends each document, and no token begins one");
	return 0;
}

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
	signal(SIGPIPE, SIG_IGN); /* a tokenizer that ends is then an error of write(2) */
	if (check_tokenizer(request, error) < 0 || check_messages(request, error) < 0)
		return WLB_EXIT_USAGE;
	request->options.inputs = request->inputs.texts;
	if (request->options.encoder.workers == 0)
		request->options.encoder.workers = count_processors();
	request->options.strict = request->strict;
	request->options.show_progress = isatty(STDERR_FILENO);
	request->options.source.interrupted = &interrupted;
	request->options.source.programs =
		(struct wlb_converter_programs){"zstd", request->options.encoder.tokenizer.python};
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
	{WLB_OPTION(FLAG, "strict", FIELD(strict), NULL,
                    "a text that is null or a conversation that is refused ends the build; without this option they "
                    "are counted, and "
                    "the one is left out, the other an empty document")},
	{WLB_OPTION(
		TEXT, "json-key", FIELD(options.source.json_key), "KEY",
		"field of a JSON object that holds the text, or with --messages the conversation: 'text' or 'messages' "
		"where it is not given; a line of JSONL that is not an object with such a field is an error, unless "
		"the field is null")},
	{WLB_OPTION(
		FLAG, "messages", FIELD(messages), NULL,
		"each JSON object has a conversation, an array of objects with role and content, and is tokenized by "
		"the chat template of the tokenizer's folder; only tokens of the assistant's answers count in the "
		"loss then: PREFIX.loss_mask says which")},
	{WLB_OPTION(TEXT, "chat-template", FIELD(options.encoder.tokenizer.chat_template), "FILE",
                    "the chat template of --messages, instead of that in the folder; the answers are what {% "
                    "generation %} encloses in it, where it has that tag")},
	{WLB_OPTION(INT64, "min-bytes", FIELD(options.min_bytes), "N",
                    "leave out documents of fewer bytes; with --tokenizer bytes those of none are always left out"),
         .max = WLB_OPTION_UNBOUNDED},
	{WLB_OPTION(TEXT, "tokenizer", FIELD(tokenizer), "bytes|PATH",
                    "PATH: a tokenizer.json of Hugging Face, a tekken.json of Mistral, a model of SentencePiece, or a "
                    "folder with one, the first of them; bytes: each byte is a token, 0 to 255, and 256 ends a "
                    "document: a model needs a "
                    "vocabulary of 257"),
         .initial = "bytes", .heading = "Tokenizer"},
	{WLB_OPTION(
		FLAG, "append-eod", FIELD(options.encoder.append_eod), NULL,
		"end each document that has tokens by the tokenizer's end-of-text token; with bytes 256 always ends "
		"one")},
	{WLB_OPTION(TEXT, "eod-token", FIELD(options.encoder.tokenizer.eod_token), "TOKEN",
                    "the token of --append-eod, as the vocabulary spells it: eos_token of tokenizer_config.json beside "
                    "tokenizer.json, or that of the other formats, where it is not given")},
	{WLB_OPTION(FLAG, "prepend-bos", FIELD(options.encoder.prepend_bos), NULL,
                    "begin each document that has tokens by the tokenizer's beginning-of-text token; no special token "
                    "is added without this option and --append-eod")},
	{WLB_OPTION(TEXT, "bos-token", FIELD(options.encoder.tokenizer.bos_token), "TOKEN",
                    "the token of --prepend-bos; from where --eod-token is, bos_token, where it is not given")},
	{WLB_OPTION(FLAG, "split-sentences", FIELD(options.encoder.split_sentences), NULL,
                    "each line of a document is a sentence: tokenized by itself, and a sequence of the index; a list "
                    "of strings in JSON is sentences without this option")},
	{WLB_OPTION(INT, "workers", FIELD(options.encoder.workers), "N",
                    "processes that tokenize; one for each processor that the command may use, where it is not given"),
         .min = 1, .max = WLB_ENCODER_MOST_WORKERS},
	{WLB_OPTION(
		 TEXT, "python", FIELD(options.encoder.tokenizer.python), "PROGRAM",
		 "the Python in which the packages tokenizers, tiktoken, sentencepiece, jinja2 and pyarrow are: jinja2 runs "
		 "chat templates, and the last reads Parquet"),
         .initial = "python3"},
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
	json_t *facts = wlb_facts_read(request->prefix);
	int rc = wlb_info_compute(dataset, &found, error);
	wlb_dataset_close(dataset);
	if (rc == 0 && request->json)
		rc = wlb_info_print_json(&found, facts, stdout);
	else if (rc == 0)
		wlb_info_print(&found, request->prefix, facts, stdout);
	json_decref(facts);
	return rc < 0 ? WLB_EXIT_FAILED : WLB_EXIT_DONE;
}

static const struct wlb_option info_options[] = {
	{WLB_OPTION(TEXT, NULL, offsetof(struct info_request, prefix), "PREFIX",
                    "the dataset PREFIX.bin and PREFIX.idx"),
         .required = true},
	{WLB_OPTION(FLAG, "json", offsetof(struct info_request, json), NULL,
                    "one JSON object instead of text: documents, tokens, length (mean, max, p10, p50, p90, p95, p99, "
                    "p99.9), histogram, whose bins double in width, and facts: what PREFIX.facts.json says")},
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
