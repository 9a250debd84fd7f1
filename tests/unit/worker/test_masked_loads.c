/* Of a dataset with a loss mask the loaders of all ranks together have each target that counts once, and no other, and
 * all know how many there are. */
#include <stdlib.h>

#include "tests/unit/worker/loads.h"

enum { DOCUMENTS = 60, SEQ_LENGTH = 64, WINDOWS = 8, STEPS = 12 };

/* Whether a token counts: whole documents do not, and so do some spans of long ones. */
static int counts(int64_t id)
{
	return id % 11 < 4 && id / 97 % 3 != 0;
}

static void open_masked(struct loads_dataset *d, void **state)
{
	static const int32_t kinds[] = {2, 3, 65, 17, 66, 129, 7, 200};
	int32_t lengths[DOCUMENTS];
	int64_t tokens = 0;
	for (int i = 0; i < DOCUMENTS; i++)
		tokens += lengths[i] = kinds[i % 8];
	char *mask = malloc((size_t)tokens);
	assert_non_null(mask);
	for (int64_t i = 0; i < tokens; i++)
		mask[i] = (char)counts(i);
	fixture_write(state, "x.loss_mask", mask, (size_t)tokens);
	free(mask);
	loads_open(d, state, lengths, DOCUMENTS);
}

/* Returns how many targets a rank has in its micro-batch. */
static int64_t check_rank(const struct loads_batch *b)
{
	int64_t targets = 0;
	for (int64_t i = 0; i < b->about.rows; i++) {
		int is_target = i < b->about.own_rows && counts(b->ids[i] + 1);
		assert_int_equal(b->targets[i], is_target ? b->ids[i] + 1 : -1);
		assert_int_equal(b->about.targets_host[i], b->targets[i]);
		targets += is_target;
	}
	return targets;
}

static void check_layout(const struct loads_dataset *d, struct wlb_layout layout, int64_t of_steps[STEPS])
{
	struct loads_group g;
	struct wlb_loader_options o =
		loads_options(WLB_STRATEGY_BALANCED, WLB_SHARDING_DOCUMENT, SEQ_LENGTH, WINDOWS, 1, 0, layout);
	loads_group_open(&g, d, &o);
	for (int s = 0; s < STEPS; s++) {
		int64_t found = 0;
		loads_group_next(&g);
		for (int i = 0; i < g.ranks * o.micro_batches; i++)
			found += g.batches[i].about.tokens > 0 ? check_rank(&g.batches[i]) : 0;
		for (int r = 0; r < g.ranks; r++)
			assert_int_equal(g.steps[r]->loss_tokens, found);
		if (of_steps[s] == 0)
			of_steps[s] = found;
		assert_int_equal(found, of_steps[s]);
		assert_true(found > 0 && found < g.steps[0]->tokens);
	}
	loads_group_close(&g);
}

static void every_layout_trains_the_same_targets(void **state)
{
	static const struct wlb_layout layouts[] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 1, 3}, {3, 4, 2, 1}};
	struct loads_dataset d;
	int64_t of_steps[STEPS] = {0};
	open_masked(&d, state);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		check_layout(&d, layouts[i], of_steps);
	loads_close(&d);
}

static void without_a_mask_all_count(void **state)
{
	static const int32_t lengths[] = {5, 9, 200, 2};
	struct loads_dataset d;
	loads_open(&d, state, lengths, 4);
	struct wlb_loader_options o = loads_options(WLB_STRATEGY_PLAIN, WLB_SHARDING_SEQUENCE, SEQ_LENGTH, WINDOWS, 1,
	                                            0, (struct wlb_layout){1, 1, 1, 1});
	struct wlb_loader *loader = loads_new(&d, &o);
	const struct wlb_loaded_step *step = loads_next(loader);
	assert_int_equal(step->loss_tokens, step->tokens);
	wlb_loader_free(loader);
	loads_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_layout_trains_the_same_targets, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(without_a_mask_all_count, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
