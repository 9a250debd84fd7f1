/* Each record is stored once, also when the reader is killed at any place: before it has stored what it read, or after
 * it has and before it knows. The store here applies wlb_origin_order, as the database does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "follow/lines.h"
#include "follow/metrics_line.h"
#include "follow/tail.h"
#include "follow/value_merge.h"

enum { STEPS = 400, SEEDS = 40 };

static char path[] = "/tmp/wlb-restart-XXXXXX";

/* What outlives the reader: the values, each with its origin, and the place that was kept with them. */
struct store {
	struct {
		bool is_there;
		struct wlb_origin origin;
		double loss;
		int changes;
	} steps[STEPS + 1];
	struct wlb_tail_place place;
};

struct reader {
	struct wlb_tail_place place;
	struct wlb_lines lines;
	struct wlb_merge *merge;
};

static void begin(struct reader *reader, const struct store *store)
{
	reader->place = store->place;
	reader->merge = wlb_merge_open();
	assert_non_null(reader->merge);
	wlb_lines_begin(&reader->lines, reader->place.offset, false);
}

static void put(struct store *store, const struct wlb_followed *record, const struct wlb_origin *origin)
{
	const double *loss = wlb_followed_find(record, "loss");
	assert_non_null(loss);
	assert_in_range(record->step, 1, STEPS);
	if (store->steps[record->step].is_there && wlb_origin_order(origin, &store->steps[record->step].origin) >= 0)
		return;
	store->steps[record->step].is_there = true;
	store->steps[record->step].origin = *origin;
	store->steps[record->step].loss = *loss;
	store->steps[record->step].changes++;
}

/* Reads what there is. Stores each record; keeps the place with the probability of one half. */
static void poll_once(struct reader *reader, struct store *store, unsigned *seed)
{
	char bytes[300];
	const char *next = bytes;
	char *text;
	size_t count, length;
	struct wlb_error error;
	if (wlb_tail_read(path, &reader->place, bytes, 1 + rand_r(seed) % sizeof(bytes), &count, &error) !=
	    WLB_TAIL_BYTES)
		return;
	while ((text = wlb_lines_next(&reader->lines, &next, &count, &length)) != NULL) {
		struct wlb_metrics_line line;
		struct wlb_merged merged;
		struct wlb_origin origin = {WLB_SOURCE_LOG, 0, reader->place.generation, reader->lines.line_at};
		assert_int_equal(wlb_metrics_line_read(&line, text, length, &error), 1);
		wlb_merge_take(reader->merge, &origin, &line.record, &merged);
		if (merged.count > 0)
			put(store, &line.record, &origin);
	}
	if (rand_r(seed) % 2 == 0) {
		store->place = reader->place;
		store->place.offset = reader->lines.next_at;
	}
}

/* A writer that writes lines in two pieces. */
static void write_some(int *step, bool *is_half, unsigned *seed)
{
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	for (int i = rand_r(seed) % 4; i > 0 && *step <= STEPS; i--) {
		if (*is_half)
			fprintf(file, "\"loss\": %d.5}\n", (*step)++);
		else
			fprintf(file, "{\"step\": %d, ", *step);
		*is_half = !*is_half;
	}
	assert_int_equal(fclose(file), 0);
}

static void each_record_is_stored_once(void **state)
{
	static struct store store;
	static struct reader reader;
	(void)state;
	for (unsigned first_seed = 0; first_seed < SEEDS; first_seed++) {
		unsigned seed = first_seed;
		int step = 1;
		bool is_half = false;
		assert_int_equal(truncate(path, 0), 0);
		memset(&store, 0, sizeof(store));
		begin(&reader, &store);
		for (int quiet = 0; quiet < 200; quiet = step <= STEPS ? 0 : quiet + 1) {
			write_some(&step, &is_half, &seed);
			poll_once(&reader, &store, &seed);
			if (rand_r(&seed) % 5 == 0 && step <= STEPS) { /* it is killed, and another begins */
				wlb_merge_close(reader.merge);
				begin(&reader, &store);
			}
		}
		wlb_merge_close(reader.merge);
		for (int i = 1; i <= STEPS; i++) {
			assert_int_equal(store.steps[i].changes, 1);
			assert_true(store.steps[i].loss == i + 0.5);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_record_is_stored_once),
	};
	int fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
