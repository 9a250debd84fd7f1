#include "worker/data/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/word_digest.h"

enum { LARGEST_BYTES = 1 << 16 };

/* What becomes PREFIX.resume.partial when it is whole. It has one name, so that one that a killed process left is
 * written again or removed. */
static const char unfinished[] = ".new";

/* PREFIX.resume.partial, with `end` behind it, which the caller frees; NULL if out of memory. */
static char *name_file(const char *prefix, const char *end)
{
	char *path;
	return asprintf(&path, "%s.resume.partial%s", prefix, end) < 0 ? NULL : path;
}

/* Copies a text that was a message. */
static void take_message(struct wlb_error *error, const char *text)
{
	snprintf(error->message, sizeof(error->message), "%s", text);
}

static int parse(const json_t *object, uint64_t plan, struct wlb_journal *j)
{
	const char *digest, *no_text, *not_text, *unreadable, *refused;
	uint64_t its_plan;
	json_int_t n[9];
	if (json_unpack((json_t *)(uintptr_t)object,
	                "{s:s, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I, s:I, s:I}, s:{s:s, s:s, s:s, s:s}}", "plan",
	                &digest, "written", "documents", &n[0], "sequences", &n[1], "tokens", &n[2], "place", "file",
	                &n[3], "added", &n[4], "too_short", &n[5], "no_text", &n[6], "not_text", &n[7], "unreadable",
	                &n[8], "first", "no_text", &no_text, "not_text", &not_text, "unreadable", &unreadable,
	                "refused", &refused) < 0 ||
	    wlb_word_digest_parse(digest, &its_plan) < 0 || its_plan != plan)
		return 0;
	for (int i = 0; i < 9; i++)
		if (n[i] < 0)
			return 0;
	*j = (struct wlb_journal){
		.plan = plan,
		.written = {.documents = n[0], .sequences = n[1], .tokens = n[2]},
		.place = {.file = n[3],
	                  .added = n[4],
	                  .omitted = {.too_short = n[5], .no_text = n[6], .not_text = n[7], .unreadable = n[8]}}};
	take_message(&j->first.no_text, no_text);
	take_message(&j->first.not_text, not_text);
	take_message(&j->first.unreadable, unreadable);
	take_message(&j->first.refused, refused);
	return j->place.added <= j->written.documents;
}

int wlb_journal_read(const char *prefix, uint64_t plan, struct wlb_journal *journal)
{
	char *path = name_file(prefix, ""), *text = NULL;
	size_t bytes;
	json_t *object = NULL;
	if (path != NULL && wlb_file_read(path, LARGEST_BYTES, &text, &bytes, NULL) == 0)
		object = json_loadb(text, bytes, 0, NULL);
	int found = object != NULL && parse(object, plan, journal);
	json_decref(object);
	free(text);
	free(path);
	return found;
}

static int write_file(const char *path, const char *text, struct wlb_error *error)
{
	FILE *file = fopen(path, "we");
	if (file == NULL)
		return wlb_fail(error, "file %s: cannot be created: %s", path, strerror(errno));
	int wrong = fputs(text, file) == EOF;
	if (fclose(file) != 0 || wrong) {
		int why = errno;
		unlink(path);
		return wlb_fail(error, "file %s: cannot be written: %s", path, strerror(why));
	}
	return 0;
}

int wlb_journal_write(const char *prefix, const struct wlb_journal *j, struct wlb_error *error)
{
	char digest[17];
	const struct wlb_omitted *o = &j->place.omitted;
	snprintf(digest, sizeof(digest), "%016" PRIx64, j->plan);
	json_t *object = json_pack(
		"{s:s, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I, s:I, s:I}, s:{s:s, s:s, s:s, s:s}}", "plan", digest,
		"written", "documents", (json_int_t)j->written.documents, "sequences", (json_int_t)j->written.sequences,
		"tokens", (json_int_t)j->written.tokens, "place", "file", (json_int_t)j->place.file, "added",
		(json_int_t)j->place.added, "too_short", (json_int_t)o->too_short, "no_text", (json_int_t)o->no_text,
		"not_text", (json_int_t)o->not_text, "unreadable", (json_int_t)o->unreadable, "first", "no_text",
		j->first.no_text.message, "not_text", j->first.not_text.message, "unreadable",
		j->first.unreadable.message, "refused", j->first.refused.message);
	char *path = name_file(prefix, ""), *new_path = name_file(prefix, unfinished);
	char *text = object == NULL ? NULL : json_dumps(object, JSON_INDENT(2));
	int rc = path == NULL || new_path == NULL || text == NULL ? wlb_fail(error, "%s: out of memory", prefix)
	                                                          : write_file(new_path, text, error);
	rc = rc == 0 ? wlb_file_commit(new_path, path, error) : rc;
	json_decref(object);
	free(text);
	free(new_path);
	free(path);
	return rc;
}

void wlb_journal_remove(const char *prefix)
{
	char *paths[] = {name_file(prefix, ""), name_file(prefix, unfinished)};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (paths[i] != NULL)
			unlink(paths[i]);
		free(paths[i]);
	}
}
