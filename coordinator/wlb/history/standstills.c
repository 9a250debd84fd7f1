#include "coordinator/wlb/history/standstills.h"

#include <string.h>

#include "common/output/printable.h"
#include "common/output/terminal.h"
#include "common/output/wrap.h"
#include "coordinator/stack_clusters/gathered.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/output/rank_text.h"
#include "coordinator/wlb/output/reply_fields.h"

enum { CLUSTERS_SHOWN = 4, RANKS_COLUMNS = 24, LINE_SIZE = 512 };

/* ---- clusters ---------------------------------------------------------------------------------------------------- */

/* Cut where it is longer than the terminal is wide. */
static void put_line(const char *line, int columns, FILE *out)
{
	int most = columns > 8 ? columns : 80, used;
	if (wlb_text_width(line) > most)
		fprintf(out, "%.*s...\n", (int)wlb_text_fit(line, most - 3, &used), line);
	else
		fprintf(out, "%s\n", line);
}

static void put_cluster(const struct wlb_gathered *gathered, const struct wlb_verdict_cluster *cluster, int columns,
                        FILE *out)
{
	const struct wlb_verdict_stack *stack = &gathered->stacks[cluster->stack];
	const char *frame = cluster->innermost < stack->frame_count ? stack->frames[cluster->innermost] : "?";
	char ranks[64], place[256], line[LINE_SIZE];
	wlb_ranks_format(cluster->ranks, cluster->count, RANKS_COLUMNS, ranks, sizeof(ranks));
	wlb_gathered_frame(frame, place, sizeof(place));
	snprintf(line, sizeof(line), "  %d %s%s: %s: %s", (int)cluster->count, cluster->count == 1 ? "rank" : "ranks",
	         cluster->is_suspect ? ", suspect" : "", ranks, place);
	put_line(line, columns, out);
}

int wlb_standstill_clusters(const json_t *stacks, int columns, FILE *out, struct wlb_error *error)
{
	struct wlb_gathered gathered;
	int rc = wlb_gathered_read(stacks, &gathered, error);
	const struct wlb_verdict_clusters *clusters = gathered.clusters;
	for (int32_t i = 0; rc == 0 && i < clusters->count && i < CLUSTERS_SHOWN; i++)
		put_cluster(&gathered, &clusters->list[i], columns, out);
	if (rc == 0 && clusters->count > CLUSTERS_SHOWN)
		fprintf(out, "  and %d smaller clusters\n", (int)(clusters->count - CLUSTERS_SHOWN));
	if (rc == 0 && clusters->group >= 0)
		fprintf(out, "  all ranks outside the largest cluster are of %s\n",
		        gathered.sets.list[clusters->group].name);
	wlb_gathered_free(&gathered);
	return rc;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Writes "0-1,3" or "0-15,... (64 in all)"; "no rank". */
static void name_ranks(const json_t *call, const char *list_name, const char *count_name, char *text, size_t size)
{
	enum { LISTED_MAX = 16 };
	const json_t *list = json_object_get(call, list_name);
	json_int_t count = json_integer_value(json_object_get(call, count_name));
	int ranks[LISTED_MAX], listed = 0;
	for (; listed < LISTED_MAX && (size_t)listed < json_array_size(list); listed++)
		ranks[listed] = (int)json_integer_value(json_array_get(list, (size_t)listed));
	if (listed == 0) {
		snprintf(text, size, "no rank");
		return;
	}
	wlb_ranks_format(ranks, listed, RANKS_COLUMNS, text, size);
	size_t length = strlen(text);
	if (count > listed)
		snprintf(text + length, size - length, " and others, %lld in all", (long long)count);
}

void wlb_standstill_calls(const json_t *verdict, FILE *out)
{
	const json_t *calls = json_object_get(verdict, "calls"), *call;
	char inside[96], missing[96];
	size_t i;
	json_array_foreach((json_t *)calls, i, call)
	{
		name_ranks(call, "inside", "inside_count", inside, sizeof(inside));
		name_ranks(call, "missing", "missing_count", missing, sizeof(missing));
		fprintf(out, "  %s of %s, number %lld: ", wlb_field_text(call, "kind", "call"),
		        wlb_field_text(call, "communicator", "?"),
		        (long long)json_integer_value(json_object_get(call, "sequence")));
		if (json_integer_value(json_object_get(call, "missing_count")) > 0)
			fprintf(out, "entered by %s, not by %s\n", inside, missing);
		else
			fprintf(out, "entered by all, not left by %s\n", inside);
	}
}

/* ---- the section ------------------------------------------------------------------------------------------------- */

static json_int_t attempt_of(const json_t *entry)
{
	return json_integer_value(json_object_get(entry, "attempt"));
}

/* Returns the last verdict of the attempt that has calls; NULL: there is none. */
static const json_t *find_verdict(const json_t *verdicts, json_int_t attempt)
{
	const json_t *found = NULL, *verdict;
	size_t i;
	json_array_foreach((json_t *)verdicts, i, verdict) if (attempt_of(verdict) == attempt &&
	                                                       json_array_size(json_object_get(verdict, "calls")) > 0)
		found = verdict;
	return found;
}

/* Returns the newest gathering of the attempt; NULL: there is none. Lists begin with the newest. */
static const json_t *find_gathering(const json_t *gatherings, json_int_t attempt)
{
	const json_t *gathering;
	size_t i;
	json_array_foreach((json_t *)gatherings, i, gathering) if (attempt_of(gathering) == attempt) return gathering;
	return NULL;
}

static void print_clusters(const char *name, const json_t *gathering)
{
	char path[160];
	struct wlb_error error = {""};
	snprintf(path, sizeof(path), "/v1/runs/%s/stacks?stacks_id=%lld", name,
	         (long long)json_integer_value(json_object_get(gathering, "stacks_id")));
	json_t *stacks = wlb_api_get(path, &error);
	if (stacks != NULL && wlb_make_printable(stacks) == 0 &&
	    wlb_standstill_clusters(stacks, wlb_terminal_columns(), stdout, &error) != 0)
		printf("  its stacks cannot be shown: %s\n", error.message);
	json_decref(stacks);
}

void wlb_show_standstills(const json_t *run)
{
	const char *name = wlb_field_text(run, "run_id", "?");
	const json_t *verdicts = json_object_get(run, "verdicts"), *attempt;
	char path[128];
	size_t i;
	snprintf(path, sizeof(path), "/v1/runs/%s/stacks?ranks=none", name);
	json_t *kept = wlb_api_get(path, NULL);
	const json_t *gatherings = json_object_get(kept, "gatherings");
	json_array_foreach(json_object_get(run, "attempts"), i, attempt)
	{
		const json_t *gathering = find_gathering(gatherings, attempt_of(attempt));
		const json_t *verdict = find_verdict(verdicts, attempt_of(attempt));
		if (gathering == NULL && verdict == NULL)
			continue;
		printf("\nStacks and collectives in progress of attempt %lld\n", (long long)attempt_of(attempt));
		if (gathering != NULL)
			print_clusters(name, gathering);
		wlb_standstill_calls(verdict, stdout);
	}
	json_decref(kept);
}
