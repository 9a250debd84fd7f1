#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/element_checksum.h"
#include "common/file.h"
#include "worker/checkpoint/convert.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/data/file_progress.h"

enum { WRITE_BYTES = 4 << 20, WINDOW_BYTES = 64 << 20 };

static int64_t part_elements(const struct wlb_tensor_part *p)
{
	const struct wlb_element_range range = wlb_tensor_part_range(p);
	return range.end - range.begin;
}

static int64_t part_bytes(const struct wlb_tensor_part *p)
{
	return part_elements(p) * (int64_t)wlb_dtype_bytes(p->dtype);
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
	const struct wlb_element_range range = wlb_tensor_part_range(p);
	if (range.begin < 0 || range.begin > range.end || range.end > wlb_tensor_block_elements(&p->block))
		return wlb_fail(error, "tensor %s: elements %lld to %lld: the block has %lld", p->name,
		                (long long)range.begin, (long long)range.end,
		                (long long)wlb_tensor_block_elements(&p->block));
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

/* Writes to the metadata which elements of the block the data are, where they are not all. */
static int describe_range(json_t *header, const struct wlb_tensor_part *p, struct wlb_error *error)
{
	long long begin = wlb_tensor_part_range(p).begin, rows = p->block.rows, cols = p->block.cols;
	if (part_elements(p) == wlb_tensor_block_elements(&p->block))
		return 0;
	return set_metadata(header, "range", p->name,
	                    p->block.dimensions == 1 ? json_sprintf("%lld of %lld", begin, rows)
	                                             : json_sprintf("%lld of %lld x %lld", begin, rows, cols),
	                    error);
}

/* Each checksum has as many digits, so that the header keeps its size when the checksum becomes known. */
static int describe_checksum(json_t *header, const struct wlb_tensor_part *p, uint64_t checksum,
                             struct wlb_error *error)
{
	return set_metadata(header, "checksum", p->name, json_sprintf("%016" PRIx64, checksum), error);
}

/* Adds the part to the header; *end is the end of the data so far. */
static int describe(json_t *header, const struct wlb_tensor_part *p, int has_checksums, int64_t *end,
                    struct wlb_error *error)
{
	if (wlb_tensor_part_check(p, error) < 0)
		return -1;
	if (json_object_get(header, p->name) != NULL)
		return wlb_fail(error, "tensor %s: two parts of one shard: a shard holds one block of a tensor",
		                p->name);
	json_int_t begin = *end;
	*end += part_bytes(p);
	bool is_flat = p->block.dimensions == 1 || part_elements(p) < wlb_tensor_block_elements(&p->block);
	json_t *shape = is_flat ? json_pack("[I]", (json_int_t)part_elements(p))
	                        : json_pack("[I,I]", (json_int_t)p->block.rows, (json_int_t)p->block.cols);
	json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", format_dtype(p->dtype), "shape", shape,
	                          "data_offsets", begin, (json_int_t)*end);
	if (json_object_set_new(header, p->name, entry) < 0)
		return wlb_fail(error, "tensor %.200s: its name must be UTF-8, or memory is exhausted", p->name);
	if (describe_block(header, p, error) < 0 || describe_range(header, p, error) < 0)
		return -1;
	return has_checksums ? describe_checksum(header, p, 0, error) : 0;
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

/* Returns the header, in which the checksums of the data are 0; NULL on error. */
static json_t *make_header(const struct wlb_tensor_part *parts, int count, int has_checksums, struct wlb_error *error)
{
	/* "format": Hugging Face's loader requires the framework of the tensors; "pt" is row-major [out, in]. */
	json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
	int64_t end = 0;
	int rc = header ? 0 : wlb_fail(error, "out of memory for the header of a shard");
	for (int i = 0; rc == 0 && i < count; i++)
		rc = describe(header, &parts[i], has_checksums, &end, error);
	if (rc == 0)
		return header;
	json_decref(header);
	return NULL;
}

int64_t wlb_safetensors_size(const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	json_t *header = make_header(parts, count, 1, error);
	char *text = header != NULL ? pad(json_dumps(header, JSON_COMPACT)) : NULL;
	int64_t bytes = text != NULL ? (int64_t)(sizeof(uint64_t) + strlen(text)) : -1;
	if (header != NULL && text == NULL)
		wlb_fail(error, "out of memory for the header of a shard");
	for (int i = 0; bytes >= 0 && i < count; i++)
		bytes += part_bytes(&parts[i]);
	json_decref(header);
	free(text);
	return bytes;
}

struct wlb_safetensors_output {
	int fd; /* -1: closed */
	char *path;
	json_t *header;
	int64_t bytes;         /* of the file so far */
	int64_t started_bytes; /* up to here the system has been told to write to the disk */
	int64_t place;         /* of the next element, safetensors.h */
};

/* The disk writes while the next data are computed, one window after the other. The wait for the window before bounds
 * what is not on the disk yet, so that a slow disk completes a call every few seconds. 0, or -1 with errno. */
static int start_window(struct wlb_safetensors_output *out)
{
	const unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	int64_t begin = out->started_bytes, end = out->bytes;
	out->started_bytes = end;
	wlb_file_report("syncing", out->path);
	int rc = sync_file_range(out->fd, begin, end - begin, SYNC_FILE_RANGE_WRITE);
	if (rc == 0 && begin > 0)
		rc = sync_file_range(out->fd, 0, begin, wait);
	return rc < 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT) ? -1 : 0; /* fsync follows at the end */
}

/* 0, or -1 with errno. */
static int append(struct wlb_safetensors_output *out, const void *data, size_t bytes)
{
	wlb_file_report("writing", out->path);
	if (wlb_write_all(out->fd, data, bytes) < 0)
		return -1;
	out->bytes += (int64_t)bytes;
	return out->bytes - out->started_bytes < WINDOW_BYTES ? 0 : start_window(out);
}

/* With errno. */
static int fail_write(const struct wlb_safetensors_output *out, struct wlb_error *error)
{
	return wlb_fail(error, "%s: cannot be written: %s", out->path, strerror(errno));
}

/* Writes the header to the begin of the file: first without checksums, and again, in the same place, with them. */
static int write_header(struct wlb_safetensors_output *out, struct wlb_error *error)
{
	char *text = pad(json_dumps(out->header, JSON_COMPACT));
	if (text == NULL)
		return wlb_fail(error, "out of memory for the header of a shard");
	uint64_t stored_length = htole64(strlen(text));
	wlb_file_report("writing", out->path);
	int rc = lseek(out->fd, 0, SEEK_SET) < 0 || wlb_write_all(out->fd, &stored_length, sizeof(stored_length)) < 0 ||
	                         wlb_write_all(out->fd, text, strlen(text)) < 0
	                 ? fail_write(out, error)
	                 : 0;
	free(text);
	return rc;
}

static int create(struct wlb_safetensors_output *out, struct wlb_error *error)
{
	wlb_file_report("creating", out->path);
	out->fd = open(out->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out->fd < 0)
		return fail_write(out, error);
	if (write_header(out, error) < 0)
		return -1;
	out->bytes = lseek(out->fd, 0, SEEK_CUR);
	return 0;
}

static void free_output(struct wlb_safetensors_output *out)
{
	json_decref(out->header);
	free(out->path);
	free(out);
}

static int create_output(const char *path, const struct wlb_tensor_part *parts, int count, int has_checksums,
                         struct wlb_safetensors_output **output, struct wlb_error *error)
{
	*output = NULL;
	json_t *header = make_header(parts, count, has_checksums, error);
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

int wlb_safetensors_create(const char *path, const struct wlb_tensor_part *parts, int count,
                           struct wlb_safetensors_output **output, struct wlb_error *error)
{
	return create_output(path, parts, count, 1, output, error);
}

int wlb_safetensors_create_plain(const char *path, const struct wlb_tensor_part *parts, int count,
                                 struct wlb_safetensors_output **output, struct wlb_error *error)
{
	return create_output(path, parts, count, 0, output, error);
}

int wlb_safetensors_append_data(struct wlb_safetensors_output *out, const void *data, size_t bytes,
                                struct wlb_error *error)
{
	return append(out, data, bytes) < 0 ? fail_write(out, error) : 0;
}

/* Writes the data of a part, piece by piece. 0, or -1 with errno. */
static int append_part(struct wlb_safetensors_output *out, const struct wlb_tensor_part *part, uint64_t *checksum)
{
	const char *cursor = part->data_host, *end = cursor + part_bytes(part);
	int element_bytes = (int)wlb_dtype_bytes(part->dtype);
	while (cursor < end) {
		size_t bytes = end - cursor < WRITE_BYTES ? (size_t)(end - cursor) : WRITE_BYTES;
		int64_t elements = (int64_t)bytes / element_bytes;
		*checksum += wlb_element_checksum(cursor, element_bytes, out->place, elements);
		if (append(out, cursor, bytes) < 0)
			return -1;
		out->place += elements;
		cursor += bytes;
	}
	return 0;
}

int wlb_safetensors_append(struct wlb_safetensors_output *out, const struct wlb_tensor_part *parts, int count,
                           struct wlb_error *error)
{
	for (int i = 0; i < count; i++) {
		uint64_t checksum = 0;
		if (append_part(out, &parts[i], &checksum) < 0)
			return fail_write(out, error);
		if (describe_checksum(out->header, &parts[i], checksum, error) < 0)
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
