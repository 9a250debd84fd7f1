/* wlb-data: makes datasets and tells what is in them. Reached as `wlb data`. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/data/build.h"
#include "worker/data/info.h"

enum { FAILED = 1, BAD_INPUT = 2 };

static const char usage[] = "Usage: wlb data build --input PATH... --output-prefix PREFIX [options]\n"
			    "       wlb data info PREFIX [--json]\n"
			    "\n"
			    "build  turns text into a Megatron-LM dataset, PREFIX.bin and PREFIX.idx\n"
			    "  --input PATH...         files and directories (searched whole); gzip is decompressed;\n"
			    "                          a text file is one document, a *.jsonl file has one a line\n"
			    "  --output-prefix PREFIX  where the dataset goes; an old one is replaced\n"
			    "  --json-key KEY          field of a JSONL line that holds the text (default: text)\n"
			    "  --min-bytes N           leave out shorter documents (default: 1)\n"
			    "  --tokenizer bytes       each byte a token, 256 ends a document; the only one (default)\n"
			    "info   shows how many documents a dataset has and how long they are\n"
			    "  --json                  for programs\n";

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static int complain(const char *message)
{
	fprintf(stderr, "wlb data: %s\n", message);
	return BAD_INPUT;
}

/* --min-bytes; -1 when it is no whole number of at least 0. */
static int64_t parse_bytes(const char *text)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	return errno != 0 || end == text || *end != '\0' || value < 0 ? -1 : value;
}

static void report_build(const struct wlb_build_options *options, const struct wlb_build_result *r)
{
	printf("%s.bin, %s.idx: %lld documents, %lld tokens from %lld files", options->output_prefix,
	       options->output_prefix, (long long)r->documents, (long long)r->tokens, (long long)r->files);
	if (r->not_text + r->too_short > 0)
		printf(" (left out: %lld not text, %lld too short)", (long long)r->not_text, (long long)r->too_short);
	putchar('\n');
	if (r->unreadable > 0)
		fprintf(stderr, "wlb data: %lld could not be read and are left out, the first: %s\n",
		        (long long)r->unreadable, r->first_unreadable.message);
}

static int run_build(const struct wlb_build_options *options)
{
	struct wlb_build_result result;
	struct wlb_error error;
	int bad_input;
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is then an error of write(2) */
	if (wlb_build(options, &result, &bad_input, &error) < 0) {
		complain(error.message);
		return bad_input ? BAD_INPUT : FAILED;
	}
	report_build(options, &result);
	return 0;
}

static int build(int argc, char **argv)
{
	static const struct option known[] = {{"input", required_argument, NULL, 'i'},
	                                      {"output-prefix", required_argument, NULL, 'o'},
	                                      {"json-key", required_argument, NULL, 'k'},
	                                      {"min-bytes", required_argument, NULL, 'm'},
	                                      {"tokenizer", required_argument, NULL, 't'},
	                                      {"help", no_argument, NULL, 'h'},
	                                      {0}};
	char *inputs[argc + 1];
	int count = 0, option;
	struct wlb_build_options o = {.json_key = "text", .min_bytes = 1, .interrupted = &interrupted};
	/* "-": words that are no option come in order, as option 1: the further paths after --input. */
	while ((option = getopt_long(argc, argv, "-h", known, NULL)) != -1) {
		switch (option) {
		case 'i':
		case 1:
			inputs[count++] = optarg;
			break;
		case 'o':
			o.output_prefix = optarg;
			break;
		case 'k':
			o.json_key = optarg;
			break;
		case 'm':
			o.min_bytes = parse_bytes(optarg);
			if (o.min_bytes < 0)
				return complain("--min-bytes must be a whole number of at least 0");
			break;
		case 't':
			if (strcmp(optarg, "bytes") != 0)
				return complain("--tokenizer must be bytes: there is no other yet");
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return BAD_INPUT; /* getopt has said why */
		}
	}
	while (optind < argc) /* after "--" */
		inputs[count++] = argv[optind++];
	inputs[count] = NULL;
	o.inputs = inputs;
	o.show_progress = isatty(STDERR_FILENO);
	if (count == 0 || o.output_prefix == NULL || *o.output_prefix == '\0')
		return complain("build needs --input PATH and --output-prefix PREFIX; see wlb data --help");
	return run_build(&o);
}

static int info(int argc, char **argv)
{
	static const struct option known[] = {{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	int json = 0, option;
	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (option != 'j')
			return BAD_INPUT; /* getopt has said why */
		json = 1;
	}
	if (argc - optind != 1)
		return complain("info needs one PREFIX; see wlb data --help");
	struct wlb_error error;
	struct wlb_dataset *dataset = wlb_dataset_open(argv[optind], &error);
	if (dataset == NULL)
		return complain(error.message);
	struct wlb_info found;
	int rc = wlb_info_compute(dataset, &found, &error) < 0 ? FAILED : 0;
	wlb_dataset_close(dataset);
	if (rc != 0) {
		complain(error.message);
		return rc;
	}
	if (json)
		rc = wlb_info_print_json(&found, stdout) < 0 ? FAILED : 0;
	else
		wlb_info_print(&found, argv[optind], stdout);
	return rc;
}

/* 0 once everything is really out: a full disk shows when stdout is flushed. */
static int flush_output(int rc)
{
	if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
		fprintf(stderr, "wlb data: cannot write to standard output: %s\n", strerror(errno));
		return FAILED;
	}
	return rc;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	if (argc > 1)
		argv[1] = "wlb data"; /* the name getopt complains under */
	if (strcmp(command, "build") == 0)
		return flush_output(build(argc - 1, argv + 1));
	if (strcmp(command, "info") == 0)
		return flush_output(info(argc - 1, argv + 1));
	if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
		fputs(usage, stdout);
		return flush_output(0);
	}
	if (strcmp(command, "--version") == 0) {
		puts("wlb-data " WLB_VERSION);
		return flush_output(0);
	}
	fputs(usage, stderr);
	return BAD_INPUT;
}
