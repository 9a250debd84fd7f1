#include "worker/data/index_writer.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/index_format.h"
#include "worker/data/temporary.h"

struct wlb_index_writer {
	char *bin_path;
	char *idx_path;
	struct wlb_temporary bin_temporary;
	struct wlb_temporary idx_temporary;
	FILE *bin;
	int32_t *lengths;
	int64_t documents;
	int64_t capacity;
	int64_t tokens;
};

struct wlb_index_writer *wlb_index_writer_new(const char *prefix, struct wlb_error *error)
{
	struct wlb_index_writer *w = calloc(1, sizeof(*w));
	if (w == NULL) {
		wlb_fail(error, "%s: out of memory", prefix);
		return NULL;
	}
	if (asprintf(&w->bin_path, "%s.bin", prefix) < 0)
		w->bin_path = NULL;
	if (asprintf(&w->idx_path, "%s.idx", prefix) < 0)
		w->idx_path = NULL;
	if (w->bin_path == NULL || w->idx_path == NULL) {
		wlb_fail(error, "%s: out of memory", prefix);
	} else {
		wlb_temporary_remove_left(w->bin_path);
		wlb_temporary_remove_left(w->idx_path);
		w->bin = wlb_temporary_open(&w->bin_temporary, w->bin_path, error);
	}
	if (w->bin == NULL) {
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
		return wlb_fail(error, "%s: a document of %lld tokens: at most 2^31 - 1 fit the format", w->bin_path,
		                (long long)count);
	if (w->documents == w->capacity) {
		int64_t capacity = w->capacity ? 2 * w->capacity : 1024;
		int32_t *lengths = reallocarray(w->lengths, (size_t)capacity, sizeof(*lengths));
		if (lengths == NULL)
			return wlb_fail(error, "%s: out of memory for %lld documents", w->idx_path,
			                (long long)capacity);
		w->lengths = lengths;
		w->capacity = capacity;
	}
	if (fwrite(tokens, sizeof(*tokens), (size_t)count, w->bin) != (size_t)count)
		return wlb_fail(error, "%s: cannot be written: %s", w->bin_path, strerror(errno));
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
	FILE *file = wlb_temporary_open(&w->idx_temporary, w->idx_path, error);
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
	return rc < 0 ? wlb_fail(error, "%s: cannot be written: %s", w->idx_path, strerror(why)) : 0;
}

/* Replaces the files of an earlier dataset, if there are any, by those that are written and synced. */
static int replace(struct wlb_index_writer *w, struct wlb_error *error)
{
	/* The old index must not exist together with the new tokens. */
	if (unlink(w->idx_path) < 0 && errno != ENOENT)
		return wlb_fail(error, "%s: cannot be replaced: %s", w->idx_path, strerror(errno));
	if (wlb_temporary_rename(&w->bin_temporary, w->bin_path, error) < 0 || wlb_parent_sync(w->bin_path, error) < 0)
		return -1;
	if (wlb_temporary_rename(&w->idx_temporary, w->idx_path, error) < 0) {
		unlink(w->bin_path);
		return -1;
	}
	/* The dataset is whole, also where it is not known whether its names would survive a power loss. */
	return wlb_parent_sync(w->idx_path, error);
}

int wlb_index_writer_commit(struct wlb_index_writer *w, struct wlb_error *error)
{
	FILE *bin = w->bin;
	w->bin = NULL;
	if (fclose(bin) != 0)
		return wlb_fail(error, "%s: cannot be written: %s", w->bin_path, strerror(errno));
	if (write_index(w, error) < 0)
		return -1;
	/* A disk that is full or fails says so here, while the old dataset is still there. */
	if (wlb_file_sync(w->bin_temporary.name, error) < 0 || wlb_file_sync(w->idx_temporary.name, error) < 0)
		return -1;
	return replace(w, error);
}

void wlb_index_writer_free(struct wlb_index_writer *w)
{
	if (w == NULL)
		return;
	if (w->bin != NULL)
		fclose(w->bin);
	wlb_temporary_remove(&w->bin_temporary);
	wlb_temporary_remove(&w->idx_temporary);
	free(w->bin_path);
	free(w->idx_path);
	free(w->lengths);
	free(w);
}
