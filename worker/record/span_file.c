#include "worker/record/span_file.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/json_text.h"
#include "common/seconds.h"
#include "common/show.h"
#include "worker/data/file_progress.h"

struct span {
	const char *name;
	int track;
	double from_s, to_s;
	uint64_t seq, bytes; /* of a call; seq 0: it is none */
};

struct wlb_span_file {
	char folder[PATH_MAX], path[PATH_MAX + 32], node[256];
	struct wlb_span_file_options options;
	enum { WAITING, ON, OVER } state;
	FILE *out;
	uint64_t next_call;                    /* of the rank's ring of calls */
	double call_ended_s[WLB_TRACE_GROUPS]; /* the newest one of each communicator */
	enum wlb_activity activity;
	double activity_since_s; /* 0: not known */
	int64_t step;            /* that has ended last */
	double stopped_s;        /* when the step behind the last one was begun; 0: it was not */
	int64_t written, left_out;
	int count;
	struct span spans[WLB_SPANS_OF_STEP_MOST];
};

/* -- the file -- */

/* After a failure nothing more is written. */
static void give_up(struct wlb_span_file *file)
{
	wlb_show_line(stderr,
	              "wlb-worker: rank %d: trace file %s: it cannot be written: %s: training goes on without it",
	              file->options.rank, file->path, strerror(errno));
	if (file->out != NULL)
		fclose(file->out);
	file->out = NULL;
	file->state = OVER;
}

static void print_json(FILE *out, json_t *event)
{
	char *text = event != NULL ? json_dumps(event, JSON_COMPACT) : NULL;
	json_decref(event);
	if (text != NULL)
		fprintf(out, "%s,\n", text);
	free(text);
}

static void name_track(const struct wlb_span_file *file, int track, const char *name)
{
	fprintf(file->out,
	        "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}},\n",
	        file->options.rank, track, name);
}

/* The events that name the rank and its tracks. */
static void print_names(const struct wlb_span_file *file)
{
	const struct wlb_span_file_options *o = &file->options;
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	char name[400];
	fputs("[\n", file->out);
	snprintf(name, sizeof(name), "rank %d on %s, tp=%d,cp=%d,pp=%d,dp=%d", o->rank, file->node, o->coords.tp,
	         o->coords.cp, o->coords.pp, o->coords.dp);
	print_json(file->out, json_pack("{s:s, s:i, s:s, s:{s:o, s:o, s:i}}", "ph", "M", "pid", o->rank, "name",
	                                "process_name", "args", "name", wlb_json_text(name), "node",
	                                wlb_json_text(file->node), "ranks", o->ranks));
	name_track(file, WLB_TRACK_STEPS, "steps");
	name_track(file, WLB_TRACK_HOST, "activity");
	name_track(file, WLB_TRACK_PASSES, "passes");
	int count = wlb_rank_trace_groups(wlb_comm_trace_memory(o->calls), groups);
	for (int i = 0; i < count; i++)
		if (groups[i].ranks > 0)
			name_track(file, WLB_TRACK_CALLS + i, groups[i].name);
}

static void print_span(struct wlb_span_file *file, const struct span *span, int64_t step)
{
	if (file->written++ >= WLB_SPANS_OF_RANK_MOST) {
		file->left_out++;
		return;
	}
	fprintf(file->out,
	        "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%lld",
	        file->options.rank, span->track, span->name, 1e6 * span->from_s,
	        span->to_s > span->from_s ? 1e6 * (span->to_s - span->from_s) : 0.0, (long long)step);
	if (span->seq > 0)
		fprintf(file->out, ",\"seq\":%llu,\"bytes\":%llu", (unsigned long long)span->seq,
		        (unsigned long long)span->bytes);
	fputs("}},\n", file->out);
}

/* Writes the spans that have begun before then, and keeps the others. */
static void write_spans(struct wlb_span_file *file, double before_s)
{
	int kept = 0;
	wlb_file_report("writing", file->path);
	for (int i = 0; i < file->count; i++) {
		if (file->spans[i].from_s < before_s)
			print_span(file, &file->spans[i], file->step);
		else
			file->spans[kept++] = file->spans[i];
	}
	file->count = kept;
	int failed = fflush(file->out) != 0;
	wlb_file_report_end();
	if (failed)
		give_up(file);
}

/* -- spans -- */

struct wlb_span_file *wlb_span_file_new(const struct wlb_span_file_options *options, struct wlb_error *error)
{
	struct wlb_span_file *file = calloc(1, sizeof(*file));
	if (file == NULL) {
		wlb_fail(error, "out of memory for the spans of steps");
		return NULL;
	}
	file->options = *options;
	snprintf(file->folder, sizeof(file->folder), "%s", options->folder);
	snprintf(file->path, sizeof(file->path), "%s/rank-%06d.json", file->folder, options->rank);
	snprintf(file->node, sizeof(file->node), "%s", options->node);
	return file;
}

int wlb_span_file_is_on(const struct wlb_span_file *file)
{
	return file != NULL && file->state == ON;
}

static void add(struct wlb_span_file *file, const struct span *span)
{
	if (file->count == WLB_SPANS_OF_STEP_MOST)
		file->left_out++;
	else
		file->spans[file->count++] = *span;
}

void wlb_span_file_add(struct wlb_span_file *file, enum wlb_track track, const char *name, double from_s, double to_s)
{
	if (wlb_span_file_is_on(file))
		add(file, &(struct span){.name = name, .track = (int)track, .from_s = from_s, .to_s = to_s});
}

void wlb_span_file_set_activity(struct wlb_span_file *file, enum wlb_activity activity, double now_s)
{
	if (file == NULL)
		return;
	if (file->activity_since_s > 0.0)
		wlb_span_file_add(file, WLB_TRACK_HOST, wlb_activity_name(file->activity), file->activity_since_s,
		                  now_s);
	file->activity = activity;
	file->activity_since_s = now_s;
}

/* Passes over the calls that ended before the first step. */
static void skip_calls(struct wlb_span_file *file)
{
	struct wlb_trace_event event;
	while (wlb_rank_trace_read(wlb_comm_trace_memory(file->options.calls), &file->next_call, &event, 1) > 0)
		;
}

/* A call that made the rank wait begins when it did. One that the device makes beside it begins when it was queued, or
 * when the communicator's call before it had ended. */
static void add_call(struct wlb_span_file *file, const struct wlb_trace_event *call)
{
	double *ended_s = &file->call_ended_s[call->group], from_s = call->blocked_s;
	if (from_s <= 0.0)
		from_s = call->entered_s > *ended_s ? call->entered_s : *ended_s;
	add(file, &(struct span){.name = wlb_comm_kind_name(call->kind),
	                         .track = WLB_TRACK_CALLS + call->group,
	                         .from_s = from_s,
	                         .to_s = call->left_s,
	                         .seq = call->seq,
	                         .bytes = call->bytes});
	*ended_s = call->left_s;
}

void wlb_span_file_add_calls(struct wlb_span_file *file)
{
	enum { AT_ONCE = 64 };
	struct wlb_trace_event calls[AT_ONCE];
	size_t count;
	if (!wlb_span_file_is_on(file))
		return;
	wlb_comm_trace_poll(file->options.calls);
	do {
		uint64_t first = file->next_call;
		count = wlb_rank_trace_read(wlb_comm_trace_memory(file->options.calls), &file->next_call, calls,
		                            AT_ONCE);
		file->left_out += (int64_t)(file->next_call - first - count); /* the ring has gone on over them */
		for (size_t i = 0; i < count; i++)
			add_call(file, &calls[i]);
	} while (count == AT_ONCE);
}

void wlb_span_file_end_step(struct wlb_span_file *file, int64_t step, double from_s, double to_s)
{
	if (!wlb_span_file_is_on(file))
		return;
	wlb_span_file_add_calls(file);
	wlb_span_file_add(file, WLB_TRACK_STEPS, "step", from_s, to_s);
	file->step = step;
	write_spans(file, to_s);
}

/* -- beginning and end -- */

static void begin(struct wlb_span_file *file)
{
	struct wlb_error ignored; /* the next call says why */
	skip_calls(file);
	wlb_file_report("creating", file->folder);
	wlb_dir_make(file->folder, 0777, &ignored);
	wlb_file_report("opening", file->path);
	file->out = fopen(file->path, "we");
	wlb_file_report_end();
	file->state = ON;
	file->activity_since_s = wlb_now_s();
	if (file->out == NULL)
		give_up(file);
	else
		print_names(file);
}

static void end(struct wlb_span_file *file)
{
	wlb_span_file_add_calls(file);
	write_spans(file, file->stopped_s);
	if (!wlb_span_file_is_on(file))
		return;
	if (file->left_out > 0)
		wlb_show_line(
			stderr,
			"wlb-worker: rank %d: trace file %s: %lld spans had no room and are left out: trace fewer "
			"steps",
			file->options.rank, file->path, (long long)file->left_out);
	wlb_file_report("writing", file->path);
	int failed = fclose(file->out) != 0;
	wlb_file_report_end();
	file->out = NULL;
	if (failed)
		give_up(file);
	file->state = OVER;
}

/* What begins from now on is of later steps. */
static void stop(struct wlb_span_file *file)
{
	file->stopped_s = wlb_now_s();
	wlb_span_file_set_activity(file, file->activity, file->stopped_s); /* the one that goes on */
}

void wlb_span_file_begin_step(struct wlb_span_file *file, int64_t step)
{
	if (file == NULL)
		return;
	const struct wlb_step_range *steps = &file->options.steps;
	if (file->state == WAITING && step >= steps->first && step <= steps->last)
		begin(file);
	if (file->state != ON || step <= steps->last)
		return;
	if (file->stopped_s == 0.0)
		stop(file);
	if (file->step == steps->last) /* else it is read late */
		end(file);
}

void wlb_span_file_close(struct wlb_span_file *file)
{
	if (wlb_span_file_is_on(file)) {
		if (file->stopped_s == 0.0)
			stop(file);
		end(file);
	}
	free(file);
}
