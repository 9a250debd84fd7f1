/*
 * How far a build is: PREFIX.resume.partial, beside the files that it writes. The same build goes on from there after
 * it was killed. The file is replaced as a whole once what it says is on the disk.
 */
#ifndef WORKER_DATA_JOURNAL_H
#define WORKER_DATA_JOURNAL_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/index_writer.h"
#include "worker/data/omitted.h"

/* Where the reader of the inputs is when it begins a file. */
struct wlb_journal_place {
	int64_t file;  /* its index among the inputs */
	int64_t added; /* documents of the files before it */
	struct wlb_omitted omitted;
};

struct wlb_journal {
	uint64_t plan; /* a digest of all that decides what is written */
	struct wlb_index_written written;
	struct wlb_journal_place place; /* of the file that has the next document, or a file before that */
	struct wlb_omitted_first first;
};

/* Reads what an earlier build has left. Returns 1 where it had the same plan, else 0. */
int wlb_journal_read(const char *prefix, uint64_t plan, struct wlb_journal *journal);
int wlb_journal_write(const char *prefix, const struct wlb_journal *journal, struct wlb_error *error);
/* Removes the file, if there is one. */
void wlb_journal_remove(const char *prefix);

#endif
