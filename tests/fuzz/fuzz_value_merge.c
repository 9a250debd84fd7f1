/* Any records with steps in two orders: of each value of each step the same origin is stored last, whatever the store
 * was spared. Any records: no name and no step is made up. */
#include <string.h>

#include "follow/value_merge.h"
#include "tests/fuzz/scratch.h"

enum { STEPS = 600, NAMES = 3, RECORD_BYTES = 6, RECORDS_MOST = 200 };

struct stored {
	bool is_there;
	struct wlb_origin origin;
};

/* The record that six bytes describe. */
static void make(const uint8_t *data, bool has_step, struct wlb_origin *origin, struct wlb_followed *record)
{
	static const char *const names[NAMES] = {"loss", "a", "b"};
	*origin = (struct wlb_origin){data[0] % 4, data[0] / 4 % 2, data[1] % 2, data[2]};
	wlb_followed_begin(record);
	enum wlb_followed_step kind = has_step ? WLB_FOLLOWED_STEP : data[3] % 3;
	if (kind != WLB_FOLLOWED_NO_STEP)
		wlb_followed_set_step(record, kind, (data[4] * 256 + data[5]) % STEPS);
	for (int i = 0; i < NAMES; i++)
		if ((data[3] / 4 >> i & 1) != 0)
			wlb_followed_add(record, names[i], strlen(names[i]), 1);
}

/* Applies the rule of the store to what counts; `store` is NULL for records without steps too. */
static void take(struct wlb_merge *merge, const uint8_t *data, struct stored store[STEPS][NAMES])
{
	struct wlb_origin origin;
	struct wlb_followed record;
	struct wlb_merged merged;
	make(data, store != NULL, &origin, &record);
	wlb_merge_take(merge, &origin, &record, &merged);
	must(merged.count <= record.count && merged.step >= 0 && merged.step < STEPS);
	must(merged.count == 0 || merged.step_kind != WLB_FOLLOWED_NO_STEP);
	must(record.step_kind != WLB_FOLLOWED_STEP || merged.step == record.step);
	for (int i = 0; store != NULL && i < merged.count; i++) {
		char letter = record.values[merged.values[i]].name[0];
		struct stored *stored = &store[record.step][letter == 'l' ? 0 : letter == 'a' ? 1 : 2];
		if (!stored->is_there || wlb_origin_order(&origin, &stored->origin) < 0)
			*stored = (struct stored){true, origin};
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct stored stores[2][STEPS][NAMES];
	struct wlb_merge *merges[3] = {wlb_merge_open(), wlb_merge_open(), wlb_merge_open()};
	size_t records = bytes / RECORD_BYTES < RECORDS_MOST ? bytes / RECORD_BYTES : RECORDS_MOST;
	memset(stores, 0, sizeof(stores));
	must(merges[0] != NULL && merges[1] != NULL && merges[2] != NULL);
	for (size_t i = 0; i < records; i++) {
		take(merges[0], data + i * RECORD_BYTES, stores[0]);
		take(merges[1], data + (records - 1 - i) * RECORD_BYTES, stores[1]);
		take(merges[2], data + i * RECORD_BYTES, NULL);
	}
	for (int step = 0; step < STEPS; step++)
		for (int name = 0; name < NAMES; name++) {
			const struct stored *one = &stores[0][step][name], *other = &stores[1][step][name];
			must(one->is_there == other->is_there);
			must(!one->is_there || wlb_origin_order(&one->origin, &other->origin) == 0);
		}
	for (int i = 0; i < 3; i++)
		wlb_merge_close(merges[i]);
	return 0;
}
