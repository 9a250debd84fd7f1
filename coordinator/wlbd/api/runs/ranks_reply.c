#include "coordinator/wlbd/api/runs/ranks_reply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/reports/activity_read.h"

/* ---- the index of a node in the reply ---------------------------------------------------------------------------- */

struct named_node {
	const char *name;
	int index;
};

struct node_indexes {
	struct named_node *list; /* sorted by name */
	size_t count;
	const char *last_name; /* that was looked up: most ranks are on the node of the rank before */
	int last_index;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named_node *)a)->name, ((const struct named_node *)b)->name);
}

/* Returns -1 if out of memory. */
static int open_indexes(struct node_indexes *indexes, const json_t *names)
{
	size_t count = json_array_size(names);
	*indexes = (struct node_indexes){.list = calloc(count + 1, sizeof(*indexes->list)), .last_index = -1};
	if (indexes->list == NULL)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const char *name = json_string_value(json_array_get(names, i));
		if (name != NULL)
			indexes->list[indexes->count++] = (struct named_node){name, (int)i};
	}
	qsort(indexes->list, indexes->count, sizeof(*indexes->list), by_name);
	return 0;
}

/* Returns -1 where the node is not known, or not one of the reply. */
static int index_of(struct node_indexes *indexes, const char *name)
{
	if (name == indexes->last_name)
		return indexes->last_index;
	struct named_node key = {.name = name};
	const struct named_node *found = NULL;
	if (name != NULL)
		found = bsearch(&key, indexes->list, indexes->count, sizeof(key), by_name);
	indexes->last_name = name;
	indexes->last_index = found != NULL ? found->index : -1;
	return indexes->last_index;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct output {
	FILE *out;
	size_t bytes;
};

static void put_bytes(struct output *output, const char *bytes, size_t length)
{
	fwrite_unlocked(bytes, 1, length, output->out);
	output->bytes += length;
}

static void put_text(struct output *output, const char *text)
{
	put_bytes(output, text, strlen(text));
}

/* `value` is 0 or more. A reply of many ranks has hundreds of thousands of numbers, for which printf takes several
 * times as long. */
static void put_number(struct output *output, int64_t value)
{
	char digits[24];
	char *begin = digits + sizeof(digits);
	do
		*--begin = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	put_bytes(output, begin, (size_t)(digits + sizeof(digits) - begin));
}

static void put_ms(struct output *output, double value_s)
{
	put_number(output, (int64_t)(value_s * 1000 + 0.5));
}

/* In microseconds, of either sign; null where it is not known. */
static void put_late(struct output *output, double late_s)
{
	if (isnan(late_s)) {
		put_text(output, ",null");
		return;
	}
	double late_us = fmin(1e6 * fabs(late_s) + 0.5, 1e15);
	put_text(output, late_s < 0.0 && late_us >= 1.0 ? ",-" : ",");
	put_number(output, (int64_t)late_us);
}

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

static void put_call(struct output *output, const struct wlbd_activity_call *call)
{
	put_text(output, ",[\"");
	put_text(output, wlbd_call_kind_names[call->kind]);
	put_text(output, "\",");
	put_number(output, call->group);
	put_text(output, ",");
	put_number(output, call->seq);
	put_text(output, ",");
	put_number(output, call->bytes);
	put_text(output, ",");
	put_ms(output, call->for_s);
	put_text(output, "],[");
}

static void put_groups(struct output *output, const struct wlbd_kept_activity *kept)
{
	for (int i = 0; i < kept->activity.group_count; i++) {
		const struct wlbd_activity_group *group = &kept->groups[i];
		put_text(output, i > 0 ? ",[\"" : "[\"");
		put_text(output, group->name);
		put_text(output, "\",");
		put_number(output, group->ranks);
		put_text(output, ",");
		put_number(output, group->entered);
		put_text(output, ",");
		put_number(output, group->left);
		put_text(output, "]");
	}
}

static void put_activity(struct output *output, const struct wlbd_kept_activity *kept, int64_t now_ms)
{
	const struct wlbd_activity *activity = &kept->activity;
	put_text(output, ",");
	put_number(output, now_ms > kept->arrived_ms ? now_ms - kept->arrived_ms : 0);
	put_text(output, ",");
	put_number(output, activity->step);
	put_text(output, ",\"");
	put_text(output, wlbd_activity_names[activity->kind]);
	put_text(output, "\",");
	put_ms(output, activity->for_s);
	put_text(output, ",\"");
	put_text(output, wlbd_activity_process_names[activity->process]);
	put_text(output, "\"");
	if (activity->is_in_call)
		put_call(output, &activity->call);
	else
		put_text(output, ",null,[");
	put_groups(output, kept);
	put_text(output, "]");
}

/* No more is known of it. */
static void put_process(struct output *output, const struct wlbd_rank_process *process, int64_t now_ms)
{
	put_text(output, ",");
	put_number(output, now_ms > process->reported_ms ? now_ms - process->reported_ms : 0);
	put_text(output, ",null,\"running\",null,\"");
	put_text(output, wlbd_activity_process_names[process->state]);
	put_text(output, "\",null,[],null");
}

/* What is known of a rank; NULL: nothing of that kind. */
struct known_rank {
	const struct wlbd_kept_activity *kept;
	const struct wlbd_rank_process *process;
};

static void put_rank(struct output *output, int rank, int node, const struct known_rank *of,
                     const struct wlbd_known_ranks *known)
{
	put_text(output, rank > 0 ? ",\n[" : "[");
	put_number(output, rank);
	put_text(output, ",");
	if (node >= 0)
		put_number(output, node);
	else
		put_text(output, "null");
	if (of->kept != NULL) {
		put_activity(output, of->kept, known->now_ms);
		put_late(output, wlbd_detection_late_s(known->detection, rank));
	} else if (of->process != NULL) {
		put_process(output, of->process, known->now_ms);
	}
	put_text(output, "]");
}

/* ---- the reply --------------------------------------------------------------------------------------------------- */

/* Returns the node that reported the rank, else the one that rank 0 recorded; NULL: it is not known. */
static const char *node_of(int rank, const struct known_rank *of, const struct wlbd_attempt_nodes *nodes)
{
	if (of->kept != NULL)
		return of->kept->node;
	if (of->process != NULL)
		return of->process->node;
	return nodes != NULL ? wlbd_attempt_nodes_of_rank(nodes, rank) : NULL;
}

static int count_ranks(const json_t *facts, const struct wlbd_known_ranks *known)
{
	const struct wlbd_activities *activities = known->activities;
	json_int_t count = json_integer_value(json_object_get(facts, "world_size"));
	if (known->processes != NULL && known->processes->count > count)
		count = known->processes->count;
	for (int rank = activities != NULL ? activities->size - 1 : -1; rank >= count; rank--)
		if (wlbd_activities_of(activities, rank) != NULL)
			count = rank + 1;
	return (int)count;
}

static void put_ranks(struct output *output, struct node_indexes *indexes, int count,
                      const struct wlbd_known_ranks *known)
{
	int rank = 0;
	output->bytes = 0;
	for (; rank < count && rank < WLBD_ACTIVITY_RANKS_MAX && output->bytes < WLBD_RANKS_REPLY_MAX_BYTES; rank++) {
		const struct known_rank of = {known->activities != NULL ? wlbd_activities_of(known->activities, rank)
		                                                        : NULL,
		                              wlbd_rank_processes_of(known->processes, rank)};
		put_rank(output, rank, index_of(indexes, node_of(rank, &of, known->nodes)), &of, known);
	}
	put_text(output, "],\"left_out\":");
	put_number(output, count - rank);
	put_text(output, "}");
}

char *wlbd_ranks_reply(const char *text, const json_t *facts, const struct wlbd_known_ranks *known)
{
	struct node_indexes indexes;
	char *reply = NULL;
	size_t size = 0;
	const char *end = strrchr(text, '}');
	if (end == NULL || open_indexes(&indexes, json_object_get(facts, "nodes")) != 0)
		return NULL;
	struct output output = {.out = open_memstream(&reply, &size)};
	if (output.out != NULL) {
		put_bytes(&output, text, (size_t)(end - text));
		put_text(&output, ",\"columns\":[\"rank\",\"node\",\"age_ms\",\"step\",\"activity\",\"for_ms\","
		                  "\"process\",\"call\",\"groups\",\"late_us\"],\"ranks\":[");
		put_ranks(&output, &indexes, count_ranks(facts, known), known);
		if (fclose(output.out) != 0) {
			free(reply);
			reply = NULL;
		}
	}
	free(indexes.list);
	return reply;
}
