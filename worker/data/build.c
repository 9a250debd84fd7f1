#include "worker/data/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/seconds.h"
#include "common/word_digest.h"
#include "worker/data/find_files.h"
#include "worker/data/index_writer.h"
#include "worker/data/journal.h"
#include "worker/data/progress.h"

enum { JOURNAL_PAUSE_S = 10 }; /* what a killed build loses at most */

struct build {
	const struct wlb_build_options *options;
	struct wlb_build_result *result;
	struct wlb_found found;
	struct wlb_encoder *encoder;
	struct wlb_index_writer *writer;
	int64_t added; /* documents; not all of them need be written */
	int bad_input;
	int64_t bytes_before; /* of the files that are done */
	struct wlb_progress progress;
	struct wlb_journal journal;       /* what a build with a tokenizer goes on from */
	struct wlb_journal_place *places; /* [found.count] of the files that were begun; NULL: nothing is resumed */
	int64_t begun;
	int has_journal;
	int is_written;   /* all documents */
	double journal_s; /* when it was last written */
};

/* Returns the place of the file that has document `index`, or would have it. */
static const struct wlb_journal_place *find_place(const struct build *b, int64_t index)
{
	int64_t low = b->journal.place.file, high = b->begun - 1;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;
		if (b->places[middle].added <= index)
			low = middle;
		else
			high = middle - 1;
	}
	return &b->places[low];
}

static int write_journal(struct build *b, struct wlb_error *error)
{
	if (wlb_index_writer_sync(b->writer, error) < 0)
		return -1;
	struct wlb_journal now = {
		.plan = b->journal.plan, .written = *wlb_index_writer_written(b->writer), .first = b->result->first};
	now.place = *find_place(b, now.written.documents);
	if (wlb_journal_write(b->options->output_prefix, &now, error) < 0)
		return -1;
	b->has_journal = 1;
	b->journal_s = wlb_now_s();
	return 0;
}

/* Keeps why the first conversation was refused; with strict it ends the build. */
static int take_refusal(struct build *b, struct wlb_error *error)
{
	const char *why = wlb_encoder_refusal(b->encoder);
	struct wlb_error *first = &b->result->first.refused;
	if (why[0] == '\0')
		return 0;
	if (first->message[0] == '\0')
		wlb_fail(first, "%s", why);
	if (!b->options->strict)
		return 0;
	b->bad_input = 1;
	return wlb_fail(error, "%s; without --strict it is an empty document", why);
}

static int add_document(struct build *b, const struct wlb_text *text, struct wlb_error *error)
{
	if (text->length < b->options->min_bytes) {
		b->result->omitted.too_short++;
		return 0;
	}
	if (b->added++ < b->journal.written.documents) /* an earlier build has written it */
		return 0;
	if (wlb_encoder_add(b->encoder, b->writer, text, error) < 0 || take_refusal(b, error) < 0)
		return -1;
	return b->places != NULL && wlb_now_s() - b->journal_s >= JOURNAL_PAUSE_S ? write_journal(b, error) : 0;
}

/* Counts a file that cannot be read and is skipped, and keeps the first reason. */
static void add_unreadable(struct build *b, const struct wlb_error *why)
{
	if (b->result->omitted.unreadable++ == 0)
		b->result->first.unreadable = *why;
}

/* Counts a JSON object whose text is null, or refuses it. */
static int add_no_text(struct build *b, const struct wlb_error *why, struct wlb_error *error)
{
	if (b->options->strict) {
		b->bad_input = 1;
		return wlb_fail(error, "%s; without --strict it is left out", why->message);
	}
	if (b->result->omitted.no_text++ == 0)
		b->result->first.no_text = *why;
	return 0;
}

/* Whether the user has named this file, and not a directory in which it was found. */
static int is_named(const struct build *b, const char *path)
{
	for (char *const *input = b->options->inputs; *input != NULL; input++)
		if (strcmp(*input, path) == 0)
			return 1;
	return 0;
}

static void show_progress(struct build *b, const struct wlb_source *source)
{
	const struct wlb_index_written *written = wlb_index_writer_written(b->writer);
	if (wlb_progress_is_due(&b->progress))
		wlb_progress_show(&b->progress, b->bytes_before + wlb_source_position(source), written->documents,
		                  written->tokens);
}

/* Takes a result of the source that is no document: 0 where the next one can be read, 1 where the file is done, -1
 * where the build cannot go on. One that cannot be read is left out, unless some of its documents have been added: the
 * dataset would then lack the others, and nobody could tell which. One that is not text is left out, unless the user
 * has named it. */
static int take_other(struct build *b, enum wlb_source_result result, const char *path, int has_added,
                      const struct wlb_error *why, struct wlb_error *error)
{
	if (result == WLB_SOURCE_NO_TEXT)
		return add_no_text(b, why, error);
	int is_text = result != WLB_SOURCE_NOT_TEXT;
	if (!is_text && b->result->omitted.not_text++ == 0)
		b->result->first.not_text = *why;
	if (result == WLB_SOURCE_UNREADABLE && !has_added) {
		add_unreadable(b, why);
	} else if (result == WLB_SOURCE_UNREADABLE || result == WLB_SOURCE_MALFORMED ||
	           (!is_text && is_named(b, path))) {
		b->bad_input = result != WLB_SOURCE_UNREADABLE;
		return wlb_fail(error, "%s", why->message);
	}
	return 1;
}

/* Adds all documents of one file. */
static int add_file(struct build *b, const char *path, struct wlb_error *error)
{
	struct wlb_error why;
	struct wlb_source *source = wlb_source_open(path, &b->options->source, &why);
	if (source == NULL) {
		add_unreadable(b, &why);
		return 0;
	}
	enum wlb_source_result result;
	struct wlb_text text;
	int64_t before = b->added;
	int rc = 0;
	while (rc == 0 && (result = wlb_source_next(source, &text, &why)) != WLB_SOURCE_END) {
		if (result == WLB_SOURCE_DOCUMENT)
			rc = add_document(b, &text, error);
		else
			rc = take_other(b, result, path, b->added > before, &why, error);
		show_progress(b, source);
	}
	wlb_source_close(source);
	return rc < 0 ? -1 : 0;
}

static int fail_without_documents(const struct build *b, struct wlb_error *error)
{
	const struct wlb_build_result *r = b->result;
	const char *why = r->omitted.unreadable > 0 ? r->first.unreadable.message
	                  : r->omitted.not_text > 0 ? r->first.not_text.message
	                  : r->omitted.no_text > 0  ? r->first.no_text.message
	                                            : "";
	return wlb_fail(error,
	                "no document was found in %s%s: %lld files, %lld not text, %lld too short, %lld null, %lld "
	                "symbolic links%s, %lld unreadable%s%s",
	                b->options->inputs[0], b->options->inputs[1] ? ", ..." : "", (long long)r->files,
	                (long long)r->omitted.not_text, (long long)r->omitted.too_short, (long long)r->omitted.no_text,
	                (long long)r->links,
	                r->links > 0 ? " (only followed where they are inputs themselves: give each as one)" : "",
	                (long long)r->omitted.unreadable, why[0] != '\0' ? ": " : "", why);
}

/* A conversation that is not refused has tokens, in one sequence. Where all are refused there is nothing to train. */
static int count_refused(struct build *b, struct wlb_error *error)
{
	const struct wlb_index_written *written = wlb_index_writer_written(b->writer);
	if (b->options->encoder.tokenizer.messages_key == NULL)
		return 0;
	b->result->refused = written->documents - written->sequences;
	if (written->sequences > 0)
		return 0;
	b->bad_input = 1;
	return wlb_fail(error, "each of the %lld conversations is refused, the first: %s",
	                (long long)written->documents, b->result->first.refused.message);
}

static int add_files(struct build *b, struct wlb_error *error)
{
	for (int64_t i = b->journal.place.file; i < b->found.count; i++) {
		if (b->places != NULL)
			b->places[i] = (struct wlb_journal_place){i, b->added, b->result->omitted};
		b->begun = i + 1;
		if (add_file(b, b->found.files[i].path, error) < 0)
			return -1;
		if (*b->options->source.interrupted)
			return wlb_fail(error, "interrupted%s", b->places == NULL ? ": nothing was written" : "");
		b->bytes_before += b->found.files[i].bytes;
	}
	if (b->added > 0)
		return wlb_encoder_finish(b->encoder, b->writer, error) < 0 || take_refusal(b, error) < 0
		               ? -1
		               : count_refused(b, error);
	b->bad_input = 1;
	return fail_without_documents(b, error);
}

/* Opens the writer for a build that can be resumed, which goes on where an earlier one has left its files. */
static int resume(struct build *b, struct wlb_error *error)
{
	const char *prefix = b->options->output_prefix;
	enum wlb_index_dtype dtype = wlb_encoder_dtype(b->encoder);
	uint64_t plan = b->journal.plan;
	b->places = calloc((size_t)b->found.count + 1, sizeof(*b->places));
	if (b->places == NULL)
		return wlb_fail(error, "out of memory for %lld files", (long long)b->found.count);
	int has_mask = b->options->encoder.tokenizer.messages_key != NULL;
	if (wlb_journal_read(prefix, plan, &b->journal) && b->journal.place.file < b->found.count)
		b->writer = wlb_index_writer_resume(prefix, dtype, has_mask, &b->journal.written, NULL);
	if (b->writer != NULL) {
		b->has_journal = 1;
		b->added = b->journal.place.added;
		b->result->resumed_documents = b->journal.written.documents;
		b->result->omitted = b->journal.place.omitted;
		b->result->first = b->journal.first;
		for (int64_t i = 0; i < b->journal.place.file; i++)
			b->bytes_before += b->found.files[i].bytes;
		return 0;
	}
	b->journal = (struct wlb_journal){.plan = plan};
	b->writer = wlb_index_writer_resume(prefix, dtype, has_mask, &b->journal.written, error);
	return b->writer == NULL ? -1 : 0;
}

static int commit(struct build *b, struct wlb_error *error)
{
	const struct wlb_index_written *written = wlb_index_writer_written(b->writer);
	b->result->documents = written->documents;
	b->result->tokens = written->tokens;
	char *facts = wlb_encoder_facts(b->encoder);
	int rc = facts == NULL ? wlb_fail(error, "out of memory") : wlb_index_writer_commit(b->writer, facts, error);
	free(facts);
	return rc;
}

/* Makes a digest of all that decides what is written. */
static int digest_plan(struct build *b, struct wlb_error *error)
{
	const struct wlb_build_options *o = b->options;
	char *text = NULL, *facts = wlb_encoder_facts(b->encoder);
	size_t bytes = 0;
	FILE *plan = open_memstream(&text, &bytes);
	int rc = plan == NULL || facts == NULL ? -1 : 0;
	if (rc == 0) {
		fprintf(plan, "%s%s%c%lld %d %lld\n", facts, o->source.json_key, '\0', (long long)o->min_bytes,
		        o->strict, (long long)o->source.largest_bytes);
		for (char *const *input = o->inputs; *input != NULL; input++)
			fprintf(plan, "%s%c", *input, '\0');
		for (int64_t i = 0; i < b->found.count; i++)
			fprintf(plan, "%s%c%lld %lld\n", b->found.files[i].path, '\0',
			        (long long)b->found.files[i].bytes, (long long)b->found.files[i].modified_ns);
	}
	if (plan != NULL && fclose(plan) != 0)
		rc = -1;
	if (rc == 0) {
		struct wlb_word_digest digest = {0};
		wlb_word_digest_add(&digest, text, bytes);
		b->journal.plan = wlb_word_digest_value(&digest);
	}
	free(text);
	free(facts);
	return rc < 0 ? wlb_fail(error, "out of memory for the names of the inputs") : 0;
}

/* Opens the writer. Bytes are as fast to make as to copy, so that only a build with a tokenizer is resumed. */
static int open_writer(struct build *b, struct wlb_error *error)
{
	if (b->options->encoder.tokenizer.path != NULL)
		return digest_plan(b, error) < 0 ? -1 : resume(b, error);
	b->writer = wlb_index_writer_new(b->options->output_prefix, wlb_encoder_dtype(b->encoder), error);
	return b->writer == NULL ? -1 : 0;
}

/* Makes the dataset. */
static int build(struct build *b, struct wlb_error *error)
{
	b->encoder = wlb_encoder_new(&b->options->encoder, b->options->source.interrupted, &b->bad_input, error);
	if (b->encoder == NULL)
		return -1;
	b->bad_input = 0;
	if (open_writer(b, error) < 0)
		return -1;
	b->journal_s = wlb_now_s();
	wlb_progress_begin(&b->progress, b->options->show_progress, b->found.bytes, b->bytes_before);
	int rc = add_files(b, error);
	wlb_progress_end(&b->progress);
	/* Where there is no space for the index, nothing is tokenized again. */
	if (rc == 0 && b->places != NULL)
		rc = write_journal(b, error);
	b->is_written = rc == 0;
	return rc < 0 ? -1 : commit(b, error);
}

/* Leaves the files of a build that has failed, where the same build can go on: then the message says so. */
static void leave(struct build *b, struct wlb_error *error)
{
	struct wlb_error why = *error;
	if (b->writer == NULL || b->places == NULL || b->bad_input)
		return;
	if (!b->is_written && wlb_index_writer_written(b->writer)->documents > 0)
		write_journal(b, NULL); /* where that fails, the one before is gone on from */
	if (!b->has_journal || !wlb_index_writer_leave(b->writer))
		return;
	b->writer = NULL;
	wlb_fail(error, "%s: the same command goes on from there", why.message);
}

int wlb_build(const struct wlb_build_options *options, struct wlb_build_result *result, int *bad_input,
              struct wlb_error *error)
{
	struct build b = {.options = options, .result = result};
	*result = (struct wlb_build_result){0};
	*bad_input = 1;
	int rc = wlb_find_files(options->inputs, &b.found, error);
	if (rc == 0) {
		result->files = b.found.count;
		result->links = b.found.links;
		result->omitted.unreadable = b.found.unreadable;
		result->first.unreadable = b.found.first_unreadable;
		rc = build(&b, error);
		*bad_input = b.bad_input;
	}
	if (rc < 0)
		leave(&b, error);
	if (b.writer != NULL && (rc == 0 || b.places != NULL))
		wlb_journal_remove(options->output_prefix);
	wlb_index_writer_free(b.writer);
	wlb_encoder_free(b.encoder);
	wlb_found_free(&b.found);
	free(b.places);
	return rc;
}
