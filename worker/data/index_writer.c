#include "worker/data/index_writer.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/index_format.h"
#include "worker/data/temporary.h"

struct output {
	char *path;
	char *old_path; /* where the file of an earlier dataset is while its name is given to the new one */
	int is_old_aside;
	struct wlb_temporary temporary;
};

struct wlb_index_writer {
	struct output bin;
	struct output idx;
	FILE *tokens_file;
	int32_t *lengths;
	int64_t documents;
	int64_t capacity;
	int64_t tokens;
};

static int name_output(struct output *output, const char *prefix, const char *extension, struct wlb_error *error)
{
	if (asprintf(&output->path, "%s.%s", prefix, extension) < 0)
		output->path = NULL;
	if (asprintf(&output->old_path, "%s.%s.replaced", prefix, extension) < 0)
		output->old_path = NULL;
	if (output->path == NULL || output->old_path == NULL)
		return wlb_fail(error, "%s: out of memory", prefix);
	wlb_temporary_remove_left(output->path);
	return 0;
}

static void free_output(struct output *output)
{
	wlb_temporary_remove(&output->temporary);
	free(output->old_path);
	free(output->path);
}

struct wlb_index_writer *wlb_index_writer_new(const char *prefix, struct wlb_error *error)
{
	struct wlb_index_writer *w = calloc(1, sizeof(*w));
	if (w == NULL) {
		wlb_fail(error, "%s: out of memory", prefix);
		return NULL;
	}
	if (name_output(&w->bin, prefix, "bin", error) == 0 && name_output(&w->idx, prefix, "idx", error) == 0)
		w->tokens_file = wlb_temporary_open(&w->bin.temporary, w->bin.path, error);
	if (w->tokens_file == NULL) {
		wlb_index_writer_free(w);
		return NULL;
	}
	return w;
}

int64_t wlb_index_writer_documents(const struct wlb_index_writer *w)
{
	return w->documents;
}

int64_t wlb_index_writer_tokens(const struct wlb_index_writer *w)
{
	return w->tokens;
}

int wlb_index_writer_add(struct wlb_index_writer *w, const uint16_t *tokens, int64_t count, struct wlb_error *error)
{
	if (count < 0 || count > INT32_MAX)
		return wlb_fail(error, "%s: a document of %lld tokens: at most 2^31 - 1 fit the format", w->bin.path,
		                (long long)count);
	if (w->documents == w->capacity) {
		int64_t capacity = w->capacity ? 2 * w->capacity : 1024;
		int32_t *lengths = reallocarray(w->lengths, (size_t)capacity, sizeof(*lengths));
		if (lengths == NULL)
			return wlb_fail(error, "%s: out of memory for %lld documents", w->idx.path,
			                (long long)capacity);
		w->lengths = lengths;
		w->capacity = capacity;
	}
	if (fwrite(tokens, sizeof(*tokens), (size_t)count, w->tokens_file) != (size_t)count)
		return wlb_fail(error, "%s: cannot be written: %s", w->bin.path, strerror(errno));
	w->lengths[w->documents++] = (int32_t)count;
	w->tokens += count;
	return 0;
}

static int write_u64(FILE *file, uint64_t value)
{
	uint64_t stored = htole64(value);
	return fwrite(&stored, sizeof(stored), 1, file) == 1 ? 0 : -1;
}

static int write_arrays(const struct wlb_index_writer *w, FILE *file)
{
	uint64_t pointer = 0;
	for (int64_t i = 0; i < w->documents; i++) {
		uint32_t stored = htole32((uint32_t)w->lengths[i]);
		if (fwrite(&stored, sizeof(stored), 1, file) != 1)
			return -1;
	}
	for (int64_t i = 0; i < w->documents; i++) {
		if (write_u64(file, pointer) < 0)
			return -1;
		pointer += (uint64_t)w->lengths[i] * sizeof(uint16_t);
	}
	for (int64_t i = 0; i <= w->documents; i++)
		if (write_u64(file, (uint64_t)i) < 0)
			return -1;
	return 0;
}

static int write_index(struct wlb_index_writer *w, struct wlb_error *error)
{
	FILE *file = wlb_temporary_open(&w->idx.temporary, w->idx.path, error);
	if (file == NULL)
		return -1;
	int rc = fwrite(WLB_INDEX_MAGIC, WLB_INDEX_MAGIC_BYTES, 1, file) == 1 ? 0 : -1;
	if (rc < 0 || write_u64(file, WLB_INDEX_VERSION) < 0 || fputc(WLB_INDEX_UINT16, file) == EOF ||
	    write_u64(file, (uint64_t)w->documents) < 0 || write_u64(file, (uint64_t)w->documents + 1) < 0)
		rc = -1;
	if (rc == 0)
		rc = write_arrays(w, file);
	int why = errno;
	if (fclose(file) != 0 && rc == 0) {
		rc = -1;
		why = errno;
	}
	return rc < 0 ? wlb_fail(error, "%s: cannot be written: %s", w->idx.path, strerror(why)) : 0;
}

/* Gives the file of an earlier dataset, if there is one, another name. */
static int set_old_aside(struct output *output, struct wlb_error *error)
{
	struct stat about;
	int rc = lstat(output->path, &about);
	if (rc < 0 && errno == ENOENT)
		return 0;
	if (rc < 0)
		return wlb_fail(error, "%s: cannot be examined: %s", output->path, strerror(errno));
	if (S_ISDIR(about.st_mode))
		return wlb_fail(error, "%s: is a directory: remove it, or give another prefix", output->path);
	if (rename(output->path, output->old_path) < 0)
		return wlb_fail(error, "%s: cannot be replaced: %s", output->path, strerror(errno));
	output->is_old_aside = 1;
	return 0;
}

/* Removes the new file where it has its name, and gives the name to the old one. */
static int put_old_back(const struct output *output)
{
	if (output->is_old_aside)
		return rename(output->old_path, output->path);
	return output->temporary.name == NULL ? unlink(output->path) : 0;
}

/* Undoes what was done of replace(), the index last as there. Returns -1. */
static int put_dataset_back(struct wlb_index_writer *w, struct wlb_error *error)
{
	if (put_old_back(&w->bin) == 0 && put_old_back(&w->idx) == 0)
		return -1;
	return wlb_fail_in(error,
	                   "the old dataset could not be put back: rename %s and %s to their names without .replaced",
	                   w->bin.old_path, w->idx.old_path);
}

/* Replaces the files of an earlier dataset, if there are any, by those that are written and synced. */
static int replace(struct wlb_index_writer *w, struct wlb_error *error)
{
	/* The old index must not exist together with the new tokens. Tokens without an index are no dataset, and must
	 * not replace those that an earlier build could not put back. */
	if (set_old_aside(&w->idx, error) < 0 || (w->idx.is_old_aside && set_old_aside(&w->bin, error) < 0) ||
	    wlb_temporary_rename(&w->bin.temporary, w->bin.path, error) < 0)
		return put_dataset_back(w, error);
	struct wlb_error unsynced;
	int rc = wlb_parent_sync(w->bin.path, &unsynced);
	if (wlb_temporary_rename(&w->idx.temporary, w->idx.path, error) < 0)
		return put_dataset_back(w, error);
	if (rc == 0)
		rc = wlb_parent_sync(w->idx.path, &unsynced);
	unlink(w->bin.old_path);
	unlink(w->idx.old_path);
	if (rc < 0)
		return wlb_fail(error,
		                "%s, %s: are complete and have their names, which a power loss may undo: %s: build "
		                "them again",
		                w->bin.path, w->idx.path, unsynced.message);
	return 0;
}

int wlb_index_writer_commit(struct wlb_index_writer *w, struct wlb_error *error)
{
	FILE *tokens_file = w->tokens_file;
	w->tokens_file = NULL;
	if (fclose(tokens_file) != 0)
		return wlb_fail(error, "%s: cannot be written: %s", w->bin.path, strerror(errno));
	if (write_index(w, error) < 0)
		return -1;
	/* A disk that is full or fails says so here, while the old dataset is still there. */
	if (wlb_file_sync(w->bin.temporary.name, error) < 0 || wlb_file_sync(w->idx.temporary.name, error) < 0)
		return -1;
	return replace(w, error);
}

void wlb_index_writer_free(struct wlb_index_writer *w)
{
	if (w == NULL)
		return;
	if (w->tokens_file != NULL)
		fclose(w->tokens_file);
	free_output(&w->bin);
	free_output(&w->idx);
	free(w->lengths);
	free(w);
}
