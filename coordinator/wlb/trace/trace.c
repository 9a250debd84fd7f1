/*
 * wlb trace: one file for Perfetto of the files that the ranks of a run have written (worker/record/span_file.h). Each
 * rank is a process there, each communicator a track, and times are of the clock of the first rank's node.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/step_range.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/run_name.h"
#include "coordinator/wlb/trace/node_clocks.h"
#include "coordinator/wlb/trace/rank_file.h"

struct request {
	const char *run, *from, *steps, *output;
	struct wlb_step_range range; /* of `steps` */
};

/* The work: `file` is open where a function is called for it. */
struct joining {
	const struct request *request;
	const char *folder;
	struct wlb_node_clocks *clocks;
	struct wlb_rank_file file;
	FILE *out;
	int ranks, missing, first_missing;
	int64_t spans;
};

/* ---- where the files are ----------------------------------------------------------------------------------------- */

/* Sets the folder that the run has recorded last. */
static int find_folder(const char *run_name, char folder[PATH_MAX], struct wlb_error *error)
{
	char path[128];
	size_t i;
	const json_t *event;
	snprintf(path, sizeof(path), "/v1/runs/%s", run_name);
	json_t *run = wlb_api_get(path, error);
	if (run == NULL)
		return -1;
	folder[0] = '\0';
	json_array_foreach(json_object_get(run, "events"), i,
	                   event) if (strcmp(wlb_field_text(event, "kind", ""), "trace") == 0)
		snprintf(folder, PATH_MAX, "%s", wlb_field_text(event, "detail", ""));
	json_decref(run);
	if (folder[0] != '\0')
		return 0;
	return wlb_fail(error,
	                "run %s: no step of it is traced: start wlb-worker with --trace-dir DIR --trace-steps A:B",
	                run_name);
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

/* The calls in which the hosts of all ranks exchange numbers after a step, and wait for each other. */
static const char MEETING[] = "all_reduce_double";

static int read_meetings(struct wlb_rank_file *file, struct wlb_meetings *meetings, struct wlb_error *error)
{
	int rc = 0;
	meetings->count = 0;
	while (meetings->count < WLB_MEETINGS_MOST && (rc = wlb_rank_file_next(file, error)) == 1) {
		const struct wlb_span_line *line = &file->line;
		if (line->kind != WLB_SPAN_TIME || line->track != file->world_track || strcmp(line->name, MEETING) != 0)
			continue;
		meetings->list[meetings->count].seq = line->seq;
		meetings->list[meetings->count++].end_us = line->at_us + line->took_us;
	}
	return rc < 0 ? -1 : 0;
}

/* Adds the clock of the node of the rank whose file is open, where it is the node's first one. */
static int add_clock(struct joining *j, struct wlb_error *error)
{
	char node[sizeof(j->file.line.node)];
	struct wlb_meetings meetings;
	double ahead_us;
	memcpy(node, j->file.line.node, sizeof(node));
	if (wlb_node_clocks_find(j->clocks, node, &ahead_us))
		return 0;
	return read_meetings(&j->file, &meetings, error) == 0 ? wlb_node_clocks_add(j->clocks, node, &meetings, error)
	                                                      : -1;
}

/* ---- the joined file --------------------------------------------------------------------------------------------- */

static void write_name(FILE *out, const struct wlb_span_line *line)
{
	json_t *name = json_string(line->name);
	char *text = name != NULL ? json_dumps(name, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
	json_decref(name);
	if (line->kind == WLB_SPAN_RANK)
		fprintf(out,
		        ",\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}}"
		        ",\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":%s}}",
		        line->rank, line->rank, line->rank, text != NULL ? text : "\"\"");
	else
		fprintf(out, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":%s}}",
		        line->rank, line->track, text != NULL ? text : "\"\"");
	free(text);
}

static void write_span(struct joining *j, double ahead_us)
{
	const struct wlb_span_line *line = &j->file.line;
	const struct wlb_step_range *range = &j->request->range;
	if (j->request->steps != NULL && (line->step < range->first || line->step > range->last))
		return;
	j->spans++;
	fprintf(j->out,
	        ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%"
	        "lld",
	        line->rank, line->track, line->name, line->at_us - ahead_us, line->took_us, (long long)line->step);
	if (line->seq > 0)
		fprintf(j->out, ",\"seq\":%llu,\"bytes\":%llu", (unsigned long long)line->seq,
		        (unsigned long long)line->bytes);
	fputs("}}", j->out);
}

static int write_rank(struct joining *j, struct wlb_error *error)
{
	double ahead_us = 0.0;
	int rc;
	if (!wlb_node_clocks_find(j->clocks, j->file.line.node, &ahead_us))
		return wlb_fail(error, "%.500s: its file was written anew meanwhile", j->file.path);
	write_name(j->out, &j->file.line);
	while ((rc = wlb_rank_file_next(&j->file, error)) == 1) {
		if (j->file.line.kind == WLB_SPAN_TIME)
			write_span(j, ahead_us);
		else
			write_name(j->out, &j->file.line);
	}
	return rc;
}

/* Calls the function for the file of each rank; those without one are counted. */
static int for_ranks(struct joining *j, int (*function)(struct joining *j, struct wlb_error *error),
                     struct wlb_error *error)
{
	j->missing = 0;
	j->ranks = 1;
	for (int rank = 0; rank < j->ranks; rank++) {
		if (wlb_rank_file_open(&j->file, j->folder, rank, error) < 0) {
			if (rank == 0)
				return -1;
			if (j->missing++ == 0)
				j->first_missing = rank;
			continue;
		}
		if (rank == 0)
			j->ranks = j->file.line.ranks;
		int rc = function(j, error);
		wlb_rank_file_close(&j->file);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int write_all(struct joining *j, struct wlb_error *error)
{
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_labels\","
	      "\"args\":"
	      "{\"labels\":\"wlb " WLB_VERSION "\"}}",
	      j->out);
	if (for_ranks(j, write_rank, error) < 0)
		return -1;
	fputs("\n]}\n", j->out);
	if (j->spans > 0)
		return 0;
	return wlb_fail(error, "%.500s: no step %s is traced there", j->folder,
	                j->request->steps != NULL ? j->request->steps : "at all");
}

/* Writes the output, whole or not at all. */
static int write_output(struct joining *j, struct wlb_error *error)
{
	char temporary[PATH_MAX];
	const char *path = j->request->output;
	if (snprintf(temporary, sizeof(temporary), "%s.part", path) >= (int)sizeof(temporary))
		return wlb_fail(error, "--output %.200s: the path is too long", path);
	j->out = fopen(temporary, "we");
	if (j->out == NULL)
		return wlb_fail(error, "--output %.500s: %s", temporary, strerror(errno));
	int rc = write_all(j, error), is_written = !ferror(j->out);
	is_written = fclose(j->out) == 0 && is_written;
	if (rc == 0 && !is_written)
		rc = wlb_fail(error, "--output %.500s: %s", temporary, strerror(errno));
	if (rc == 0)
		return wlb_file_commit(temporary, path, error);
	unlink(temporary);
	return -1;
}

static int join(struct joining *j, struct wlb_error *error)
{
	j->clocks = wlb_node_clocks_new();
	if (j->clocks == NULL)
		return wlb_fail(error, "out of memory");
	int rc = for_ranks(j, add_clock, error);
	if (rc == 0)
		rc = write_output(j, error);
	wlb_node_clocks_free(j->clocks);
	if (rc == 0 && j->missing > 0)
		fprintf(stderr, "wlb trace: %d of %d ranks have no file there, rank %d the first\n", j->missing,
		        j->ranks, j->first_missing);
	return rc;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int trace(void *values, struct wlb_error *error)
{
	enum { STEPS_MOST = 1000000 };
	struct request *request = values;
	char name[WLB_RUN_NAME_BYTES], folder[PATH_MAX];
	struct joining joining = {.request = request, .folder = request->from};
	if ((request->run == NULL) == (request->from == NULL)) {
		wlb_fail(error, "give a RUN, or --from DIR");
		return WLB_EXIT_USAGE;
	}
	if (request->steps != NULL && wlb_step_range_parse(request->steps, STEPS_MOST, &request->range, error) < 0) {
		wlb_fail_in(error, "--steps");
		return WLB_EXIT_USAGE;
	}
	if (request->run != NULL) {
		int found = wlb_run_name_find(request->run, name, error);
		if (found != WLB_EXIT_DONE)
			return found;
		if (find_folder(name, folder, error) < 0)
			return WLB_EXIT_FAILED;
		joining.folder = folder;
	}
	if (join(&joining, error) < 0)
		return WLB_EXIT_FAILED;
	printf("%s: %lld spans of %d ranks; open it in https://ui.perfetto.dev\n", request->output,
	       (long long)joining.spans, joining.ranks - joining.missing);
	return WLB_EXIT_DONE;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(run), "RUN", WLB_RUN_NAME_HELP)},
	{WLB_OPTION(TEXT, "from", FIELD(from), "DIR", "in place of RUN: the folder with the ranks' files")},
	{WLB_OPTION(TEXT, "steps", FIELD(steps), "A[:B]", "only these of the traced steps")},
	{WLB_OPTION(TEXT, "output", FIELD(output), "FILE", "the file to write"), .letter = 'o', .required = true},
};

static const struct wlb_option_table table = {
	.command = "wlb trace",
	.about = "Joins what the ranks of a run did in the steps that 'wlb-worker train --trace-dir DIR --trace-steps "
		 "A:B' "
		 "has traced, as a file for Perfetto or chrome://tracing: of each rank its steps, its activities, its "
		 "passes "
		 "and its calls of each communicator. The clocks of nodes are aligned by the calls that all ranks make "
		 "together. The files of the ranks must be visible here, and you must be allowed to read them.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_trace = {
	.name = "trace",
	.summary = "Write traced steps of all ranks as a file for Perfetto",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = trace,
};
