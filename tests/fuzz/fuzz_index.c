/* Any .idx, beside a .bin of 64 bytes: refused, or every document of it can be read and scheduled, and has a mask where
 * the dataset has one. */
#include <math.h>
#include <stdio.h>

#include "tests/fuzz/scratch.h"
#include "worker/data/dataset.h"
#include "worker/data/schedule.h"

enum { BIN_BYTES = 64, MOST_TOKENS = 4096, STEPS = 8 };

static void read_all(const struct wlb_dataset *dataset)
{
	int32_t tokens[MOST_TOKENS];
	struct wlb_error error;
	int64_t sum = 0;
	for (int64_t i = 0; i < wlb_dataset_documents(dataset); i++) {
		int64_t length = wlb_dataset_length(dataset, i);
		must(length >= 0);
		sum += length;
		if (length <= MOST_TOKENS) /* sequences may overlap: a document can be longer than the file */
			(void)wlb_dataset_read(dataset, i, 0, length, tokens, &error);
	}
	must(sum == wlb_dataset_tokens(dataset));
}

static void schedule_some(const struct wlb_dataset *dataset)
{
	struct wlb_error error;
	struct wlb_schedule *schedule = wlb_schedule_new(dataset, 7, 3, 1, &error);
	for (int step = 0; schedule != NULL && step < STEPS; step++) {
		const struct wlb_span *spans;
		int count = wlb_schedule_next(schedule, &spans, &error);
		must(count > 0);
		for (int p = 0; p < count; p++)
			must(spans[p].start + spans[p].tokens < wlb_dataset_length(dataset, spans[p].document));
	}
	wlb_schedule_free(schedule);
}

/* A mask of 32 bytes is one for tokens of 2 bytes. */
static void mask_all(void)
{
	static const char mask[BIN_BYTES / 2] = {1, 1, 0, 1, 0, 0, 0, 1, 1};
	struct wlb_error error;
	struct wlb_dataset *dataset;
	scratch_write("x.loss_mask", mask, sizeof(mask));
	int rc = wlb_dataset_open(scratch_path("x"), &dataset, &error);
	for (int64_t i = 0; rc == 0 && i < wlb_dataset_documents(dataset); i++) {
		int64_t length = wlb_dataset_length(dataset, i);
		int32_t targets[MOST_TOKENS] = {0};
		if (length > MOST_TOKENS)
			continue;
		int64_t counted = wlb_dataset_mask(dataset, i, 0, length, targets, &error), found = 0;
		for (int64_t t = 0; t < length; t++)
			found += targets[t] == 0;
		must(counted == found);
	}
	wlb_dataset_close(dataset);
	must(remove(scratch_path("x.loss_mask")) == 0);
}

/* Three processes that check the index together find what one has found. */
static void check_in_shares(int is_good)
{
	enum { SHARES = 3 };
	const struct wlb_dataset_source source = {.prefix = scratch_path("x")};
	const struct wlb_dataset_choice choice = {.sources = &source, .count = 1, .from = 0.2, .to = 0.7};
	struct wlb_dataset_check found, first = {.place = INFINITY};
	struct wlb_dataset *dataset;
	struct wlb_error error;
	if (wlb_dataset_open_unchecked(&choice, &dataset, &error) < 0) {
		must(!is_good);
		return;
	}
	for (int share = 0; share < SHARES; share++) {
		wlb_dataset_check(dataset, share, SHARES, &found);
		double has_gaps = fmax(first.has_gaps[0], found.has_gaps[0]);
		first = found.place < first.place ? found : first;
		first.has_gaps[0] = has_gaps;
	}
	wlb_dataset_check_ends(dataset, &first);
	must((first.place == INFINITY) == is_good);
	if (is_good && wlb_dataset_choose(dataset, &choice, &error) == 0)
		read_all(dataset);
	wlb_dataset_close(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char tokens[BIN_BYTES] = "the tokens of whatever index comes, sixty-four bytes of them";
	static int once;
	struct wlb_error error;
	if (!once++)
		scratch_write("x.bin", tokens, sizeof(tokens));
	scratch_write("x.idx", data, bytes);
	struct wlb_dataset *dataset;
	int is_good = wlb_dataset_open(scratch_path("x"), &dataset, &error) == 0;
	check_in_shares(is_good);
	if (!is_good)
		return 0;
	must(wlb_dataset_digest_tokens(dataset, &error) == 0);
	read_all(dataset);
	schedule_some(dataset);
	wlb_dataset_close(dataset);
	mask_all();
	return 0;
}
