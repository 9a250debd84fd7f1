#include "checks/node/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/node/node_load.h"
#include "checks/node/place_children.h"
#include "checks/node/random.h"
#include "common/seconds.h"

/* What is written and compared at once; memory has a whole number of them. */
enum { BLOCK_BYTES = 1 << 20, BLOCK_WORDS = BLOCK_BYTES / (int)sizeof(uint64_t) };

/* Of a CPU at least, which is more than its own caches hold. */
enum { CPU_LEAST_MIB = 16 };

/* The part of the free memory that is taken at most. */
static const double FREE_PART = 0.125;

/* How long a healthy node may take for a MiB, written and read twice: for the deadline alone. */
static const double MIB_S = 0.02;

struct work {
	const struct wlb_places *places;
	enum wlb_dtype dtype;
	uint64_t seed;
	int64_t blocks; /* of a place, at most */
	double limit_s;
};

struct result {
	int64_t blocks; /* of this place */
	int64_t passes; /* over all of the memory that were right */
	int wrong;
	char what[160];
};

/* Block `at` in a pass: other numbers in each, so that a wrong address is found; every second pass is the complement of
 * the one before. */
static void fill(uint64_t *block, const struct work *work, int64_t at, int64_t pass)
{
	wlb_fill_random(block, BLOCK_WORDS, work->seed, pass / 2 * work->blocks + at);
	for (int i = 0; i < BLOCK_WORDS && pass % 2 == 1; i++)
		block[i] = ~block[i];
}

static void describe(const uint64_t *written, const uint64_t *read, int64_t at, struct result *result)
{
	int i = 0;
	while (i < BLOCK_WORDS - 1 && read[i] == written[i])
		i++;
	snprintf(result->what, sizeof(result->what), "%016llx was written at byte %lld, and %016llx read",
	         (unsigned long long)written[i], (long long)(at * BLOCK_BYTES + i * (int64_t)sizeof(*read)),
	         (unsigned long long)read[i]);
	result->wrong = 1;
}

static int write_pass(struct wlb_device *device, const struct work *work, char *memory, int64_t pass, uint64_t *block,
                      struct wlb_error *error)
{
	for (int64_t at = 0; at < work->blocks; at++) {
		fill(block, work, at, pass);
		device->ops->to_device(device, NULL, memory + at * BLOCK_BYTES, block, BLOCK_BYTES);
	}
	return device->ops->synchronize(device, error);
}

static int read_pass(struct wlb_device *device, const struct work *work, const char *memory, int64_t pass,
                     uint64_t *block, uint64_t *read, struct result *result, struct wlb_error *error)
{
	for (int64_t at = 0; at < work->blocks && !result->wrong; at++) {
		fill(block, work, at, pass);
		device->ops->to_host(device, read, memory + at * BLOCK_BYTES, BLOCK_BYTES);
		if (device->ops->synchronize(device, error) < 0)
			return -1;
		if (memcmp(block, read, BLOCK_BYTES) != 0)
			describe(block, read, at, result);
	}
	return 0;
}

static int repeat(struct wlb_device *device, const struct work *work, char *memory, uint64_t *blocks,
                  struct result *result, struct wlb_error *error)
{
	double until_s = wlb_now_s() + work->limit_s;
	while (!result->wrong && (result->passes < 2 || wlb_now_s() < until_s)) {
		if (write_pass(device, work, memory, result->passes, blocks, error) < 0 ||
		    read_pass(device, work, memory, result->passes, blocks, blocks + BLOCK_WORDS, result, error) < 0)
			return -1;
		result->passes += !result->wrong;
	}
	return 0;
}

static int check_device(struct wlb_device *device, const struct work *work, struct result *result,
                        struct wlb_error *error)
{
	uint64_t *blocks = malloc((size_t)2 * BLOCK_BYTES);
	char *memory = device->ops->alloc(device, (size_t)work->blocks * BLOCK_BYTES, error);
	int rc = memory != NULL ? 0 : -1;
	result->blocks = work->blocks;
	if (blocks == NULL)
		rc = wlb_fail(error, "out of memory for patterns");
	if (rc == 0)
		rc = repeat(device, work, memory, blocks, result, error);
	device->ops->release(device, memory);
	free(blocks);
	return rc;
}

/* Limits the blocks to a part of what is free of the GPU, which its own process alone can ask. Returns 1 with the
 * reason where that has no block. */
static int limit_blocks(struct work *work, struct wlb_error *error)
{
	int64_t free_bytes = wlb_cuda_free_bytes();
	double fitting = FREE_PART * (double)free_bytes / BLOCK_BYTES;
	if (free_bytes < 0 || fitting >= (double)work->blocks)
		return 0;
	work->blocks = (int64_t)fitting;
	if (work->blocks > 0)
		return 0;
	wlb_fail(error,
	         "%.1f MiB are free; the check writes an eighth of the free memory and needs 1 MiB: free 8 MiB or more",
	         (double)free_bytes / BLOCK_BYTES);
	return 1;
}

static int check_place(int index, const void *context, void *result, struct wlb_error *error)
{
	struct work work = *(const struct work *)context;
	const struct wlb_check_place *place = &work.places->list[index];
	struct wlb_device *device = wlb_place_open(place, work.dtype, error);
	int rc = device != NULL ? 0 : -1;
	if (rc == 0 && place->gpu >= 0)
		rc = limit_blocks(&work, error);
	if (rc == 0)
		rc = check_device(device, &work, result, error);
	wlb_device_close(device);
	return wlb_place_end(place, rc);
}

static void judge(const struct wlb_children *children, const struct work *work, struct wlb_check_report *report)
{
	const struct wlb_places *places = work->places;
	int64_t least_passes = INT64_MAX, blocks = 0;
	int wrong = 0, first = 0;
	for (int i = 0; i < children->count; i++) {
		const struct result *result = wlb_child_result(children, i);
		blocks += result->blocks;
		least_passes = result->passes < least_passes ? result->passes : least_passes;
		if (result->wrong && wrong++ == 0)
			first = i;
	}
	if (wrong == 0 && wlb_place_children_in_use(children, places, "memory", report))
		return;
	const struct result *result = wlb_child_result(children, first);
	struct wlb_finding *finding =
		wrong == 0 ? wlb_report_add(report, "memory", WLB_CHECK_OK,
	                                    "%lld MiB of %s, written and read %lld times at least", (long long)blocks,
	                                    wlb_places_text(places).text, (long long)least_passes)
			   : wlb_report_add(report, "memory", WLB_CHECK_FAILED, "%s: %s%s", places->list[first].name,
	                                    result->what, wlb_others_text(wrong).text);
	wlb_finding_limit(finding, "no bit differs");
}

/* Returns the blocks of a place; below 1 where there is too little free memory of the host. */
static int64_t blocks_of(const struct wlb_check_options *options, const struct wlb_places *places)
{
	if (places->list[0].gpu >= 0)
		return options->memory_mib;
	double mib = fmax((double)options->memory_mib / places->count, CPU_LEAST_MIB);
	double free_mib = FREE_PART * wlb_free_memory_bytes() / BLOCK_BYTES / places->count;
	return (int64_t)fmin(mib, free_mib);
}

int wlb_check_memory(const struct wlb_check_options *options, const struct wlb_places *places, double limit_s,
                     struct wlb_check_report *report, struct wlb_error *error)
{
	const struct work work = {.places = places,
	                          .dtype = (enum wlb_dtype)options->dtype,
	                          .seed = (uint64_t)options->seed,
	                          .blocks = blocks_of(options, places),
	                          .limit_s = limit_s};
	struct wlb_children children = {0};
	if (work.blocks < 1) {
		wlb_report_add(report, "memory", WLB_CHECK_NOT_CHECKED,
		               "%.0f MiB are free; the check writes an eighth of the free memory and needs 1 MiB for "
		               "each of %s: free more",
		               wlb_free_memory_bytes() / BLOCK_BYTES, wlb_places_text(places).text);
		return 0;
	}
	double takes_s = limit_s + MIB_S * (double)work.blocks;
	int rc = wlb_place_children_run(&children, places, sizeof(struct result), check_place, &work, takes_s, error);
	if (rc == 0)
		rc = wlb_place_children_judge(&children, places, "memory", report, error);
	if (rc == 1)
		judge(&children, &work, report);
	wlb_children_free(&children);
	return rc < 0 ? -1 : 0;
}
