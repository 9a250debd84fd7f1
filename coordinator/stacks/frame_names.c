#include "coordinator/stacks/frame_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/stacks/demangle.h"
#include "libwlb/hash.h"

enum {
	BUCKETS = 4096,
	FUNCTION_MAX = 140,      /* the beginning of a longer name */
	SHORT_FUNCTION_MAX = 80, /* where the line of source is known */
	SOURCE_MAX = 52,
	FILE_MAX = 40,
	TEXT_SIZE = 201,
};

struct entry {
	struct entry *next;
	char *module; /* NULL: none */
	uint64_t offset;
	char text[TEXT_SIZE];
};

struct wlb_frame_names {
	struct entry *buckets[BUCKETS];
};

static size_t bucket_of(const struct wlb_frame *frame)
{
	uint64_t hash = wlb_hash_text(WLB_HASH_OF_NOTHING, frame->module != NULL ? frame->module : "");
	hash = wlb_hash_number(hash, frame->offset);
	return (hash ^ hash >> 32) % BUCKETS;
}

static int is_same(const struct entry *entry, const struct wlb_frame *frame)
{
	if (entry->offset != frame->offset || (entry->module == NULL) != (frame->module == NULL))
		return 0;
	return entry->module == NULL || strcmp(entry->module, frame->module) == 0;
}

struct wlb_frame_names *wlb_frame_names_new(void)
{
	return calloc(1, sizeof(struct wlb_frame_names));
}

void wlb_frame_names_free(struct wlb_frame_names *names)
{
	for (int i = 0; names != NULL && i < BUCKETS; i++)
		for (struct entry *entry = names->buckets[i], *next; entry != NULL; entry = next) {
			next = entry->next;
			free(entry->module);
			free(entry);
		}
	free(names);
}

const char *wlb_frame_name_known(const struct wlb_frame_names *names, const struct wlb_frame *frame)
{
	for (const struct entry *entry = names->buckets[bucket_of(frame)]; entry != NULL; entry = entry->next)
		if (is_same(entry, frame))
			return entry->text;
	return NULL;
}

/* Names are those of files that a user has made. */
static void write_text(const struct wlb_frame *frame, char text[TEXT_SIZE])
{
	const char *module = frame->module != NULL ? frame->module : "no file";
	const char *slash = strrchr(module, '/');
	const char *file = slash != NULL ? slash + 1 : module;
	if (strncmp(file, "[vdso", 5) == 0) /* libdw adds the process */
		file = "[vdso]";
	if (frame->function != NULL) {
		bool has_source = frame->source != NULL;
		char function[FUNCTION_MAX + 1];
		wlb_demangle(frame->function, function, has_source ? SHORT_FUNCTION_MAX + 1 : FUNCTION_MAX + 1);
		snprintf(text, TEXT_SIZE, "%s+0x%llx%s%.*s (%.*s)", function,
		         (unsigned long long)frame->function_offset, has_source ? " at " : "", SOURCE_MAX,
		         has_source ? frame->source : "", FILE_MAX, file);
	} else {
		snprintf(text, TEXT_SIZE, "0x%llx (%.*s)", (unsigned long long)frame->offset, FILE_MAX, file);
	}
	for (char *c = text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

const char *wlb_frame_name(struct wlb_frame_names *names, const struct wlb_frame *frame)
{
	const char *known = wlb_frame_name_known(names, frame);
	if (known != NULL)
		return known;
	struct entry *entry = calloc(1, sizeof(*entry));
	char *module = frame->module != NULL ? strdup(frame->module) : NULL;
	if (entry == NULL || (module == NULL && frame->module != NULL)) {
		free(entry);
		free(module);
		return NULL;
	}
	size_t bucket = bucket_of(frame);
	entry->module = module;
	entry->offset = frame->offset;
	write_text(frame, entry->text);
	entry->next = names->buckets[bucket];
	names->buckets[bucket] = entry;
	return entry->text;
}
