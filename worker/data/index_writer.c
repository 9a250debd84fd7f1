#include "worker/data/index_writer.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "worker/data/temporary.h"

struct output {
	char *path;
	char *old_path; /* where the file of an earlier dataset is while its name is given to the new one */
	int is_old_aside;
	int has_name; /* the new file has its name */
	struct wlb_temporary temporary;
};

struct wlb_index_writer {
	enum wlb_index_dtype dtype;
	char *lengths; /* the path of which the temporary file is that of lengths_file; the file itself never exists */
	struct wlb_temporary lengths_temporary;
	struct output bin;
	struct output mask;
	struct output facts;
	struct output idx;
	FILE *tokens_file;
	FILE *mask_file;    /* NULL: there is none */
	FILE *lengths_file; /* of each document the number of its sequences and the length of each, as int32_t */
	struct wlb_index_written written;
};

static size_t token_bytes(const struct wlb_index_writer *w)
{
	return w->dtype == WLB_INDEX_UINT16 ? sizeof(uint16_t) : sizeof(int32_t);
}

static int name_output(struct output *output, const char *prefix, const char *extension, struct wlb_error *error)
{
	if (asprintf(&output->path, "%s.%s", prefix, extension) < 0)
		output->path = NULL;
	if (asprintf(&output->old_path, "%s.%s.replaced", prefix, extension) < 0)
		output->old_path = NULL;
	if (output->path == NULL || output->old_path == NULL)
		return wlb_fail(error, "%s: out of memory", prefix);
	return 0;
}

static void free_output(struct output *output)
{
	wlb_temporary_remove(&output->temporary);
	free(output->old_path);
	free(output->path);
}

/* Names all files and opens none. */
static struct wlb_index_writer *name_files(const char *prefix, enum wlb_index_dtype dtype, struct wlb_error *error)
{
	struct wlb_index_writer *w = calloc(1, sizeof(*w));
	if (w == NULL) {
		wlb_fail(error, "%s: out of memory", prefix);
		return NULL;
	}
	w->dtype = dtype;
	if (asprintf(&w->lengths, "%s.lengths", prefix) < 0) {
		w->lengths = NULL;
		wlb_fail(error, "%s: out of memory", prefix);
	} else if (name_output(&w->bin, prefix, "bin", error) == 0 &&
	           name_output(&w->mask, prefix, "loss_mask", error) == 0 &&
	           name_output(&w->facts, prefix, "facts.json", error) == 0 &&
	           name_output(&w->idx, prefix, "idx", error) == 0) {
		return w;
	}
	wlb_index_writer_free(w);
	return NULL;
}

/* Removes what killed processes have left. */
static void remove_left(const struct wlb_index_writer *w)
{
	const char *const paths[] = {w->bin.path, w->mask.path, w->facts.path, w->idx.path, w->lengths};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		wlb_temporary_remove_left(paths[i]);
}

struct wlb_index_writer *wlb_index_writer_new(const char *prefix, enum wlb_index_dtype dtype, struct wlb_error *error)
{
	struct wlb_index_writer *w = name_files(prefix, dtype, error);
	if (w == NULL)
		return NULL;
	remove_left(w);
	w->tokens_file = wlb_temporary_open(&w->bin.temporary, w->bin.path, error);
	if (w->tokens_file != NULL)
		w->lengths_file = wlb_temporary_open(&w->lengths_temporary, w->lengths, error);
	if (w->lengths_file != NULL)
		return w;
	wlb_index_writer_free(w);
	return NULL;
}

/* Reads all lengths, and counts. Returns 0 where they end too early or one is not possible. */
static int count_written(FILE *lengths, int64_t documents, struct wlb_index_written *counted)
{
	rewind(lengths);
	for (; counted->documents < documents; counted->documents++) {
		int32_t sequences, length;
		if (fread(&sequences, sizeof(sequences), 1, lengths) != 1 || sequences < 0)
			return 0;
		counted->sequences += sequences;
		for (int32_t s = 0; s < sequences; s++, counted->tokens += length)
			if (fread(&length, sizeof(length), 1, lengths) != 1 || length < 0)
				return 0;
	}
	return fseek(lengths, 0, SEEK_END) == 0;
}

/* Opens the files that another process has left, and checks that they are what it says. */
static int open_again(struct wlb_index_writer *w, int has_mask, const struct wlb_index_written *written,
                      struct wlb_error *error)
{
	const int64_t most = INT64_MAX / 16;
	if (written->documents > most || written->sequences > most || written->tokens > most)
		return wlb_fail(error, "%s: what was written is not known", w->bin.path);
	w->tokens_file = wlb_temporary_open_again(&w->bin.temporary, w->bin.path,
	                                          written->tokens * (int64_t)token_bytes(w), error);
	if (w->tokens_file == NULL)
		return -1;
	if (has_mask)
		w->mask_file = wlb_temporary_open_again(&w->mask.temporary, w->mask.path, written->tokens, error);
	if (has_mask && w->mask_file == NULL)
		return -1;
	w->lengths_file =
		wlb_temporary_open_again(&w->lengths_temporary, w->lengths,
	                                 (int64_t)sizeof(int32_t) * (written->documents + written->sequences), error);
	if (w->lengths_file == NULL)
		return -1;
	if (!count_written(w->lengths_file, written->documents, &w->written) ||
	    w->written.sequences != written->sequences || w->written.tokens != written->tokens)
		return wlb_fail(error, "%s: was changed since it was written", w->lengths_temporary.name);
	return 0;
}

struct wlb_index_writer *wlb_index_writer_resume(const char *prefix, enum wlb_index_dtype dtype, int has_mask,
                                                 const struct wlb_index_written *written, struct wlb_error *error)
{
	struct wlb_index_writer *w = name_files(prefix, dtype, error);
	if (w == NULL)
		return NULL;
	if (written->documents == 0)
		remove_left(w);
	if (open_again(w, has_mask, written, error) == 0)
		return w;
	wlb_index_writer_free(w);
	return NULL;
}

int wlb_index_writer_sync(struct wlb_index_writer *w, struct wlb_error *error)
{
	if (fflush(w->tokens_file) != 0 || fdatasync(fileno(w->tokens_file)) < 0)
		return wlb_fail(error, "%s: cannot be written: %s", w->bin.path, strerror(errno));
	if (w->mask_file != NULL && (fflush(w->mask_file) != 0 || fdatasync(fileno(w->mask_file)) < 0))
		return wlb_fail(error, "%s: cannot be written: %s", w->mask.path, strerror(errno));
	if (fflush(w->lengths_file) != 0 || fdatasync(fileno(w->lengths_file)) < 0)
		return wlb_fail(error, "%s: cannot be written: %s", w->lengths_temporary.name, strerror(errno));
	return 0;
}

int wlb_index_writer_leave(struct wlb_index_writer *w)
{
	if (w->bin.temporary.name == NULL)
		return 0;
	wlb_temporary_leave(&w->bin.temporary);
	wlb_temporary_leave(&w->mask.temporary);
	wlb_temporary_leave(&w->lengths_temporary);
	wlb_index_writer_free(w);
	return 1;
}

const struct wlb_index_written *wlb_index_writer_written(const struct wlb_index_writer *w)
{
	return &w->written;
}

/* Writes tokens as the elements of .bin. */
static int write_tokens(struct wlb_index_writer *w, const int32_t *tokens, int64_t count)
{
	enum { BLOCK_TOKENS = 4096 };
	uint16_t narrow[BLOCK_TOKENS];
	if (w->dtype != WLB_INDEX_UINT16)
		return fwrite(tokens, sizeof(*tokens), (size_t)count, w->tokens_file) == (size_t)count ? 0 : -1;
	for (int64_t done = 0; done < count; done += BLOCK_TOKENS) {
		size_t block = (size_t)(count - done < BLOCK_TOKENS ? count - done : BLOCK_TOKENS);
		for (size_t i = 0; i < block; i++)
			narrow[i] = (uint16_t)tokens[done + (int64_t)i];
		if (fwrite(narrow, sizeof(narrow[0]), block, w->tokens_file) != block)
			return -1;
	}
	return 0;
}

int wlb_index_writer_add(struct wlb_index_writer *w, const int32_t *tokens, const int32_t *lengths, int32_t sequences,
                         struct wlb_error *error)
{
	int64_t count = 0;
	for (int32_t s = 0; s < sequences; s++)
		count += lengths[s];
	if (write_tokens(w, tokens, count) < 0)
		return wlb_fail(error, "%s: cannot be written: %s", w->bin.path, strerror(errno));
	if (fwrite(&sequences, sizeof(sequences), 1, w->lengths_file) != 1 ||
	    fwrite(lengths, sizeof(*lengths), (size_t)sequences, w->lengths_file) != (size_t)sequences)
		return wlb_fail(error, "%s: cannot be written: %s", w->lengths_temporary.name, strerror(errno));
	w->written.documents++;
	w->written.sequences += sequences;
	w->written.tokens += count;
	return 0;
}

int wlb_index_writer_add_mask(struct wlb_index_writer *w, const uint8_t *mask, size_t tokens, struct wlb_error *error)
{
	if (fwrite(mask, 1, tokens, w->mask_file) != tokens)
		return wlb_fail(error, "%s: cannot be written: %s", w->mask.path, strerror(errno));
	return 0;
}

static int write_u64(FILE *file, uint64_t value)
{
	uint64_t stored = htole64(value);
	return fwrite(&stored, sizeof(stored), 1, file) == 1 ? 0 : -1;
}

enum array { LENGTHS, POINTERS, DOCUMENTS };

/* Writes the element of a sequence of `length` tokens, if the array has one, and moves *position behind it. */
static int write_sequence(const struct wlb_index_writer *w, FILE *file, enum array array, int32_t length,
                          uint64_t *position)
{
	uint32_t stored = htole32((uint32_t)length);
	if (array == DOCUMENTS)
		return 0;
	if (array == LENGTHS)
		return fwrite(&stored, sizeof(stored), 1, file) == 1 ? 0 : -1;
	uint64_t pointer = *position;
	*position += (uint64_t)length * token_bytes(w);
	return write_u64(file, pointer);
}

/* Writes an array of the index from the lengths, which are read once for each: so memory does not grow with them. */
static int write_array(const struct wlb_index_writer *w, FILE *file, enum array array)
{
	uint64_t position = 0;
	rewind(w->lengths_file);
	for (int64_t d = 0; d < w->written.documents; d++) {
		int32_t sequences, length;
		if (fread(&sequences, sizeof(sequences), 1, w->lengths_file) != 1)
			return -1;
		for (int32_t s = 0; s < sequences; s++)
			if (fread(&length, sizeof(length), 1, w->lengths_file) != 1 ||
			    write_sequence(w, file, array, length, &position) < 0)
				return -1;
		if (array == DOCUMENTS && write_u64(file, position += (uint64_t)sequences) < 0)
			return -1;
	}
	return 0;
}

static int write_content(const struct wlb_index_writer *w, FILE *file)
{
	return fwrite(WLB_INDEX_MAGIC, WLB_INDEX_MAGIC_BYTES, 1, file) != 1 || write_u64(file, WLB_INDEX_VERSION) < 0 ||
	                       fputc((int)w->dtype, file) == EOF ||
	                       write_u64(file, (uint64_t)w->written.sequences) < 0 ||
	                       write_u64(file, (uint64_t)w->written.documents + 1) < 0 ||
	                       write_array(w, file, LENGTHS) < 0 || write_array(w, file, POINTERS) < 0 ||
	                       write_u64(file, 0) < 0 || write_array(w, file, DOCUMENTS) < 0
	               ? -1
	               : 0;
}

/* Closes a file after it was written with result `rc`. */
static int close_written(FILE *file, const char *path, int rc, struct wlb_error *error)
{
	int why = errno;
	if (fclose(file) != 0 && rc == 0) {
		rc = -1;
		why = errno;
	}
	return rc < 0 ? wlb_fail(error, "%s: cannot be written: %s", path, strerror(why)) : 0;
}

static int close_mask(struct wlb_index_writer *w, struct wlb_error *error)
{
	FILE *file = w->mask_file;
	w->mask_file = NULL;
	return file == NULL ? 0 : close_written(file, w->mask.path, 0, error);
}

static int write_index(struct wlb_index_writer *w, struct wlb_error *error)
{
	FILE *file = wlb_temporary_open(&w->idx.temporary, w->idx.path, error);
	return file == NULL ? -1 : close_written(file, w->idx.path, write_content(w, file), error);
}

static int write_facts(struct wlb_index_writer *w, const char *facts, struct wlb_error *error)
{
	FILE *file = wlb_temporary_open(&w->facts.temporary, w->facts.path, error);
	return file == NULL ? -1 : close_written(file, w->facts.path, fputs(facts, file) < 0 ? -1 : 0, error);
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

static int give_name(struct output *output, struct wlb_error *error)
{
	if (wlb_temporary_rename(&output->temporary, output->path, error) < 0)
		return -1;
	output->has_name = 1;
	return 0;
}

/* Removes the new file where it has its name, and gives the name to the old one. */
static int put_old_back(const struct output *output)
{
	if (output->is_old_aside)
		return rename(output->old_path, output->path);
	return output->has_name ? unlink(output->path) : 0;
}

/* Undoes what was done of replace(), the index last as there. Returns -1. */
static int put_dataset_back(struct wlb_index_writer *w, struct wlb_error *error)
{
	if (put_old_back(&w->bin) == 0 && put_old_back(&w->mask) == 0 && put_old_back(&w->facts) == 0 &&
	    put_old_back(&w->idx) == 0)
		return -1;
	return wlb_fail_in(error,
	                   "the old dataset could not be put back: rename %s, %s, %s and, where there is one, %s to "
	                   "their names without .replaced",
	                   w->bin.old_path, w->facts.old_path, w->idx.old_path, w->mask.old_path);
}

/* Tokens without a mask must not be found beside that of other tokens, whose index is gone. */
static int give_mask_its_name(struct wlb_index_writer *w, struct wlb_error *error)
{
	if (w->mask.temporary.name != NULL)
		return give_name(&w->mask, error);
	if (unlink(w->mask.path) < 0 && errno != ENOENT)
		return wlb_fail(error, "%s: cannot be removed: %s", w->mask.path, strerror(errno));
	return 0;
}

/* Replaces the files of an earlier dataset, if there are any, by those that are written and synced. */
static int replace(struct wlb_index_writer *w, struct wlb_error *error)
{
	/* The old index must not exist together with the new tokens. Tokens without an index are no dataset, and must
	 * not replace those that an earlier build could not put back. */
	if (set_old_aside(&w->idx, error) < 0 ||
	    (w->idx.is_old_aside && (set_old_aside(&w->bin, error) < 0 || set_old_aside(&w->mask, error) < 0 ||
	                             set_old_aside(&w->facts, error) < 0)) ||
	    give_name(&w->bin, error) < 0 || give_mask_its_name(w, error) < 0 || give_name(&w->facts, error) < 0)
		return put_dataset_back(w, error);
	struct wlb_error unsynced;
	int rc = wlb_parent_sync(w->bin.path, &unsynced);
	if (give_name(&w->idx, error) < 0)
		return put_dataset_back(w, error);
	if (rc == 0)
		rc = wlb_parent_sync(w->idx.path, &unsynced);
	unlink(w->bin.old_path);
	unlink(w->mask.old_path);
	unlink(w->facts.old_path);
	unlink(w->idx.old_path);
	if (rc < 0)
		return wlb_fail(error,
		                "%s, %s: are complete and have their names, which a power loss may undo: %s: build "
		                "them again",
		                w->bin.path, w->idx.path, unsynced.message);
	return 0;
}

int wlb_index_writer_commit(struct wlb_index_writer *w, const char *facts, struct wlb_error *error)
{
	FILE *tokens_file = w->tokens_file;
	w->tokens_file = NULL;
	if (close_written(tokens_file, w->bin.path, 0, error) < 0 || close_mask(w, error) < 0 ||
	    write_facts(w, facts, error) < 0 || write_index(w, error) < 0)
		return -1;
	/* A disk that is full or fails says so here, while the old dataset is still there. */
	if (wlb_file_sync(w->bin.temporary.name, error) < 0 ||
	    (w->mask.temporary.name != NULL && wlb_file_sync(w->mask.temporary.name, error) < 0) ||
	    wlb_file_sync(w->facts.temporary.name, error) < 0 || wlb_file_sync(w->idx.temporary.name, error) < 0)
		return -1;
	return replace(w, error);
}

void wlb_index_writer_free(struct wlb_index_writer *w)
{
	if (w == NULL)
		return;
	if (w->tokens_file != NULL)
		fclose(w->tokens_file);
	if (w->mask_file != NULL)
		fclose(w->mask_file);
	if (w->lengths_file != NULL)
		fclose(w->lengths_file);
	free_output(&w->bin);
	free_output(&w->mask);
	free_output(&w->facts);
	free_output(&w->idx);
	wlb_temporary_remove(&w->lengths_temporary);
	free(w->lengths);
	free(w);
}
