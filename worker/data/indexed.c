#include "worker/data/indexed.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/index_format.h"
#include "common/word_digest.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"
#include "worker/data/loss_mask.h"

enum {
	READ_CHUNK_TOKENS = 8192,
	TYPE_OFFSET = 17,           /* of the code of the element type, in the header */
	ENTRIES_A_REPORT = 1 << 20, /* of the index: a few MiB */
	WINDOWS = 256,              /* of .bin, in the digest of the tokens */
	WINDOW_BYTES = 4096,
};

struct wlb_indexed {
	char *idx_path;
	char *bin_path;
	unsigned char *idx; /* mapped */
	int64_t idx_bytes;
	int bin_fd;
	int64_t bin_bytes;
	enum wlb_index_dtype dtype;
	int token_bytes;
	int64_t sequences;
	int64_t documents;
	int64_t from, to;             /* the sequences that are there */
	uint64_t index_digest;        /* 0: not made */
	uint64_t token_digest;        /* 0: not made */
	const unsigned char *lengths; /* into idx, as are the next two; unaligned */
	const unsigned char *pointers;
	const unsigned char *document_starts;
	struct wlb_loss_mask mask;
};

static uint64_t load_u64(const unsigned char *from)
{
	uint64_t value;
	memcpy(&value, from, sizeof(value));
	return le64toh(value);
}

static int32_t sequence_length(const struct wlb_indexed *d, int64_t sequence)
{
	uint32_t value;
	memcpy(&value, d->lengths + 4 * sequence, sizeof(value));
	return (int32_t)le32toh(value);
}

static int64_t sequence_pointer(const struct wlb_indexed *d, int64_t sequence)
{
	return (int64_t)load_u64(d->pointers + 8 * sequence);
}

/* Returns the first sequence of the document; where `document` is the number of documents, the number of sequences. */
static int64_t document_start(const struct wlb_indexed *d, int64_t document)
{
	return (int64_t)load_u64(d->document_starts + 8 * document);
}

/* The same among the sequences that are there. */
static int64_t start_there(const struct wlb_indexed *d, int64_t document)
{
	int64_t start = document_start(d, document);
	return start < d->from ? d->from : start > d->to ? d->to : start;
}

/* Returns the bytes of one token, or 0 for a code that is not an integer type of tokens. */
static int dtype_bytes(int code)
{
	switch (code) {
	case WLB_INDEX_UINT8:
	case WLB_INDEX_INT8:
		return 1;
	case WLB_INDEX_INT16:
	case WLB_INDEX_UINT16:
		return 2;
	case WLB_INDEX_INT32:
		return 4;
	case WLB_INDEX_INT64:
		return 8;
	default:
		return 0;
	}
}

static int check_header(struct wlb_indexed *d, struct wlb_error *error)
{
	const unsigned char *h = d->idx;
	if (d->idx_bytes < WLB_INDEX_HEADER_BYTES)
		return wlb_fail(error, "%s: has %lld bytes, an index header alone has %d: it is truncated", d->idx_path,
		                (long long)d->idx_bytes, WLB_INDEX_HEADER_BYTES);
	if (memcmp(h, WLB_INDEX_MAGIC, WLB_INDEX_MAGIC_BYTES) != 0)
		return wlb_fail(error, "%s: magic is not MMIDIDX: it is not a Megatron-LM index", d->idx_path);
	if (load_u64(h + 9) != WLB_INDEX_VERSION)
		return wlb_fail(error, "%s: version is %llu: it must be %d", d->idx_path,
		                (unsigned long long)load_u64(h + 9), WLB_INDEX_VERSION);
	d->dtype = h[TYPE_OFFSET];
	d->token_bytes = dtype_bytes(h[TYPE_OFFSET]);
	if (d->token_bytes == 0)
		return wlb_fail(error,
		                "%s: dtype code is %d: tokens are 1 (uint8), 2 (int8), 3 (int16), 4 (int32), "
		                "5 (int64) or 8 (uint16)",
		                d->idx_path, h[TYPE_OFFSET]);
	return 0;
}

/* Checks that the counts fit the file, exactly or with the modes after the arrays, and sets where the arrays begin. */
static int check_counts(struct wlb_indexed *d, struct wlb_error *error)
{
	uint64_t sequences = load_u64(d->idx + 18), entries = load_u64(d->idx + 26);
	uint64_t space = (uint64_t)d->idx_bytes;
	if (sequences > space / 12)
		return wlb_fail(
			error,
			"%s: sequence count is %llu: a file of %llu bytes holds fewer, it is truncated or damaged",
			d->idx_path, (unsigned long long)sequences, (unsigned long long)space);
	if (entries < 1 || entries > space / 8)
		return wlb_fail(error,
		                "%s: document count is %llu: it must be at least 1 and fit the file's %llu bytes",
		                d->idx_path, (unsigned long long)entries, (unsigned long long)space);
	uint64_t needed = WLB_INDEX_HEADER_BYTES + 12 * sequences + 8 * entries;
	if (space != needed && space != needed + sequences)
		return wlb_fail(error, "%s: has %llu bytes: sequence count %llu and document count %llu need %llu",
		                d->idx_path, (unsigned long long)space, (unsigned long long)sequences,
		                (unsigned long long)entries, (unsigned long long)needed);
	d->sequences = (int64_t)sequences;
	d->documents = (int64_t)entries - 1;
	d->to = d->sequences;
	d->lengths = d->idx + WLB_INDEX_HEADER_BYTES;
	d->pointers = d->lengths + 4 * sequences;
	d->document_starts = d->pointers + 8 * sequences;
	return 0;
}

/* An index of many documents takes long to read; the watchdog is to see that it goes on. */
static void report_progress(const struct wlb_indexed *d, int64_t entry)
{
	if (entry % ENTRIES_A_REPORT == 0)
		wlb_file_report("reading", d->idx_path);
}

/* Returns where share `share` of `shares` of so many entries begins. */
static int64_t share_begin(int64_t entries, int share, int shares)
{
	return entries / shares * share + entries % shares * share / shares;
}

/* Checks a sequence, and sets *end to the byte of .bin where it ends. */
static int check_sequence(const struct wlb_indexed *d, int64_t s, int64_t *end, struct wlb_error *error)
{
	int64_t length = sequence_length(d, s), pointer = sequence_pointer(d, s);
	if (length < 0)
		return wlb_fail(error, "%s: length of sequence %lld is %lld: it must not be negative", d->idx_path,
		                (long long)s, (long long)length);
	if (pointer < 0 || __builtin_add_overflow(pointer, length * d->token_bytes, end) || *end > d->bin_bytes)
		return wlb_fail(error,
		                "%s: sequence %lld lies at byte %lld with %lld tokens, but %s has %lld bytes: it is "
		                "truncated or of another build",
		                d->idx_path, (long long)s, (long long)pointer, (long long)length, d->bin_path,
		                (long long)d->bin_bytes);
	return 0;
}

int wlb_indexed_check_sequences(const struct wlb_indexed *d, int share, int shares, int *has_gaps,
                                struct wlb_error *error)
{
	int64_t begin = share_begin(d->sequences, share, shares), end = share_begin(d->sequences, share + 1, shares);
	int64_t next = 0; /* where the next sequence is if all are one behind the other */
	struct wlb_error of_other_share;
	wlb_file_report("reading", d->idx_path);
	*has_gaps = begin > 0 && check_sequence(d, begin - 1, &next, &of_other_share) < 0;
	for (int64_t s = begin; s < end; s++) {
		report_progress(d, s);
		*has_gaps |= sequence_pointer(d, s) != next;
		if (check_sequence(d, s, &next, error) < 0)
			return -1;
	}
	return 0;
}

/* A .bin of another build may hold all sequences of the index, and other tokens in their places. Only of an index that
 * has its sequences one behind the other is the end known: others may use a part of a .bin. */
int wlb_indexed_check_end(const struct wlb_indexed *d, struct wlb_error *error)
{
	int64_t end = 0;
	if (d->sequences > 0 && check_sequence(d, d->sequences - 1, &end, error) < 0)
		return -1;
	if (end == d->bin_bytes)
		return 0;
	return wlb_fail(error,
	                "%s: the last sequence ends at byte %lld, but %s has %lld bytes: it is of another build; build "
	                "both files together",
	                d->idx_path, (long long)end, d->bin_path, (long long)d->bin_bytes);
}

int wlb_indexed_check_documents(const struct wlb_indexed *d, int share, int shares, struct wlb_error *error)
{
	int64_t begin = share_begin(d->documents, share, shares), end = share_begin(d->documents, share + 1, shares);
	if (share == 0 && document_start(d, 0) != 0)
		return wlb_fail(error, "%s: the first document starts at sequence %lld: it must start at 0",
		                d->idx_path, (long long)document_start(d, 0));
	for (int64_t i = begin; i < end; i++) {
		report_progress(d, i);
		if (document_start(d, i + 1) < document_start(d, i))
			return wlb_fail(error, "%s: document %lld ends at sequence %lld, before its start %lld",
			                d->idx_path, (long long)i, (long long)document_start(d, i + 1),
			                (long long)document_start(d, i));
	}
	if (share == shares - 1 && document_start(d, d->documents) != d->sequences)
		return wlb_fail(error, "%s: the last document ends at sequence %lld: it must end at the last, %lld",
		                d->idx_path, (long long)document_start(d, d->documents), (long long)d->sequences);
	return 0;
}

/* Returns how many of the documents start before the sequence, of an index that has been checked. */
static int64_t documents_before(const struct wlb_indexed *d, int64_t sequence)
{
	int64_t low = 0, high = d->documents;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (document_start(d, middle) < sequence)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void wlb_indexed_narrow(struct wlb_indexed *d, int64_t from, int64_t to, int64_t *first, int64_t *end)
{
	d->from = from;
	d->to = to;
	*end = documents_before(d, to);
	*first = from < to ? documents_before(d, from + 1) - 1 : *end; /* the one that has sequence `from` */
}

/* As wlb_input_open. That a user may not read a file is found again by each later try. */
static int open_part(const char *path, int64_t *bytes, struct wlb_error *error)
{
	int fd = wlb_input_open(path, bytes, error);
	return fd == WLB_UNREADABLE && access(path, R_OK) < 0 && errno == EACCES ? -1 : fd;
}

static int map_index(struct wlb_indexed *d, struct wlb_error *error)
{
	int fd = open_part(d->idx_path, &d->idx_bytes, error);
	if (fd < 0)
		return fd;
	int rc = 0;
	if (d->idx_bytes > 0) { /* an empty file cannot be mapped; check_header refuses it */
		d->idx = mmap(NULL, (size_t)d->idx_bytes, PROT_READ, MAP_SHARED, fd, 0);
		if (d->idx == MAP_FAILED) {
			d->idx = NULL;
			wlb_fail(error, "%s: cannot be mapped: %s", d->idx_path, strerror(errno));
			rc = WLB_UNREADABLE;
		}
	}
	close(fd);
	return rc;
}

static int make_paths(struct wlb_indexed *d, const char *prefix, struct wlb_error *error)
{
	if (asprintf(&d->idx_path, "%s.idx", prefix) < 0)
		d->idx_path = NULL;
	if (asprintf(&d->bin_path, "%s.bin", prefix) < 0)
		d->bin_path = NULL;
	if (d->idx_path != NULL && d->bin_path != NULL)
		return 0;
	wlb_fail(error, "%s: out of memory", prefix);
	return WLB_UNREADABLE;
}

static int open_files(struct wlb_indexed *d, struct wlb_error *error)
{
	int rc = map_index(d, error);
	if (rc < 0)
		return rc;
	d->bin_fd = open_part(d->bin_path, &d->bin_bytes, error);
	return d->bin_fd < 0 ? d->bin_fd : 0;
}

void wlb_indexed_digest_index(struct wlb_indexed *d)
{
	const int64_t end = d->document_starts + 8 * (d->documents + 1) - d->idx;
	uint64_t digest = 0;
	for (int64_t offset = TYPE_OFFSET, i = 0; offset < end; offset += 8, i++) {
		uint64_t word = 0;
		report_progress(d, i);
		memcpy(&word, d->idx + offset, (size_t)(end - offset < 8 ? end - offset : 8));
		digest = wlb_word_digest_mix(digest, le64toh(word));
	}
	d->index_digest = digest != 0 ? digest : 1;
}

int wlb_indexed_open(const char *prefix, struct wlb_indexed **indexed, struct wlb_error *error)
{
	*indexed = NULL;
	struct wlb_indexed *d = calloc(1, sizeof(*d));
	if (d == NULL) {
		wlb_fail(error, "%s: out of memory", prefix);
		return WLB_UNREADABLE;
	}
	d->bin_fd = d->mask.fd = -1;
	int rc = make_paths(d, prefix, error);
	if (rc == 0)
		rc = open_files(d, error);
	if (rc == 0 && (check_header(d, error) < 0 || check_counts(d, error) < 0))
		rc = -1;
	if (rc == 0)
		rc = wlb_loss_mask_open(&d->mask, prefix, d->bin_bytes / d->token_bytes, error);
	if (rc == 0)
		*indexed = d;
	else
		wlb_indexed_close(d);
	return rc;
}

void wlb_indexed_close(struct wlb_indexed *d)
{
	if (d == NULL)
		return;
	if (d->idx != NULL)
		munmap(d->idx, (size_t)d->idx_bytes);
	if (d->bin_fd >= 0)
		close(d->bin_fd);
	wlb_loss_mask_close(&d->mask);
	free(d->idx_path);
	free(d->bin_path);
	free(d);
}

int64_t wlb_indexed_documents(const struct wlb_indexed *d)
{
	return d->documents;
}

int64_t wlb_indexed_sequences(const struct wlb_indexed *d)
{
	return d->sequences;
}

int64_t wlb_indexed_tokens(const struct wlb_indexed *d, struct wlb_error *error)
{
	int64_t tokens = 0;
	for (int64_t begin = d->from, end; begin < d->to; begin = end) {
		int64_t of_some = 0; /* added without a check, which takes longer than the sum */
		report_progress(d, 0);
		end = d->to - begin < ENTRIES_A_REPORT ? d->to : begin + ENTRIES_A_REPORT;
		for (int64_t s = begin; s < end; s++)
			of_some += sequence_length(d, s);
		if (__builtin_add_overflow(tokens, of_some, &tokens))
			return wlb_fail(error, "%s: the lengths sum to more than 2^63 tokens", d->idx_path);
	}
	return tokens;
}

int wlb_indexed_has_loss_mask(const struct wlb_indexed *d)
{
	return d->mask.fd >= 0;
}

uint64_t wlb_indexed_index_digest(const struct wlb_indexed *d)
{
	return d->index_digest;
}

/* Returns the byte of a file of so many where a window begins. Each is in an equal part of a file that is larger than
 * all windows. */
static int64_t window_start(const struct wlb_indexed *d, int64_t file_bytes, int64_t window)
{
	int64_t part_bytes = file_bytes / WINDOWS;
	if (file_bytes <= (int64_t)WINDOWS * WINDOW_BYTES)
		return window * WINDOW_BYTES;
	uint64_t random = wlb_word_digest_mix(d->index_digest, (uint64_t)window);
	return window * part_bytes + (int64_t)(random % (uint64_t)(part_bytes - WINDOW_BYTES + 1));
}

static int digest_file(const struct wlb_indexed *d, int fd, const char *path, int64_t file_bytes, uint64_t *value,
                       struct wlb_error *error)
{
	unsigned char bytes[WINDOW_BYTES]; /* a multiple of the digest's stride */
	struct wlb_word_digest digest = {0};
	for (int64_t i = 0; i < WINDOWS && window_start(d, file_bytes, i) < file_bytes; i++) {
		int64_t start = window_start(d, file_bytes, i), left = file_bytes - start;
		size_t count = (size_t)(left < WINDOW_BYTES ? left : WINDOW_BYTES);
		int rc = wlb_input_read(fd, path, bytes, count, start, error);
		if (rc < 0)
			return rc;
		wlb_word_digest_add(&digest, bytes, count);
	}
	*value = wlb_word_digest_mix(wlb_word_digest_value(&digest), (uint64_t)file_bytes);
	return 0;
}

int wlb_indexed_digest_tokens(struct wlb_indexed *d, struct wlb_error *error)
{
	uint64_t of_mask;
	int rc = digest_file(d, d->bin_fd, d->bin_path, d->bin_bytes, &d->token_digest, error);
	if (rc == 0 && d->mask.fd >= 0) {
		rc = digest_file(d, d->mask.fd, d->mask.path, d->mask.bytes, &of_mask, error);
		d->token_digest = rc == 0 ? wlb_word_digest_mix(d->token_digest, of_mask) : 0;
	}
	d->token_digest += rc == 0 && d->token_digest == 0;
	return rc;
}

uint64_t wlb_indexed_token_digest(const struct wlb_indexed *d)
{
	return d->token_digest;
}

int64_t wlb_indexed_length(const struct wlb_indexed *d, int64_t document)
{
	int64_t tokens = 0;
	for (int64_t s = start_there(d, document), end = start_there(d, document + 1); s < end; s++)
		tokens += sequence_length(d, s);
	return tokens;
}

const char *wlb_indexed_path(const struct wlb_indexed *d)
{
	return d->bin_path;
}

/* Returns token `i` of a chunk, decoded from the stored type. */
static int64_t decode(const struct wlb_indexed *d, const unsigned char *chunk, int64_t i)
{
	uint16_t u16;
	uint32_t u32;
	switch (d->dtype) {
	case WLB_INDEX_UINT8:
		return chunk[i];
	case WLB_INDEX_INT8:
		return (int8_t)chunk[i];
	case WLB_INDEX_INT16:
		memcpy(&u16, chunk + 2 * i, sizeof(u16));
		return (int16_t)le16toh(u16);
	case WLB_INDEX_UINT16:
		memcpy(&u16, chunk + 2 * i, sizeof(u16));
		return le16toh(u16);
	case WLB_INDEX_INT32:
		memcpy(&u32, chunk + 4 * i, sizeof(u32));
		return (int32_t)le32toh(u32);
	case WLB_INDEX_INT64:
		break;
	}
	return (int64_t)load_u64(chunk + 8 * i);
}

/* Reads tokens [start, start + count) of one sequence. */
static int read_sequence(const struct wlb_indexed *d, int64_t sequence, int64_t start, int64_t count, int32_t *out,
                         struct wlb_error *error)
{
	unsigned char chunk[READ_CHUNK_TOKENS * sizeof(int64_t)];
	while (count > 0) {
		int64_t n = count < READ_CHUNK_TOKENS ? count : READ_CHUNK_TOKENS;
		int64_t offset = sequence_pointer(d, sequence) + start * d->token_bytes;
		int rc = wlb_input_read(d->bin_fd, d->bin_path, chunk, (size_t)(n * d->token_bytes), offset, error);
		if (rc < 0)
			return rc;
		for (int64_t i = 0; i < n; i++) {
			int64_t token = decode(d, chunk, i);
			if (token < 0 || token > INT32_MAX)
				return wlb_fail(
					error,
					"%s: token %lld of sequence %lld is %lld: it must be between 0 and 2^31 - 1",
					d->bin_path, (long long)(start + i), (long long)sequence, (long long)token);
			out[i] = (int32_t)token;
		}
		out += n;
		start += n;
		count -= n;
	}
	return 0;
}

/* Tokens [start, start + count) of one sequence. */
struct piece {
	int64_t sequence, start, count;
};

/* Sets the next piece of a document that is of its tokens [start, start + count), and moves these behind it. Begins
 * with the sequence of `piece`. Returns 0 behind the last. */
static int next_piece(const struct wlb_indexed *d, int64_t document, int64_t *start, int64_t *count,
                      struct piece *piece)
{
	for (int64_t s = piece->sequence; *count > 0 && s < start_there(d, document + 1); s++) {
		int64_t left = sequence_length(d, s) - *start;
		if (left <= 0) {
			*start = -left;
			continue;
		}
		*piece = (struct piece){.sequence = s, .start = *start, .count = *count < left ? *count : left};
		*start += piece->count;
		*count -= piece->count;
		return 1;
	}
	return 0;
}

int wlb_indexed_read(const struct wlb_indexed *d, int64_t document, int64_t start, int64_t count, int32_t *out,
                     struct wlb_error *error)
{
	for (struct piece p = {.sequence = start_there(d, document)}; next_piece(d, document, &start, &count, &p);
	     out += p.count) {
		int rc = read_sequence(d, p.sequence, p.start, p.count, out, error);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int64_t wlb_indexed_mask(const struct wlb_indexed *d, int64_t document, int64_t start, int64_t count, int32_t *targets,
                         struct wlb_error *error)
{
	int64_t total = 0;
	for (struct piece p = {.sequence = start_there(d, document)}; next_piece(d, document, &start, &count, &p);) {
		int64_t first = sequence_pointer(d, p.sequence) / d->token_bytes + p.start;
		int64_t counted = wlb_loss_mask_apply(&d->mask, first, p.count, targets, error);
		if (counted < 0)
			return counted;
		total += counted;
		targets = targets != NULL ? targets + p.count : NULL;
	}
	return total;
}

int64_t wlb_indexed_max_token(const struct wlb_indexed *d, int64_t first, int64_t end, struct wlb_error *error)
{
	int32_t tokens[READ_CHUNK_TOKENS];
	int64_t largest = 0;
	for (int64_t s = start_there(d, first); s < start_there(d, end); s++) {
		for (int64_t start = 0; start < sequence_length(d, s); start += READ_CHUNK_TOKENS) {
			int64_t left = sequence_length(d, s) - start;
			int64_t n = left < READ_CHUNK_TOKENS ? left : READ_CHUNK_TOKENS;
			int rc = read_sequence(d, s, start, n, tokens, error);
			if (rc < 0)
				return rc;
			for (int64_t i = 0; i < n; i++)
				largest = tokens[i] > largest ? tokens[i] : largest;
		}
	}
	return largest;
}
