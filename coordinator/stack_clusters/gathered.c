#include "coordinator/stack_clusters/gathered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *name, const char *fallback)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text != NULL ? text : fallback;
}

static const json_t *frames_of(const json_t *rank)
{
	return json_object_get(json_array_get(json_object_get(rank, "threads"), 0), "frames");
}

static int allocate(struct wlb_gathered *gathered)
{
	size_t count = json_array_size(gathered->ranks), frames = 0;
	for (size_t i = 0; i < count; i++)
		frames += json_array_size(frames_of(json_array_get(gathered->ranks, i))) + 1;
	gathered->count = (int32_t)count;
	gathered->stacks = calloc(count + 1, sizeof(*gathered->stacks));
	gathered->states = calloc(count + 1, sizeof(*gathered->states));
	gathered->frames = calloc(frames + 1, sizeof(*gathered->frames));
	return gathered->stacks != NULL && gathered->states != NULL && gathered->frames != NULL ? 0 : -1;
}

/* Of a rank without a stack, what the kernel says of it counts as its frame. */
static void name_state(const json_t *rank, char text[96])
{
	const json_t *thread = json_array_get(json_object_get(rank, "threads"), 0);
	const char *waits_in = text_of(thread, "waits_in", "");
	snprintf(text, 96, "%s, state %s, no stack (kernel)", *waits_in != '\0' ? waits_in : "?",
	         text_of(thread, "state", text_of(rank, "state", "?")));
}

/* Returns -1 where an entry is none. */
static int read_stack(struct wlb_gathered *gathered, int32_t i, size_t *used)
{
	const json_t *rank = json_array_get(gathered->ranks, (size_t)i), *frames = frames_of(rank), *frame;
	const json_t *number = json_object_get(rank, "rank");
	const char **list = gathered->frames + *used;
	int32_t count = 0;
	size_t k;
	json_array_foreach((json_t *)frames, k, frame)
	{
		if (!json_is_string(frame))
			return -1;
		list[count++] = json_string_value(frame);
	}
	if (count == 0) {
		name_state(rank, gathered->states[i]);
		list[count++] = gathered->states[i];
	}
	gathered->stacks[i] = (struct wlb_verdict_stack){(int32_t)json_integer_value(number), list, count};
	*used += (size_t)count;
	return json_is_integer(number) && json_integer_value(number) <= INT32_MAX ? 0 : -1;
}

int wlb_gathered_read(const json_t *reply, struct wlb_gathered *gathered, struct wlb_error *error)
{
	struct wlb_verdict_error why = {""};
	size_t used = 0;
	*gathered = (struct wlb_gathered){.reply = reply, .ranks = json_object_get(reply, "ranks")};
	if (!json_is_array(gathered->ranks))
		return wlb_fail(error, "the coordinator's reply has no list of ranks; upgrade wlbd");
	if (allocate(gathered) != 0 || wlb_stack_sets_make(reply, &gathered->sets) != 0)
		return wlb_fail(error, "out of memory for the stacks of %zu ranks", json_array_size(gathered->ranks));
	for (int32_t i = 0; i < gathered->count; i++)
		if (read_stack(gathered, i, &used) != 0)
			return wlb_fail(error, "ranks[%d] of the coordinator's reply is no rank with frames", (int)i);
	gathered->clusters = wlb_verdict_clusters_new(gathered->stacks, gathered->count, gathered->sets.list,
	                                              gathered->sets.count, &why);
	return gathered->clusters != NULL ? 0 : wlb_fail(error, "%s", why.message);
}

void wlb_gathered_free(struct wlb_gathered *gathered)
{
	wlb_verdict_clusters_free(gathered->clusters);
	wlb_stack_sets_free(&gathered->sets);
	free(gathered->stacks);
	free(gathered->states);
	free(gathered->frames);
	*gathered = (struct wlb_gathered){0};
}

const json_t *wlb_gathered_rank(const struct wlb_gathered *gathered, int32_t rank)
{
	for (int32_t i = 0; i < gathered->count; i++)
		if (gathered->stacks[i].rank == rank)
			return json_array_get(gathered->ranks, (size_t)i);
	return NULL;
}

void wlb_gathered_frame(const char *frame, char *text, size_t size)
{
	const char *offset = strstr(frame, "+0x");
	if (offset != NULL)
		snprintf(text, size, "%.*s%s", (int)(offset - frame), frame,
		         offset + 3 + strspn(offset + 3, "0123456789abcdef"));
	else
		snprintf(text, size, "%s", frame);
}
