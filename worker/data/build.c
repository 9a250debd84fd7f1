#include "worker/data/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "worker/data/find_files.h"
#include "worker/data/index_writer.h"

struct build {
	const struct wlb_build_options *options;
	struct wlb_build_result *result;
	struct wlb_index_writer *writer;
	uint16_t *tokens; /* of one document */
	int64_t capacity;
	int bad_input;
	double shown_s; /* when the progress was last shown */
};

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show_progress(struct build *b, int64_t done, int64_t files)
{
	if (!b->options->show_progress || (now_s() - b->shown_s < 0.1 && done < files))
		return;
	b->shown_s = now_s();
	fprintf(stderr, "\r%lld of %lld files, %lld documents, %.1f MB of text \033[K", (long long)done,
	        (long long)files, (long long)wlb_index_writer_documents(b->writer),
	        1e-6 * (double)wlb_index_writer_tokens(b->writer));
}

/* Writes the length + 1 tokens of a document; returns their number. */
static int64_t tokenize_bytes(const char *text, int64_t length, uint16_t *tokens)
{
	for (int64_t i = 0; i < length; i++)
		tokens[i] = (unsigned char)text[i];
	tokens[length] = WLB_BYTES_END_OF_DOCUMENT;
	return length + 1;
}

static int add_document(struct build *b, const char *text, int64_t length, struct wlb_error *error)
{
	if (length < b->options->min_bytes) {
		b->result->too_short++;
		return 0;
	}
	if (length + 1 > b->capacity) {
		uint16_t *tokens = reallocarray(b->tokens, (size_t)length + 1, 2 * sizeof(*tokens));
		if (tokens == NULL)
			return wlb_fail(error, "out of memory for a document of %lld bytes", (long long)length);
		b->tokens = tokens;
		b->capacity = 2 * (length + 1);
	}
	return wlb_index_writer_add(b->writer, b->tokens, tokenize_bytes(text, length, b->tokens), error);
}

/* Counts a file that cannot be read and is skipped, and keeps the first reason. */
static void add_unreadable(struct build *b, const struct wlb_error *why)
{
	if (b->result->unreadable++ == 0)
		b->result->first_unreadable = *why;
}

/* Whether the user has named this file, and not a directory in which it was found. */
static int is_named(const struct build *b, const char *path)
{
	for (char *const *input = b->options->inputs; *input != NULL; input++)
		if (strcmp(*input, path) == 0)
			return 1;
	return 0;
}

/* Adds all documents of one file. One that cannot be read is left out, unless some of its documents have been added:
 * the dataset would then lack the others, and nobody could tell which. One that is not text is left out, unless the
 * user has named it. */
static int add_file(struct build *b, const char *path, struct wlb_error *error)
{
	struct wlb_error why;
	struct wlb_source *source = wlb_source_open(path, &b->options->source, &why);
	if (source == NULL) {
		add_unreadable(b, &why);
		return 0;
	}
	enum wlb_source_result result;
	const char *text;
	int64_t length, before = wlb_index_writer_documents(b->writer);
	int rc = 0;
	while (rc == 0 && (result = wlb_source_next(source, &text, &length, &why)) != WLB_SOURCE_END) {
		if (result == WLB_SOURCE_DOCUMENT) {
			rc = add_document(b, text, length, error);
			continue;
		}
		int is_text = result != WLB_SOURCE_NOT_TEXT;
		if (!is_text && b->result->not_text++ == 0)
			b->result->first_not_text = why;
		if (result == WLB_SOURCE_UNREADABLE && wlb_index_writer_documents(b->writer) == before) {
			add_unreadable(b, &why);
		} else if (result == WLB_SOURCE_UNREADABLE || result == WLB_SOURCE_MALFORMED ||
		           (!is_text && is_named(b, path))) {
			b->bad_input = result != WLB_SOURCE_UNREADABLE;
			rc = wlb_fail(error, "%s", why.message);
		}
		break;
	}
	wlb_source_close(source);
	return rc;
}

static int check_interrupted(const struct build *b, struct wlb_error *error)
{
	return *b->options->source.interrupted ? wlb_fail(error, "interrupted: nothing was written") : 0;
}

static int fail_without_documents(const struct build *b, struct wlb_error *error)
{
	const struct wlb_build_result *r = b->result;
	const char *why = r->unreadable > 0 ? r->first_unreadable.message
	                  : r->not_text > 0 ? r->first_not_text.message
	                                    : "";
	return wlb_fail(error,
	                "no document was found in %s%s: %lld files, %lld not text, %lld too short, %lld symbolic "
	                "links%s, %lld unreadable%s%s",
	                b->options->inputs[0], b->options->inputs[1] ? ", ..." : "", (long long)r->files,
	                (long long)r->not_text, (long long)r->too_short, (long long)r->links,
	                r->links > 0 ? " (only followed where they are inputs themselves: give each as one)" : "",
	                (long long)r->unreadable, why[0] != '\0' ? ": " : "", why);
}

static int add_files(struct build *b, const struct wlb_found *found, struct wlb_error *error)
{
	for (int64_t i = 0; i < found->count; i++) {
		if (add_file(b, found->paths[i], error) < 0 || check_interrupted(b, error) < 0)
			return -1;
		show_progress(b, i + 1, found->count);
	}
	if (wlb_index_writer_documents(b->writer) > 0)
		return 0;
	b->bad_input = 1;
	return fail_without_documents(b, error);
}

int wlb_build(const struct wlb_build_options *options, struct wlb_build_result *result, int *bad_input,
              struct wlb_error *error)
{
	struct build b = {.options = options, .result = result};
	struct wlb_found found;
	*result = (struct wlb_build_result){0};
	*bad_input = 1;
	if (wlb_find_files(options->inputs, &found, error) < 0) {
		wlb_found_free(&found);
		return -1;
	}
	result->files = found.count;
	result->links = found.links;
	result->unreadable = found.unreadable;
	result->first_unreadable = found.first_unreadable;
	b.writer = wlb_index_writer_new(options->output_prefix, error);
	int rc = b.writer ? add_files(&b, &found, error) : -1;
	if (options->show_progress)
		fputs("\r\033[K", stderr);
	if (rc == 0)
		rc = wlb_index_writer_commit(b.writer, error);
	if (rc == 0) {
		result->documents = wlb_index_writer_documents(b.writer);
		result->tokens = wlb_index_writer_tokens(b.writer);
	}
	*bad_input = b.bad_input;
	wlb_index_writer_free(b.writer);
	wlb_found_free(&found);
	free(b.tokens);
	return rc;
}
