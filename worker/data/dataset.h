/*
 * What a run trains on: one indexed dataset (indexed.h), or several, of each all documents or those of a split. The
 * documents of all parts have one numbering, part after part.
 */
#ifndef WORKER_DATA_DATASET_H
#define WORKER_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_dataset;

enum { WLB_DATASET_PARTS_MAX = 256 };

struct wlb_dataset_source {
	const char *prefix;
	double weight; /* its share of the trained tokens, in any unit; with 0 it is left out */
};

struct wlb_dataset_choice {
	const struct wlb_dataset_source *sources;
	int count;
	bool is_weighted; /* else all documents are trained once before any is again */
	double from, to;  /* of the n sequences of each part, those from from * n on and before to * n, both rounded */
};

/* The documents [begin, end), which have an order of their own. */
struct wlb_dataset_group {
	int64_t begin, end;
	double weight;
};

/* Opens all documents of one dataset. Returns 0; -1 with file, field, value and rule where a check fails, or where a
 * file is missing or this user may not read it; WLB_UNREADABLE (input.h) where it cannot be read now. *dataset is NULL
 * then. */
int wlb_dataset_open(const char *prefix, struct wlb_dataset **dataset, struct wlb_error *error);
/* The same for several, or a split: a document that the split cuts between its sequences has those that are chosen.
 * Refused are more parts than WLB_DATASET_PARTS_MAX and weights that are all 0. */
int wlb_dataset_open_parts(const struct wlb_dataset_choice *choice, struct wlb_dataset **dataset,
                           struct wlb_error *error);
void wlb_dataset_close(struct wlb_dataset *dataset); /* NULL allowed */

/* ---- the same in four calls, by which several processes check an index together, each a share of it ---- */

/* What was found in the indexes. */
struct wlb_dataset_check {
	double place; /* of the first error, in the order in which one process finds them; INFINITY: none */
	struct wlb_error error;
	double has_gaps[WLB_DATASET_PARTS_MAX]; /* 1: the sequences of the part do not lie one behind the other */
};

/* Opens the files. Until the other three have been called the dataset is to be closed alone. */
int wlb_dataset_open_unchecked(const struct wlb_dataset_choice *choice, struct wlb_dataset **dataset,
                               struct wlb_error *error);
/* Checks share `share` of `shares` of each index, and with share 0 makes the digests of the indexes. */
void wlb_dataset_check(struct wlb_dataset *dataset, int share, int shares, struct wlb_dataset_check *check);
/* Adds what follows from the sequences of all shares: check->has_gaps must be 1 where that of any share is. */
void wlb_dataset_check_ends(const struct wlb_dataset *dataset, struct wlb_dataset_check *check);
/* Takes the chosen documents of indexes in which no process has found an error. Returns -1 with the reason. */
int wlb_dataset_choose(struct wlb_dataset *dataset, const struct wlb_dataset_choice *choice, struct wlb_error *error);

int64_t wlb_dataset_documents(const struct wlb_dataset *dataset);
int64_t wlb_dataset_tokens(const struct wlb_dataset *dataset);
/* Returns the number of groups: of parts with weights each is one, and others are one together. */
int wlb_dataset_group_count(const struct wlb_dataset *dataset);
const struct wlb_dataset_group *wlb_dataset_group(const struct wlb_dataset *dataset, int group);
/* Returns a digest, never 0, of the indexes, the sequences that are chosen of each, and the weights; of one whole
 * dataset that of its index. 0: this process has not checked share 0. */
uint64_t wlb_dataset_index_digest(const struct wlb_dataset *dataset);
/* Makes the digest of the tokens from those of the parts (indexed.h). Returns 0, -1 or WLB_UNREADABLE as there. */
int wlb_dataset_digest_tokens(struct wlb_dataset *dataset, struct wlb_error *error);
/* Returns that digest, 0 where it was not made. */
uint64_t wlb_dataset_token_digest(const struct wlb_dataset *dataset);
int64_t wlb_dataset_length(const struct wlb_dataset *dataset, int64_t document); /* tokens */
/* Returns the path of the .bin file that has the document, for messages; of a document that there is none of, that of
 * the last part. The dataset owns it. */
const char *wlb_dataset_path_of(const struct wlb_dataset *dataset, int64_t document);
/* Returns the number of the document in that file. */
int64_t wlb_dataset_number_of(const struct wlb_dataset *dataset, int64_t document);
/* Returns the path of the first part's .bin file, for messages; the dataset owns it. */
const char *wlb_dataset_path(const struct wlb_dataset *dataset);
/* Copies tokens [start, start + count) of the document, which must lie within it, as int32. Returns -1 where a
 * token id is negative or above 2^31 - 1 or the file ends before, WLB_UNREADABLE where it cannot be read now. */
int wlb_dataset_read(const struct wlb_dataset *dataset, int64_t document, int64_t start, int64_t count, int32_t *out,
                     struct wlb_error *error);
/* Whether some of its tokens may not count in the loss: a part has a PREFIX.loss_mask (loss_mask.h). */
bool wlb_dataset_has_loss_mask(const struct wlb_dataset *dataset);
/* Sets those of targets[count], tokens [start, start + count) of the document, to -1 that do not count in the loss;
 * NULL: only counts. Returns how many count; fails as wlb_loss_mask_apply. */
int64_t wlb_dataset_mask(const struct wlb_dataset *dataset, int64_t document, int64_t start, int64_t count,
                         int32_t *targets, struct wlb_error *error);
/* Returns how many targets of all documents count in the loss, 0 included; fails as wlb_dataset_mask. Reads the masks
 * whole. */
int64_t wlb_dataset_count_targets(const struct wlb_dataset *dataset, struct wlb_error *error);
/* Reads share `share` of `shares` of the documents and returns the largest token id; 0 where it has no tokens. It fails
 * as wlb_dataset_read. */
int64_t wlb_dataset_max_token(const struct wlb_dataset *dataset, int share, int shares, struct wlb_error *error);

#endif
