#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/word_digest.h"
#include "worker/checkpoint/convert.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/data/file_progress.h"

enum { WRITE_BYTES = 4 << 20, SYNC_BYTES = 64 << 20 };

static int64_t part_bytes(const struct wlb_tensor_part *p)
{
	return p->block.rows * p->block.cols * (int64_t)wlb_dtype_bytes(p->dtype);
}

/* Returns the name of the type in the format. */
static const char *format_dtype(enum wlb_dtype dtype)
{
	switch (dtype) {
	case WLB_FLOAT32:
		return "F32";
	case WLB_FLOAT64:
		return "F64";
	case WLB_BFLOAT16:
		return "BF16";
	}
	return NULL;
}

int wlb_tensor_part_check(const struct wlb_tensor_part *p, struct wlb_error *error)
{
	if (p->block.dimensions < 1 || p->block.dimensions > 2 ||
	    (p->block.dimensions == 1 && p->block.global_cols != 1))
		return wlb_fail(error, "tensor %s: %d dimensions with %lld columns: a part has 2, or 1 with 1 column",
		                p->name, p->block.dimensions, (long long)p->block.global_cols);
	if (p->block.rows < 0 || p->block.cols < 0 || p->block.row_start < 0 ||
	    p->block.row_start > p->block.global_rows - p->block.rows || p->block.col_start < 0 ||
	    p->block.col_start > p->block.global_cols - p->block.cols)
		return wlb_fail(
			error, "tensor %s: rows %lld + %lld of %lld, columns %lld + %lld of %lld: they must lie within",
			p->name, (long long)p->block.row_start, (long long)p->block.rows,
			(long long)p->block.global_rows, (long long)p->block.col_start, (long long)p->block.cols,
			(long long)p->block.global_cols);
	return wlb_dtype_check(p->dtype, error) < 0 ? wlb_fail_in(error, "tensor %s", p->name) : 0;
}

/* Sets "KIND:TENSOR" of the metadata to the text, which it takes. */
static int set_metadata(json_t *header, const char *kind, const char *tensor, json_t *text, struct wlb_error *error)
{
	char *key;
	if (asprintf(&key, "%s:%s", kind, tensor) < 0)
		return wlb_fail(error, "out of memory");
	int rc = json_object_set_new(json_object_get(header, "__metadata__"), key, text);
	free(key);
	return rc < 0 ? wlb_fail(error, "out of memory for the header of a shard") : 0;
}

/* Writes to the metadata the position of a block that is not the whole tensor. */
static int describe_block(json_t *header, const struct wlb_tensor_part *p, struct wlb_error *error)
{
	if (p->block.rows == p->block.global_rows && p->block.cols == p->block.global_cols)
		return 0;
	return set_metadata(header, "block", p->name,
	                    json_sprintf("%lld of %lld, %lld of %lld", (long long)p->block.row_start,
	                                 (long long)p->block.global_rows, (long long)p->block.col_start,
	                                 (long long)p->block.global_cols),
	                    error);
}

/* Each digest has as many digits, so that the header keeps its size when the digest becomes known. */
static int describe_digest(json_t *header, const struct wlb_tensor_part *p, uint64_t digest, struct wlb_error *error)
{
	return set_metadata(header, "digest", p->name, json_sprintf("%016" PRIx64, digest), error);
}

/* Adds the part to the header; *end is the end of the data so far. */
static int describe(json_t *header, const struct wlb_tensor_part *p, int64_t *end, struct wlb_error *error)
{
	if (wlb_tensor_part_check(p, error) < 0)
		return -1;
	if (json_object_get(header, p->name) != NULL)
		return wlb_fail(error, "tensor %s: two parts of one shard: a shard holds one block of a tensor",
		                p->name);
	json_int_t begin = *end;
	*end += part_bytes(p);
	json_t *shape = p->block.dimensions == 1
	                        ? json_pack("[I]", (json_int_t)p->block.rows)
	                        : json_pack("[I,I]", (json_int_t)p->block.rows, (json_int_t)p->block.cols);
	json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", format_dtype(p->dtype), "shape", shape,
	                          "data_offsets", begin, (json_int_t)*end);
	if (json_object_set_new(header, p->name, entry) < 0)
		return wlb_fail(error, "tensor %.200s: its name must be UTF-8, or memory is exhausted", p->name);
	return describe_block(header, p, error) < 0 ? -1 : describe_digest(header, p, 0, error);
}

/* Returns the header with spaces at its end up to a multiple of 8 bytes, so that the data are aligned. Frees `text`. */
static char *pad(char *text)
{
	char *padded = NULL;
	if (text != NULL && asprintf(&padded, "%-*s", (int)(strlen(text) + 7) / 8 * 8, text) < 0)
		padded = NULL;
	free(text);
	return padded;
}

/* Returns the header without the digests of the data; NULL on error. */
static json_t *make_header(const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	/* "format": Hugging Face's loader requires the framework of the tensors; "pt" is row-major [out, in]. */
	json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
	int64_t end = 0;
	int rc = header ? 0 : wlb_fail(error, "out of memory for the header of a shard");
	for (int i = 0; rc == 0 && i < count; i++)
		rc = describe(header, &parts[i], &end, error);
	if (rc == 0)
		return header;
	json_decref(header);
	return NULL;
}

struct wlb_safetensors_output {
	int fd; /* -1: closed */
	char *path;
	json_t *header;
	size_t unsynced_bytes;
};

/* Writes in pieces and syncs between them, so that a slow disk completes a call every few seconds. 0, or -1 with errno.
 */
static int append(struct wlb_safetensors_output *out, const void *data, size_t bytes)
{
	const char *cursor = data;
	while (bytes > 0) {
		size_t piece = bytes < WRITE_BYTES ? bytes : WRITE_BYTES;
		wlb_file_report("writing", out->path);
		if (wlb_write_all(out->fd, cursor, piece) < 0)
			return -1;
		cursor += piece;
		bytes -= piece;
		out->unsynced_bytes += piece;
		if (out->unsynced_bytes < SYNC_BYTES)
			continue;
		wlb_file_report("syncing", out->path);
		if (fdatasync(out->fd) < 0)
			return -1;
		out->unsynced_bytes = 0;
	}
	return 0;
}

/* With errno. */
static int fail_write(const struct wlb_safetensors_output *out, struct wlb_error *error)
{
	return wlb_fail(error, "%s: cannot be written: %s", out->path, strerror(errno));
}

/* Writes the header to the begin of the file: first without digests, and again, in the same place, with them. */
static int write_header(struct wlb_safetensors_output *out, struct wlb_error *error)
{
	char *text = pad(json_dumps(out->header, JSON_COMPACT));
	if (text == NULL)
		return wlb_fail(error, "out of memory for the header of a shard");
	uint64_t stored_length = htole64(strlen(text));
	int rc = lseek(out->fd, 0, SEEK_SET) < 0 || append(out, &stored_length, sizeof(stored_length)) < 0 ||
	                         append(out, text, strlen(text)) < 0
	                 ? fail_write(out, error)
	                 : 0;
	free(text);
	return rc;
}

static int create(struct wlb_safetensors_output *out, struct wlb_error *error)
{
	wlb_file_report("creating", out->path);
	out->fd = open(out->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return out->fd < 0 ? fail_write(out, error) : write_header(out, error);
}

static void free_output(struct wlb_safetensors_output *out)
{
	json_decref(out->header);
	free(out->path);
	free(out);
}

int wlb_safetensors_create(const char *path, const struct wlb_tensor_part *parts, int count,
                           struct wlb_safetensors_output **output, struct wlb_error *error)
{
	*output = NULL;
	json_t *header = make_header(parts, count, error);
	if (header == NULL)
		return -1;
	struct wlb_safetensors_output *out = calloc(1, sizeof(*out));
	if (out == NULL || (out->path = strdup(path)) == NULL) {
		free(out);
		json_decref(header);
		return wlb_fail(error, "%s: out of memory", path);
	}
	out->header = header;
	if (create(out, error) < 0) {
		wlb_safetensors_discard(out);
		return -1;
	}
	*output = out;
	return 0;
}

int wlb_safetensors_append(struct wlb_safetensors_output *out, const struct wlb_tensor_part *parts, int count,
                           struct wlb_error *error)
{
	for (int i = 0; i < count; i++) {
		struct wlb_word_digest digest = {0};
		size_t bytes = (size_t)part_bytes(&parts[i]);
		wlb_word_digest_add(&digest, parts[i].data_host, bytes);
		if (append(out, parts[i].data_host, bytes) < 0)
			return fail_write(out, error);
		if (describe_digest(out->header, &parts[i], wlb_word_digest_value(&digest), error) < 0)
			return -1;
	}
	return 0;
}

int wlb_safetensors_finish(struct wlb_safetensors_output *out, struct wlb_error *error)
{
	if (write_header(out, error) < 0) {
		wlb_safetensors_discard(out);
		return -1;
	}
	wlb_file_report("syncing", out->path);
	int rc = fsync(out->fd), why = errno;
	/* close() is where some network file systems report a full disk. */
	if (close(out->fd) < 0 && rc == 0) {
		rc = -1;
		why = errno;
	}
	out->fd = -1;
	errno = why;
	if (rc < 0) {
		fail_write(out, error);
		wlb_safetensors_discard(out);
		return -1;
	}
	free_output(out);
	return 0;
}

void wlb_safetensors_discard(struct wlb_safetensors_output *out)
{
	if (out == NULL)
		return;
	if (out->fd >= 0)
		close(out->fd);
	unlink(out->path);
	free_output(out);
}
