#include "planner/lengths_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planner/lengths_index.h"

enum { BLOCK_DOCUMENTS = 1024, BLOCKS = WLB_SAMPLE_DOCUMENTS / BLOCK_DOCUMENTS, BLOCK_SEQUENCES = 1 << 20 };

/* An index that is open, and memory for one block. */
struct reader {
	int fd;
	struct wlb_index_lists lists;
	unsigned char *firsts;  /* of BLOCK_DOCUMENTS + 1 documents: 8 bytes each */
	unsigned char *lengths; /* of BLOCK_SEQUENCES sequences: 4 bytes each */
};

static int read_at(const struct reader *reader, void *to, size_t bytes, uint64_t at, struct wlb_error *error)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pread(reader->fd, (char *)to + done, bytes - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return wlb_fail(error, "%zu bytes at %" PRIu64 " cannot be read: %s", bytes, at,
			                n < 0 ? strerror(errno) : "the file ends before");
		done += (size_t)n;
	}
	return 0;
}

static uint64_t first_of(const struct reader *reader, uint64_t d)
{
	return wlb_index_sequence(reader->firsts + 8 * d);
}

/* How many of the block's `count` documents have sequences that rise and that its memory holds; -1 where they do not
 * rise. */
static int64_t whole_documents(const struct reader *reader, uint64_t count, struct wlb_error *error)
{
	uint64_t from = first_of(reader, 0), fit = 0;
	for (uint64_t d = 0; d < count; d++) {
		uint64_t first = first_of(reader, d), end = first_of(reader, d + 1);
		if (first > end || end > reader->lists.sequences)
			return wlb_fail(error,
			                "a document has the sequences from %" PRIu64 " to %" PRIu64
			                ": they must rise, to %" PRIu64 " at most",
			                first, end, reader->lists.sequences);
		if (end - from <= BLOCK_SEQUENCES)
			fit = d + 1;
	}
	return (int64_t)fit;
}

/* Appends the documents [document, document + count). */
static int read_block(const struct reader *reader, uint64_t document, uint64_t count, struct wlb_length_list *list,
                      struct wlb_error *error)
{
	if (read_at(reader, reader->firsts, 8 * (size_t)(count + 1), reader->lists.documents_at + 8 * document, error) <
	    0)
		return -1;
	int64_t fit = whole_documents(reader, count, error);
	if (fit < 0)
		return -1;
	uint64_t from = first_of(reader, 0), end = first_of(reader, (uint64_t)fit);
	if (read_at(reader, reader->lengths, 4 * (size_t)(end - from), reader->lists.lengths_at + 4 * from, error) < 0)
		return -1;
	for (int64_t d = 0; d < fit; d++) {
		uint64_t first = first_of(reader, (uint64_t)d), next = first_of(reader, (uint64_t)d + 1);
		int64_t tokens =
			wlb_index_document_tokens(reader->lengths + 4 * (first - from), next - first, first, error);
		if (tokens < 0 || wlb_length_list_add(list, tokens, error) < 0)
			return -1;
	}
	return 0;
}

static int read_blocks(const struct reader *reader, struct wlb_length_list *list, struct wlb_error *error)
{
	uint64_t documents = reader->lists.documents;
	uint64_t blocks = (documents + BLOCK_DOCUMENTS - 1) / BLOCK_DOCUMENTS;
	uint64_t taken = blocks < BLOCKS ? blocks : BLOCKS;
	for (uint64_t b = 0; b < taken; b++) {
		uint64_t block = taken > 1 ? b * (blocks - 1) / (taken - 1) : 0;
		uint64_t document = block * BLOCK_DOCUMENTS, left = documents - document;
		if (read_block(reader, document, left < BLOCK_DOCUMENTS ? left : BLOCK_DOCUMENTS, list, error) < 0)
			return -1;
	}
	return 0;
}

static int read_header(struct reader *reader, struct wlb_error *error)
{
	unsigned char header[WLB_INDEX_HEADER_BYTES] = {0};
	struct stat status;
	if (fstat(reader->fd, &status) < 0)
		return wlb_fail(error, "cannot be read: %s", strerror(errno));
	if (status.st_size >= WLB_INDEX_HEADER_BYTES && read_at(reader, header, sizeof(header), 0, error) < 0)
		return -1;
	return wlb_index_header_read(header, (uint64_t)status.st_size, &reader->lists, error);
}

static int read_index(struct reader *reader, struct wlb_length_list *list, struct wlb_error *error)
{
	reader->firsts = malloc(8 * (BLOCK_DOCUMENTS + 1));
	reader->lengths = malloc(4 * (size_t)BLOCK_SEQUENCES);
	int rc = reader->firsts != NULL && reader->lengths != NULL ? read_header(reader, error)
	                                                           : wlb_fail(error, "out of memory");
	if (rc == 0)
		rc = read_blocks(reader, list, error);
	if (rc == 0 && list->total_tokens == 0)
		rc = wlb_fail(error, "has no token; there is nothing to train");
	free(reader->firsts);
	free(reader->lengths);
	return rc;
}

int wlb_length_list_sample(const char *prefix, struct wlb_length_list *list, int64_t *documents,
                           struct wlb_error *error)
{
	char path[4096];
	if (snprintf(path, sizeof(path), "%s.idx", prefix) >= (int)sizeof(path))
		return wlb_fail(error, "'%.60s...': the path is too long", prefix);
	struct reader reader = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (reader.fd < 0)
		return wlb_fail(error, "%s: cannot be opened: %s", path, strerror(errno));
	int rc = read_index(&reader, list, error);
	close(reader.fd);
	*documents = (int64_t)reader.lists.documents;
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}
