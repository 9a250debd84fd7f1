#include "worker/checkpoint/safetensors.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/element_checksum.h"
#include "common/word_digest.h"
#include "worker/checkpoint/convert.h"
#include "worker/data/input.h"

enum {
	LENGTH_BYTES = 8,
	LARGEST_HEADER_BYTES = 100000000, /* the format's own bound */
	CHUNK_BYTES = 1 << 16,
};

struct wlb_safetensors {
	char *path;
	int fd;
	int64_t bytes;
	int64_t data_start;
	json_t *header; /* owns the names of the tensors */
	struct wlb_stored_tensor *tensors;
	int count;
};

static const struct {
	const char *name;
	int bytes;
	enum wlb_stored stored;
} dtypes[] = {
	{"F64", 8, WLB_STORED_F64},    {"F32", 4, WLB_STORED_F32},       {"F16", 2, WLB_STORED_F16},
	{"BF16", 2, WLB_STORED_BF16},  {"I64", 8, WLB_STORED_OTHER},     {"I32", 4, WLB_STORED_OTHER},
	{"I16", 2, WLB_STORED_OTHER},  {"I8", 1, WLB_STORED_OTHER},      {"U64", 8, WLB_STORED_OTHER},
	{"U32", 4, WLB_STORED_OTHER},  {"U16", 2, WLB_STORED_OTHER},     {"U8", 1, WLB_STORED_OTHER},
	{"BOOL", 1, WLB_STORED_OTHER}, {"F8_E4M3", 1, WLB_STORED_OTHER}, {"F8_E5M2", 1, WLB_STORED_OTHER},
};

/* Sets dtype_name and stored. Returns the bytes of one element, or -1. */
static int parse_dtype(const json_t *value, struct wlb_stored_tensor *t, struct wlb_error *error)
{
	const char *name = json_string_value(value);
	for (size_t i = 0; name != NULL && i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		if (strcmp(dtypes[i].name, name) == 0) {
			t->dtype_name = dtypes[i].name;
			t->stored = dtypes[i].stored;
			return dtypes[i].bytes;
		}
	}
	return wlb_fail(error, "dtype is '%.40s': it must be one of the format's names, such as F32",
	                name ? name : "not a string");
}

/* Sets dimensions, rows and cols; their product cannot overflow afterwards. */
static int parse_shape(const json_t *shape, struct wlb_stored_tensor *t, struct wlb_error *error)
{
	if (!json_is_array(shape))
		return wlb_fail(error, "shape is missing or not an array");
	t->block.dimensions = (int)json_array_size(shape);
	t->block.rows = t->block.cols = 1;
	int64_t elements = 1;
	for (int i = 0; i < t->block.dimensions; i++) {
		const json_t *value = json_array_get(shape, (size_t)i);
		int64_t n = json_integer_value(value);
		if (!json_is_integer(value) || n < 0)
			return wlb_fail(error, "shape[%d] is %lld: it must be a whole number, not negative", i,
			                (long long)n);
		if (__builtin_mul_overflow(i == 0 ? 1 : t->block.cols, n, i == 0 ? &t->block.rows : &t->block.cols) ||
		    __builtin_mul_overflow(elements, n, &elements))
			return wlb_fail(error, "shape has more than 2^63 elements");
	}
	return 0;
}

static int parse_offsets(const json_t *offsets, int64_t element_bytes, int64_t data_bytes, struct wlb_stored_tensor *t,
                         struct wlb_error *error)
{
	const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
	if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
		return wlb_fail(error, "data_offsets must be two whole numbers");
	t->begin = json_integer_value(begin);
	t->end = json_integer_value(end);
	if (t->begin < 0 || t->end < t->begin || t->end > data_bytes)
		return wlb_fail(error,
		                "data_offsets [%lld, %lld] leave the file's %lld bytes of data: it is truncated or "
		                "damaged",
		                (long long)t->begin, (long long)t->end, (long long)data_bytes);
	int64_t bytes;
	if (__builtin_mul_overflow(t->block.rows * t->block.cols, element_bytes, &bytes) || bytes != t->end - t->begin)
		return wlb_fail(error, "data_offsets [%lld, %lld] do not hold %lld x %lld elements of %s",
		                (long long)t->begin, (long long)t->end, (long long)t->block.rows,
		                (long long)t->block.cols, t->dtype_name);
	return 0;
}

static int fits(int64_t start, int64_t count, int64_t whole)
{
	return start >= 0 && count >= 0 && count <= whole && start <= whole - count;
}

/* Sets *text to "KIND:TENSOR" of the metadata, NULL where there is none. */
static int find_metadata(const json_t *metadata, const char *kind, const char *tensor, const char **text,
                         struct wlb_error *error)
{
	char *key;
	if (asprintf(&key, "%s:%s", kind, tensor) < 0)
		return wlb_fail(error, "out of memory");
	*text = json_string_value(json_object_get(metadata, key));
	free(key);
	return 0;
}

/* Reads which elements of its block the file has from "range:NAME" of the metadata: "BEGIN of ROWS", or "BEGIN of ROWS
 * x COLS". The data have one dimension then. */
static int parse_range(const json_t *metadata, struct wlb_stored_tensor *t, struct wlb_error *error)
{
	const char *range;
	int64_t count = t->block.rows * t->block.cols, elements;
	long long begin, rows, cols = 1;
	int used = 0;
	t->range = (struct wlb_element_range){0, count};
	if (find_metadata(metadata, "range", t->name, &range, error) < 0)
		return -1;
	if (range == NULL)
		return 0;
	int read = sscanf(range, "%18lld of %18lld%n x %18lld%n", &begin, &rows, &used, &cols, &used);
	if (read < 2 || range[used] != '\0' || rows < 0 || cols < 0 || __builtin_mul_overflow(rows, cols, &elements) ||
	    t->block.dimensions != 1 || !fits(begin, count, elements))
		return wlb_fail(error,
		                "range is '%.100s': it must be 'BEGIN of ROWS' or 'BEGIN of ROWS x COLS' and hold the "
		                "%lld elements of one dimension",
		                range, (long long)count);
	t->block.dimensions = read - 1;
	t->block.rows = rows;
	t->block.cols = cols;
	t->range = (struct wlb_element_range){begin, begin + count};
	return 0;
}

/* Reads the block from "block:NAME" of the metadata: "ROW of ROWS, COL of COLS". */
static int parse_block(const json_t *metadata, struct wlb_stored_tensor *t, struct wlb_error *error)
{
	const char *block;
	t->block.row_start = t->block.col_start = 0;
	t->block.global_rows = t->block.rows;
	t->block.global_cols = t->block.cols;
	if (find_metadata(metadata, "block", t->name, &block, error) < 0)
		return -1;
	if (block == NULL)
		return 0;
	long long row, rows, col, cols;
	int used = 0;
	if (sscanf(block, "%18lld of %18lld, %18lld of %18lld%n", &row, &rows, &col, &cols, &used) != 4 ||
	    block[used] != '\0' || !fits(row, t->block.rows, rows) || !fits(col, t->block.cols, cols))
		return wlb_fail(error,
		                "block is '%.100s': it must be 'ROW of ROWS, COL of COLS' and hold %lld rows of %lld",
		                block, (long long)t->block.rows, (long long)t->block.cols);
	t->block.row_start = row;
	t->block.global_rows = rows;
	t->block.col_start = col;
	t->block.global_cols = cols;
	return 0;
}

/* Reads the checksum from "checksum:NAME" of the metadata. */
static int parse_checksum(const json_t *metadata, struct wlb_stored_tensor *t, struct wlb_error *error)
{
	const char *checksum;
	if (find_metadata(metadata, "checksum", t->name, &checksum, error) < 0)
		return -1;
	if (checksum != NULL && wlb_word_digest_parse(checksum, &t->checksum) < 0)
		return wlb_fail(error, "checksum is '%.40s': it must be 16 hexadecimal digits", checksum);
	t->has_checksum = checksum != NULL;
	return 0;
}

static int parse_tensor(const struct wlb_safetensors *f, const json_t *entry, struct wlb_stored_tensor *t,
                        struct wlb_error *error)
{
	if (!json_is_object(entry))
		return wlb_fail(error, "tensor %.200s: it must be an object", t->name);
	int element_bytes = parse_dtype(json_object_get(entry, "dtype"), t, error);
	if (element_bytes < 0 || parse_shape(json_object_get(entry, "shape"), t, error) < 0 ||
	    parse_offsets(json_object_get(entry, "data_offsets"), element_bytes, f->bytes - f->data_start, t, error) <
	            0 ||
	    parse_range(json_object_get(f->header, "__metadata__"), t, error) < 0 ||
	    parse_block(json_object_get(f->header, "__metadata__"), t, error) < 0 ||
	    parse_checksum(json_object_get(f->header, "__metadata__"), t, error) < 0)
		return wlb_fail_in(error, "tensor %.200s", t->name);
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct wlb_stored_tensor *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name(const void *a, const void *b)
{
	const struct wlb_stored_tensor *x = a, *y = b;
	return strcmp(x->name, y->name);
}

/* Checks that the tensors follow each other and fill the data, then sorts them by name. */
static int check_places(struct wlb_safetensors *f, struct wlb_error *error)
{
	int64_t offset = 0;
	qsort(f->tensors, (size_t)f->count, sizeof(*f->tensors), by_place);
	for (int i = 0; i < f->count; i++) {
		if (f->tensors[i].begin != offset)
			return wlb_fail(
				error,
				"tensor %.200s: its data begin at byte %lld, where the one before ends at %lld: "
				"gaps and overlaps are not allowed",
				f->tensors[i].name, (long long)f->tensors[i].begin, (long long)offset);
		offset = f->tensors[i].end;
	}
	if (offset != f->bytes - f->data_start)
		return wlb_fail(error,
		                "the tensors end at byte %lld of %lld bytes of data: all must belong to a tensor",
		                (long long)offset, (long long)(f->bytes - f->data_start));
	qsort(f->tensors, (size_t)f->count, sizeof(*f->tensors), by_name);
	return 0;
}

static int parse_tensors(struct wlb_safetensors *f, struct wlb_error *error)
{
	const char *name;
	json_t *entry;
	f->tensors = calloc(json_object_size(f->header) + 1, sizeof(*f->tensors));
	if (f->tensors == NULL)
		return wlb_fail(error, "out of memory for %zu tensors", json_object_size(f->header));
	json_object_foreach(f->header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0)
			continue;
		struct wlb_stored_tensor *t = &f->tensors[f->count++];
		t->name = name;
		if (parse_tensor(f, entry, t, error) < 0)
			return -1;
	}
	return check_places(f, error);
}

/* Reads and parses the JSON, sets data_start. */
static int read_header(struct wlb_safetensors *f, struct wlb_error *error)
{
	uint64_t length;
	if (f->bytes < LENGTH_BYTES)
		return wlb_fail(error, "has %lld bytes: the header's length alone needs %d, it is truncated",
		                (long long)f->bytes, LENGTH_BYTES);
	int rc = wlb_input_read(f->fd, f->path, &length, sizeof(length), 0, error);
	if (rc < 0)
		return rc;
	length = le64toh(length);
	if (length > LARGEST_HEADER_BYTES || length > (uint64_t)f->bytes - LENGTH_BYTES)
		return wlb_fail(error, "header length is %llu: it must be at most %d and fit the file's %lld bytes",
		                (unsigned long long)length, LARGEST_HEADER_BYTES, (long long)f->bytes);
	f->data_start = LENGTH_BYTES + (int64_t)length;
	char *text = malloc(length + 1);
	if (text == NULL) {
		wlb_fail(error, "out of memory for a header of %llu bytes", (unsigned long long)length);
		return WLB_UNREADABLE;
	}
	rc = wlb_input_read(f->fd, f->path, text, length, LENGTH_BYTES, error);
	json_error_t json_error = {0};
	if (rc == 0) {
		f->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
		if (!json_is_object(f->header))
			rc = wlb_fail(error, "header: %s: it must be one JSON object",
			              f->header ? "an array" : json_error.text);
	}
	free(text);
	return rc;
}

int wlb_safetensors_try_open(const char *path, struct wlb_safetensors **file, struct wlb_error *error)
{
	struct wlb_safetensors *f = *file = calloc(1, sizeof(*f));
	if (f == NULL || (f->path = strdup(path)) == NULL) {
		free(f);
		*file = NULL;
		wlb_fail(error, "%s: out of memory", path);
		return WLB_UNREADABLE;
	}
	f->fd = wlb_input_open(path, &f->bytes, error);
	int rc = f->fd < 0 ? f->fd : 0;
	if (rc == 0 && ((rc = read_header(f, error)) < 0 || (rc = parse_tensors(f, error)) < 0))
		wlb_fail_in(error, "%s", path);
	if (rc == 0)
		return 0;
	wlb_safetensors_close(f);
	*file = NULL;
	return rc;
}

struct wlb_safetensors *wlb_safetensors_open(const char *path, struct wlb_error *error)
{
	struct wlb_safetensors *file;
	wlb_safetensors_try_open(path, &file, error);
	return file;
}

void wlb_safetensors_close(struct wlb_safetensors *f)
{
	if (f == NULL)
		return;
	if (f->fd >= 0)
		close(f->fd);
	json_decref(f->header);
	free(f->tensors);
	free(f->path);
	free(f);
}

int64_t wlb_safetensors_bytes(const struct wlb_safetensors *f)
{
	return f->bytes;
}

int wlb_safetensors_tensors(const struct wlb_safetensors *f, const struct wlb_stored_tensor **tensors)
{
	*tensors = f->tensors;
	return f->count;
}

const struct wlb_stored_tensor *wlb_safetensors_find(const struct wlb_safetensors *f, const char *name)
{
	struct wlb_stored_tensor key = {.name = name};
	if (f->count == 0)
		return NULL;
	return bsearch(&key, f->tensors, (size_t)f->count, sizeof(*f->tensors), by_name);
}

/* Reads `count` elements of the block that follow each other from `first` on, and converts them. */
static int read_run(const struct wlb_safetensors *f, const struct wlb_stored_tensor *t, int64_t first, int64_t count,
                    enum wlb_dtype dtype, char *out, uint64_t *checksum, struct wlb_error *error)
{
	char chunk[CHUNK_BYTES];
	int stored_bytes = wlb_stored_bytes(t->stored);
	int64_t offset = f->data_start + t->begin + (first - t->range.begin) * stored_bytes;
	int64_t place = wlb_safetensors_place(t) + first - t->range.begin;
	if (first < t->range.begin || first + count > t->range.end)
		return wlb_fail(error, "%s: tensor %.200s: elements %lld to %lld are asked for, it has %lld to %lld",
		                f->path, t->name, (long long)first, (long long)(first + count),
		                (long long)t->range.begin, (long long)t->range.end);
	while (count > 0) {
		int64_t n = count < CHUNK_BYTES / stored_bytes ? count : CHUNK_BYTES / stored_bytes;
		if (wlb_input_read(f->fd, f->path, chunk, (size_t)(n * stored_bytes), offset, error) < 0)
			return -1;
		if (wlb_convert(t->stored, chunk, dtype, out, n, error) < 0)
			return wlb_fail_in(error, "%s: tensor %.200s", f->path, t->name);
		*checksum += wlb_element_checksum(chunk, stored_bytes, place, n);
		place += n;
		out += n * (int64_t)wlb_dtype_bytes(dtype);
		offset += n * stored_bytes;
		count -= n;
	}
	return 0;
}

int wlb_safetensors_read(const struct wlb_safetensors *f, const struct wlb_stored_tensor *t,
                         const struct wlb_stored_range *range, enum wlb_dtype dtype, void *out, int64_t stride,
                         uint64_t *checksum, struct wlb_error *error)
{
	if (wlb_stored_bytes(t->stored) == 0)
		return wlb_fail(error, "%s: tensor %.200s: dtype is %s: weights are F64, F32, BF16 or F16", f->path,
		                t->name, t->dtype_name);
	if (!fits(range->row, range->rows, t->block.rows) || !fits(range->col, range->cols, t->block.cols))
		return wlb_fail(
			error,
			"%s: tensor %.200s: rows %lld + %lld, columns %lld + %lld are asked for, it has %lld x %lld",
			f->path, t->name, (long long)range->row, (long long)range->rows, (long long)range->col,
			(long long)range->cols, (long long)t->block.rows, (long long)t->block.cols);
	/* Whole rows are contiguous in both the file and `out`. */
	int whole = range->cols == t->block.cols && stride == range->cols;
	int64_t runs = whole ? 1 : range->rows, count = whole ? range->rows * range->cols : range->cols;
	for (int64_t i = 0; i < runs; i++) {
		char *to = (char *)out + i * stride * (int64_t)wlb_dtype_bytes(dtype);
		if (read_run(f, t, (range->row + i) * t->block.cols + range->col, count, dtype, to, checksum, error) <
		    0)
			return -1;
	}
	return 0;
}

int wlb_safetensors_read_all(const struct wlb_safetensors *f, const struct wlb_stored_tensor *t, enum wlb_dtype dtype,
                             void *out, uint64_t *checksum, struct wlb_error *error)
{
	return read_run(f, t, t->range.begin, t->range.end - t->range.begin, dtype, out, checksum, error);
}

/* What the data of a tensor have of checksum and digest. */
struct found {
	uint64_t checksum;
	struct wlb_word_digest digest;
};

/* Reads all data of the tensor. */
static int sum_data(const struct wlb_safetensors *f, const struct wlb_stored_tensor *t, struct found *found,
                    struct wlb_error *error)
{
	char chunk[CHUNK_BYTES]; /* a multiple of the digest's stride */
	int element_bytes = wlb_stored_bytes(t->stored) > 0 ? wlb_stored_bytes(t->stored) : 1;
	int64_t place = wlb_safetensors_place(t);
	for (int64_t offset = t->begin; offset < t->end; offset += CHUNK_BYTES) {
		size_t bytes = (size_t)(t->end - offset < CHUNK_BYTES ? t->end - offset : CHUNK_BYTES);
		int rc = wlb_input_read(f->fd, f->path, chunk, bytes, f->data_start + offset, error);
		if (rc < 0)
			return rc;
		int64_t count = (int64_t)bytes / element_bytes;
		found->checksum += wlb_element_checksum(chunk, element_bytes, place, count);
		place += count;
		wlb_word_digest_add(&found->digest, chunk, bytes);
	}
	return 0;
}

int wlb_safetensors_verify(const struct wlb_safetensors *f, const struct wlb_stored_tensor *t, uint64_t digest,
                           struct wlb_error *error)
{
	struct found found = {0};
	if (!t->has_checksum && digest == 0)
		return 0;
	int rc = sum_data(f, t, &found, error);
	if (rc < 0)
		return rc;
	uint64_t saved = t->has_checksum ? t->checksum : digest;
	uint64_t read = t->has_checksum ? found.checksum : wlb_word_digest_value(&found.digest);
	if (read == saved)
		return 0;
	wlb_fail(error,
	         "%s: tensor %.200s: its data have the %s %016" PRIx64 ", those that were saved have %016" PRIx64
	         ": they are damaged",
	         f->path, t->name, t->has_checksum ? "checksum" : "digest", read, saved);
	return WLB_DAMAGED;
}
