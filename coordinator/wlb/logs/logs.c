/* wlb logs: prints what a run has printed. It opens the file as the user who asks. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/named_file.h"
#include "common/number.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/logs/output_choice.h"
#include "coordinator/wlb/logs/rank_lines.h"
#include "coordinator/wlb/logs/terminal_text.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/run_name.h"

enum {
	CHUNK_BYTES = 65536,
	FOLLOW_MS = 500, /* between two looks at the file */
	ASK_MS = 5000,   /* between two questions whether the run goes on */
	ATTEMPTS_MAX = 10000,
	RANK_MAX = (1 << 20) - 1,
};

struct request {
	const char *name;
	const char *rank;
	int attempt; /* 0: not given */
	bool follow, is_stderr;
};

/* The output that is open. */
struct reading {
	const struct request *request;
	struct wlb_output_asked asked;
	struct wlb_output_choice choice;
	int fd; /* -1: none */
	int64_t at;
	bool is_terminal;
	bool is_over; /* the run has ended, or the attempt that is asked for */
	struct wlb_rank_lines lines;
	struct wlb_terminal_text text;
};

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static bool is_over(const json_t *run, int attempt)
{
	static const char *const over[] = {"complete", "failed", "out_of_nodes", "cancelled"};
	size_t i;
	const json_t *entry;
	for (i = 0; i < sizeof(over) / sizeof(over[0]); i++)
		if (strcmp(wlb_field_text(run, "state", ""), over[i]) == 0)
			return true;
	json_array_foreach(json_object_get(run, "attempts"), i,
	                   entry) if (json_integer_value(json_object_get(entry, "attempt")) ==
	                              attempt) return wlb_field_text(entry, "ended_at", NULL) != NULL;
	return false;
}

static json_t *ask(const struct request *request, struct wlb_error *error)
{
	char path[128];
	snprintf(path, sizeof(path), "/v1/runs/%s", request->name);
	return wlb_api_get(path, error);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int open_output(struct reading *reading, struct wlb_error *error)
{
	struct stat status;
	int fd = wlb_named_file_open(reading->choice.path, error);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) != 0 || status.st_size < reading->choice.begin) {
		close(fd);
		return wlb_fail(error, "%s: was written over since attempt %d began", reading->choice.path,
		                reading->choice.attempt);
	}
	reading->fd = fd;
	reading->at = reading->choice.begin;
	reading->lines = (struct wlb_rank_lines){.rank = reading->asked.rank};
	return 0;
}

static int print(struct reading *reading, const char *bytes, size_t count)
{
	static char of_rank[CHUNK_BYTES + WLB_LABEL_BYTES], shown[WLB_TERMINAL_ROOM(CHUNK_BYTES + WLB_LABEL_BYTES)];
	if (reading->choice.is_filtered) {
		count = wlb_rank_lines_pass(&reading->lines, bytes, count, of_rank);
		bytes = of_rank;
	}
	if (reading->is_terminal) {
		count = wlb_terminal_text_pass(&reading->text, bytes, count, shown);
		bytes = shown;
	}
	return fwrite(bytes, 1, count, stdout) == count ? 0 : -1;
}

/* Prints what the file has more than was printed. */
static int pass(struct reading *reading, struct wlb_error *error)
{
	static char bytes[CHUNK_BYTES];
	for (;;) {
		int64_t left = reading->choice.end < 0 ? CHUNK_BYTES : reading->choice.end - reading->at;
		size_t most = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
		ssize_t count = most > 0 ? pread(reading->fd, bytes, most, (off_t)reading->at) : 0;
		if (count < 0)
			return wlb_fail(error, "%s: %s", reading->choice.path, strerror(errno));
		if (count == 0)
			break;
		reading->at += count;
		if (print(reading, bytes, (size_t)count) != 0)
			return wlb_fail(error, "standard output: %s", strerror(errno));
	}
	return fflush(stdout) == 0 ? 0 : wlb_fail(error, "standard output: %s", strerror(errno));
}

/* ---- following --------------------------------------------------------------------------------------------------- */

/* A file that is shorter than what was printed of it was written over: it is printed anew. */
static void check_size(struct reading *reading)
{
	struct stat status;
	if (fstat(reading->fd, &status) != 0 || status.st_size >= reading->at)
		return;
	fprintf(stderr, "wlb logs: the file was written over, and is printed from its beginning\n");
	reading->at = 0;
}

/* A later attempt may write to another file. While the coordinator does not answer nothing changes. */
static int ask_again(struct reading *reading, struct wlb_error *error)
{
	struct wlb_output_choice next;
	json_t *run = ask(reading->request, NULL);
	if (run == NULL)
		return 0;
	int rc = 0;
	reading->is_over = is_over(run, reading->request->attempt);
	if (wlb_output_choose(run, &reading->asked, &next, NULL) == 0) {
		if (reading->fd >= 0 && strcmp(next.path, reading->choice.path) != 0) {
			rc = pass(reading, error);
			close(reading->fd);
			reading->fd = -1;
		}
		reading->choice = next;
	}
	json_decref(run);
	return rc;
}

/* Until the run has ended, and once more then. A file that is not there yet is waited for. */
static int follow(struct reading *reading, struct wlb_error *error)
{
	int64_t ask_ms = wlb_clock_ms() + ASK_MS;
	for (bool is_last = false;; is_last = reading->is_over) {
		bool is_open = reading->fd >= 0 || open_output(reading, error) == 0;
		if (is_open)
			check_size(reading);
		if (is_open ? pass(reading, error) != 0 : access(reading->choice.path, F_OK) == 0)
			return -1;
		if (is_last)
			return is_open ? 0 : -1;
		if (!reading->is_over)
			wlb_clock_sleep_ms(FOLLOW_MS);
		if (wlb_clock_left_ms(ask_ms) > 0)
			continue;
		ask_ms = wlb_clock_ms() + ASK_MS;
		if (ask_again(reading, error) != 0)
			return -1;
	}
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int read_output(struct reading *reading, struct wlb_error *error)
{
	json_t *run = ask(reading->request, error);
	if (run == NULL)
		return -1;
	int rc = wlb_output_choose(run, &reading->asked, &reading->choice, error);
	reading->is_over = is_over(run, reading->request->attempt);
	json_decref(run);
	if (rc == 0 && reading->request->follow)
		return follow(reading, error);
	return rc == 0 && open_output(reading, error) == 0 ? pass(reading, error) : -1;
}

static int logs(void *values, struct wlb_error *error)
{
	struct request *request = values;
	char name[WLB_RUN_NAME_BYTES];
	int64_t rank = -1;
	if (request->rank != NULL && wlb_number_parse("--rank", request->rank, 0, RANK_MAX, &rank, error) != 0)
		return WLB_EXIT_USAGE;
	int found = wlb_run_name_find(request->name, name, error);
	if (found != WLB_EXIT_DONE)
		return found;
	request->name = name;
	struct reading reading = {
		.request = request,
		.asked = {.rank = (int)rank, .attempt = request->attempt, .is_stderr = request->is_stderr},
		.fd = -1,
		.is_terminal = isatty(STDOUT_FILENO) != 0,
	};
	int rc = read_output(&reading, error);
	if (reading.fd >= 0)
		close(reading.fd);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(name), "RUN", WLB_RUN_NAME_HELP), .required = true},
	{WLB_OPTION(TEXT, "rank", FIELD(rank), "N",
                    "only the lines of this rank, where srun labels lines or gives each rank a file")},
	{WLB_OPTION(INT, "attempt", FIELD(attempt), "N", "only what this attempt has printed"), .min = 1,
         .max = ATTEMPTS_MAX},
	{WLB_OPTION(FLAG, "follow", FIELD(follow), NULL, "go on until the run, or the attempt, has ended")},
	{WLB_OPTION(FLAG, "stderr", FIELD(is_stderr), NULL, "the file of standard error, where it is another one")},
};

static const struct wlb_option_table table = {
	.command = "wlb logs",
	.about =
		"Prints the output of a run, from its file, which you must be allowed to read. It is printed unchanged "
		"to a file or a pipe; in a terminal, characters that would act on the terminal are spaces, but for "
		"colours.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_logs = {
	.name = "logs",
	.summary = "Print the output of a run",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = logs,
};
