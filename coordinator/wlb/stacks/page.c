#include "coordinator/wlb/stacks/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/output/bytes_text.h"
#include "coordinator/wlb/output/rank_text.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/seconds_text.h"

enum {
	CLUSTERS_SHOWN = 8,
	FRAMES_SHOWN = 16, /* of a cluster, and of a suspect */
	SUSPECTS_SHOWN = 4,
	CALLS_SHOWN = 6,
	RAS_LINES_SHOWN = 200,
	LINE_SIZE = 1024,
};

struct page {
	FILE *out;
	int columns;
};

/* A line, cut where it is longer than the page is wide. */
__attribute__((format(printf, 2, 3))) static void put(const struct page *page, const char *format, ...)
{
	char line[LINE_SIZE];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	int most = page->columns < LINE_SIZE - 1 ? page->columns : LINE_SIZE - 1;
	if (length > most && most > 3)
		memcpy(line + most - 3, "...", 4);
	fprintf(page->out, "%s\n", line);
}

static const char *state_words(const char *state)
{
	static const struct {
		const char *letter, *words;
	} states[] = {{"R", "running"},
	              {"S", "sleeping"},
	              {"D", "in uninterruptible sleep in the kernel"},
	              {"T", "stopped by a signal"},
	              {"t", "stopped by a debugger"},
	              {"Z", "ended, not reaped"},
	              {"?", "gone"}};
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(states[i].letter, state) == 0)
			return states[i].words;
	return state;
}

/* ---- clusters ---------------------------------------------------------------------------------------------------- */

static void put_cluster(const struct page *page, const struct wlb_gathered *gathered,
                        const struct wlb_verdict_cluster *cluster)
{
	const struct wlb_verdict_stack *stack = &gathered->stacks[cluster->stack];
	char ranks[256], frame[LINE_SIZE];
	wlb_ranks_format(cluster->ranks, cluster->count, page->columns - 24, ranks, sizeof(ranks));
	put(page, "%d %s%s: %s", (int)cluster->count, cluster->count == 1 ? "rank" : "ranks",
	    cluster->is_suspect ? ", suspect" : "", ranks);
	int32_t end = cluster->innermost + FRAMES_SHOWN;
	for (int32_t i = cluster->innermost; i < stack->frame_count && i < end; i++) {
		wlb_gathered_frame(stack->frames[i], frame, sizeof(frame));
		put(page, "  %s", frame);
	}
	if (stack->frame_count > end)
		put(page, "  and %d outer frames", (int)(stack->frame_count - end));
}

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

static void put_call(const struct page *page, const json_t *call)
{
	char bytes[32], took[32], ended[32];
	const json_t *ended_s = json_array_get(call, 5);
	const char *kind = json_string_value(json_array_get(call, 0)),
		   *group = json_string_value(json_array_get(call, 1));
	long long number = json_integer_value(json_array_get(call, 2));
	wlb_bytes_format(json_integer_value(json_array_get(call, 3)), bytes, sizeof(bytes));
	wlb_seconds_format(json_number_value(json_array_get(call, 4)), took, sizeof(took));
	wlb_seconds_format(json_number_value(ended_s), ended, sizeof(ended));
	kind = kind != NULL ? kind : "?";
	group = group != NULL ? group : "?";
	if (json_is_null(ended_s))
		put(page, "    %s of %s, number %lld, %s: in progress for %s", kind, group, number, bytes, took);
	else
		put(page, "    %s of %s, number %lld, %s: took %s, ended %s ago", kind, group, number, bytes, took,
		    ended);
}

static void put_calls(const struct page *page, const json_t *rank, size_t most)
{
	const json_t *calls = json_object_get(rank, "calls");
	size_t count = json_array_size(calls), first = count > most ? count - most : 0;
	if (count > 0)
		put(page, "  Its last calls, the newest last:");
	for (size_t i = first; i < count; i++)
		put_call(page, json_array_get(calls, i));
}

static void put_thread(const struct page *page, const json_t *thread, size_t most)
{
	const json_t *frames = json_object_get(thread, "frames");
	const char *waits_in = wlb_field_text(thread, "waits_in", "");
	size_t count = json_array_size(frames);
	put(page, "  Thread %lld of process %lld, %s: %s",
	    (long long)json_integer_value(json_object_get(thread, "tid")),
	    (long long)json_integer_value(json_object_get(thread, "pid")), wlb_field_text(thread, "name", "?"),
	    state_words(wlb_field_text(thread, "state", "?")));
	if (*waits_in != '\0')
		put(page, "    %s (kernel)", waits_in);
	for (size_t i = 0; i < count && i < most; i++)
		put(page, "    %s", json_string_value(json_array_get(frames, i)));
	if (count > most)
		put(page, "    and %zu outer frames", count - most);
}

static void put_rank(const struct page *page, const json_t *rank, size_t threads_max, size_t frames_max,
                     size_t calls_most)
{
	const json_t *threads = json_object_get(rank, "threads");
	const char *note = wlb_field_text(rank, "note", "");
	size_t count = json_array_size(threads), shown = count < threads_max ? count : threads_max;
	long long more = (long long)(count - shown) + json_integer_value(json_object_get(rank, "left_out"));
	put(page, "Rank %lld on %s, process %lld: %s", (long long)json_integer_value(json_object_get(rank, "rank")),
	    wlb_field_text(rank, "node", "?"), (long long)json_integer_value(json_object_get(rank, "pid")),
	    state_words(wlb_field_text(rank, "state", "?")));
	if (*note != '\0')
		fprintf(page->out, "  Note: %s.\n", note);
	for (size_t i = 0; i < shown; i++)
		put_thread(page, json_array_get(threads, i), frames_max);
	if (more > 0)
		put(page, "  and %lld more threads", more);
	put_calls(page, rank, calls_most);
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static void put_age(const struct page *page, time_t gathered_at)
{
	char age[32];
	if (gathered_at <= 0)
		return;
	double age_s = difftime(time(NULL), gathered_at);
	wlb_seconds_format(age_s > 0 ? age_s : 0, age, sizeof(age));
	put(page, "They are %s old.", age);
}

static void put_head(const struct page *page, const struct wlb_gathered *gathered)
{
	const json_t *reply = gathered->reply, *gathering = json_object_get(reply, "gatherings");
	json_int_t world = json_integer_value(json_object_get(reply, "world_size")),
		   id = json_integer_value(json_object_get(reply, "stacks_id"));
	char attempt[32], when[32];
	const json_t *entry;
	size_t i;
	wlb_field_number(reply, "attempt", attempt, sizeof(attempt));
	time_t at = wlb_time_parse(wlb_field_text(reply, "asked_at", NULL));
	wlb_time_format(at, when, sizeof(when));
	put(page, "Run %s, attempt %s: stacks of %d of %lld ranks, gathered at %s",
	    wlb_field_text(reply, "run_id", "?"), attempt, (int)gathered->count,
	    (long long)(world > gathered->count ? world : gathered->count), when);
	put_age(page, at);
	json_array_foreach((json_t *)gathering, i, entry)
	{
		json_int_t asked = json_integer_value(json_object_get(entry, "nodes_asked"));
		json_int_t nodes = json_integer_value(json_object_get(entry, "nodes"));
		if (json_integer_value(json_object_get(entry, "stacks_id")) == id && nodes < asked)
			put(page, "%lld of %lld nodes have not answered.", (long long)(asked - nodes),
			    (long long)asked);
	}
	if (json_integer_value(json_object_get(reply, "left_out")) > 0)
		put(page, "%lld more ranks are not in the reply, which has 16 MiB at most.",
		    (long long)json_integer_value(json_object_get(reply, "left_out")));
}

static void put_suspects(const struct page *page, const struct wlb_gathered *gathered)
{
	const struct wlb_verdict_clusters *clusters = gathered->clusters;
	int shown = 0;
	for (int32_t i = 0; i < clusters->count; i++)
		for (int32_t k = 0; clusters->list[i].is_suspect && k < clusters->list[i].count; k++, shown++) {
			if (shown >= SUSPECTS_SHOWN)
				continue;
			fputc('\n', page->out);
			put_rank(page, wlb_gathered_rank(gathered, clusters->list[i].ranks[k]), 1, FRAMES_SHOWN,
			         CALLS_SHOWN);
		}
	if (shown > SUSPECTS_SHOWN)
		put(page, "\nand %d more suspect ranks; --rank shows one", shown - SUSPECTS_SHOWN);
	if (shown == 0 && clusters->count > 0)
		put(page, "\nNo rank is suspect: %s.",
		    clusters->count == 1 ? "the stacks of all are alike"
		                         : "no cluster has more than half of the ranks");
	if (clusters->group >= 0)
		put(page, "\nAll ranks outside the largest cluster are of %s.",
		    gathered->sets.list[clusters->group].name);
}

/* NCCL's RAS service has a view of the whole job, so one node's report is shown. */
static void put_ras(const struct page *page, const struct wlb_gathered *gathered)
{
	const json_t *shown = NULL, *rank, *line;
	int others = 0;
	size_t i;
	json_array_foreach((json_t *)gathered->ranks, i, rank)
	{
		if (json_array_size(json_object_get(rank, "nccl_ras")) == 0)
			continue;
		others += shown != NULL;
		shown = shown != NULL ? shown : rank;
	}
	if (shown == NULL)
		return;
	put(page, "\nNCCL's RAS service on %s says:", wlb_field_text(shown, "node", "?"));
	json_array_foreach(json_object_get(shown, "nccl_ras"), i, line)
	{
		if (i < RAS_LINES_SHOWN && json_is_string(line))
			put(page, "  %s", json_string_value(line));
	}
	if (i > RAS_LINES_SHOWN)
		put(page, "  and %zu more lines; --json has all", i - RAS_LINES_SHOWN);
	if (others > 0)
		put(page, "The reports of %d more nodes are in --json.", others);
}

void wlb_stacks_page_print(const struct wlb_gathered *gathered, int columns, FILE *out)
{
	const struct page page = {out, columns};
	const struct wlb_verdict_clusters *clusters = gathered->clusters;
	put_head(&page, gathered);
	for (int32_t i = 0; i < clusters->count && i < CLUSTERS_SHOWN; i++) {
		fputc('\n', out);
		put_cluster(&page, gathered, &clusters->list[i]);
	}
	if (clusters->count > CLUSTERS_SHOWN)
		put(&page, "\nand %d smaller clusters", (int)(clusters->count - CLUSTERS_SHOWN));
	put_suspects(&page, gathered);
	put_ras(&page, gathered);
}

int wlb_stacks_page_print_rank(const struct wlb_gathered *gathered, int rank, int columns, FILE *out,
                               struct wlb_error *error)
{
	const struct page page = {out, columns};
	const json_t *entry = wlb_gathered_rank(gathered, rank);
	if (entry == NULL)
		return wlb_fail(error, "rank %d: no stacks of it were gathered", rank);
	put_head(&page, gathered);
	fputc('\n', out);
	put_rank(&page, entry, SIZE_MAX, SIZE_MAX, SIZE_MAX);
	return 0;
}
