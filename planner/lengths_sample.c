#include "planner/lengths_sample.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/index_format.h"
#include "planner/lengths_index.h"

enum {
	BLOCK_DOCUMENTS = WLB_SAMPLE_DOCUMENTS / WLB_SAMPLE_BLOCKS,
	BLOCK_SEQUENCES = 1 << 18,
};

struct sample {
	int fd;
	struct wlb_index_counts counts;
	uint64_t documents;
	uint64_t bounds[BLOCK_DOCUMENTS + 1]; /* of the block: first sequences of its documents, and the end */
	unsigned char *lengths;               /* of the block, as in the index: BLOCK_SEQUENCES */
};

static int read_at(int fd, void *to, size_t bytes, uint64_t offset, struct wlb_error *error)
{
	size_t done = 0;
	while (done < bytes) {
		ssize_t got = pread(fd, (char *)to + done, bytes - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return wlb_fail(error, "cannot be read at byte %" PRIu64 ": %s", offset + done,
			                got < 0 ? strerror(errno) : "it ended");
		done += (size_t)got;
	}
	return 0;
}

/* Adds the `count` documents from `first` on, fewer where their sequences exceed BLOCK_SEQUENCES. */
static int add_block(struct sample *sample, uint64_t first, uint64_t count, struct wlb_length_list *list,
                     struct wlb_error *error)
{
	uint64_t sequences = sample->counts.sequences, lengths_at = WLB_INDEX_HEADER_BYTES;
	uint64_t documents_at = lengths_at + 12 * sequences;
	if (read_at(sample->fd, sample->bounds, 8 * (count + 1), documents_at + 8 * first, error) < 0)
		return -1;
	for (uint64_t d = 0; d <= count; d++)
		sample->bounds[d] = le64toh(sample->bounds[d]);
	for (uint64_t d = 0; d < count; d++)
		if (wlb_index_check_document(first + d, sample->bounds[d], sample->bounds[d + 1], sequences, error) < 0)
			return -1;
	uint64_t from = sample->bounds[0], to = sample->bounds[count];
	to = to - from < BLOCK_SEQUENCES ? to : from + BLOCK_SEQUENCES;
	if (read_at(sample->fd, sample->lengths, 4 * (to - from), lengths_at + 4 * from, error) < 0)
		return -1;
	for (uint64_t d = 0; d < count && (d == 0 || sample->bounds[d + 1] <= to); d++) {
		uint64_t begin = sample->bounds[d], end = sample->bounds[d + 1] < to ? sample->bounds[d + 1] : to;
		int64_t tokens;
		if (wlb_index_sum(sample->lengths + 4 * (begin - from), begin, end, &tokens, error) < 0 ||
		    wlb_length_list_add(list, tokens, error) < 0)
			return -1;
	}
	return 0;
}

static int add_blocks(struct sample *sample, struct wlb_length_list *list, struct wlb_error *error)
{
	uint64_t documents = sample->documents, last = documents > BLOCK_DOCUMENTS ? documents - BLOCK_DOCUMENTS : 0;
	uint64_t blocks = (documents + BLOCK_DOCUMENTS - 1) / BLOCK_DOCUMENTS;
	blocks = blocks < WLB_SAMPLE_BLOCKS ? blocks : WLB_SAMPLE_BLOCKS;
	for (uint64_t b = 0; b < blocks; b++) {
		/* Where all documents are taken, the blocks follow one another. */
		int all = documents <= WLB_SAMPLE_DOCUMENTS;
		uint64_t first = all ? b * BLOCK_DOCUMENTS : (uint64_t)((double)last * b / (double)(blocks - 1));
		uint64_t left = documents - first;
		if (add_block(sample, first, left < BLOCK_DOCUMENTS ? left : BLOCK_DOCUMENTS, list, error) < 0)
			return -1;
	}
	return 0;
}

static int sample_open_file(struct sample *sample, struct wlb_length_list *list, struct wlb_error *error)
{
	unsigned char head[WLB_INDEX_HEADER_BYTES] = {0};
	struct stat st;
	if (fstat(sample->fd, &st) < 0)
		return wlb_fail(error, "cannot be read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return wlb_fail(error, "is not a regular file, as an index is");
	size_t bytes = st.st_size < (off_t)sizeof(head) ? (size_t)st.st_size : sizeof(head);
	if (read_at(sample->fd, head, bytes, 0, error) < 0 ||
	    wlb_index_counts_read(head, bytes, (uint64_t)st.st_size, &sample->counts, error) < 0)
		return -1;
	sample->documents = sample->counts.documents_and_end > 0 ? sample->counts.documents_and_end - 1 : 0;
	size_t before = list->count;
	if (add_blocks(sample, list, error) < 0)
		return -1;
	wlb_length_list_shuffle(list, before);
	return 0;
}

int wlb_length_list_sample_index(const char *path, struct wlb_length_list *list, struct wlb_error *error)
{
	struct sample *sample = calloc(1, sizeof(*sample));
	unsigned char *lengths = malloc(4 * (size_t)BLOCK_SEQUENCES);
	int rc, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* else opening a FIFO waits for a writer */
	if (fd < 0) {
		rc = wlb_fail(error, "cannot be opened: %s", strerror(errno));
	} else if (sample == NULL || lengths == NULL) {
		rc = wlb_fail(error, "out of memory for a sample of %d documents", WLB_SAMPLE_DOCUMENTS);
	} else {
		sample->fd = fd;
		sample->lengths = lengths;
		rc = sample_open_file(sample, list, error);
	}
	if (fd >= 0)
		close(fd);
	free(lengths);
	free(sample);
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}
