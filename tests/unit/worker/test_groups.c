/* The members of every group; on 1 rank, or on 8 under mpirun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/launch/launch.h"
#include "worker/parallel/groups.h"

enum { RANKS = 8, GROUPS = 7 };

static struct wlb_comm *world;

static struct wlb_model model_of(int64_t heads, int64_t kv_heads, int tied)
{
	return (struct wlb_model){.hidden_size = 8 * heads,
	                          .intermediate_size = 100,
	                          .num_hidden_layers = 4,
	                          .num_attention_heads = heads,
	                          .num_key_value_heads = kv_heads,
	                          .head_dim = 8,
	                          .vocab_size = 100,
	                          .max_position_embeddings = 64,
	                          .rope_theta = 1e4,
	                          .rms_norm_eps = 1e-5,
	                          .tie_word_embeddings = tied};
}

/* The groups of each kind: their members as places, in the order of the group. */
struct expected {
	struct wlb_layout layout; /* tp cp pp dp */
	int64_t kv_heads;
	int tied;
	const char *groups[GROUPS]; /* tp cp data pp pp_back kv ends */
};

static const char alone[] = "0 1 2 3 4 5 6 7", pairs[] = "01 23 45 67", seconds[] = "02 13 46 57",
		  fourths[] = "04 15 26 37", halves[] = "0123 4567";

static const struct expected layouts[] = {
	{{1, 1, 1, 1}, 2, 1, {"0", "0", "0", "0", "0", "0", "0"}},
	{{2, 2, 2, 1}, 1, 1, {pairs, seconds, seconds, fourths, fourths, pairs, fourths}},
	{{1, 2, 1, 4}, 2, 1, {alone, pairs, "01234567", alone, alone, alone, alone}},
	/* Two ranks to a key head; no embedding is shared. */
	{{4, 1, 2, 1}, 2, 0, {halves, alone, alone, fourths, fourths, pairs, alone}},
	/* The stages between the ends are alone. */
	{{1, 1, 4, 2}, 4, 1, {alone, alone, fourths, halves, halves, alone, "03 1 2 47 5 6"}},
	/* cp varies fastest among the ranks that hold the same weights. */
	{{2, 2, 1, 2}, 4, 1, {pairs, seconds, "0246 1357", alone, alone, alone, alone}},
};

static void check_members(struct wlb_comm *group, const char *groups, int place, const int *rank_at)
{
	struct wlb_error error = {0};
	double own = wlb_comm_rank(world), members[RANKS];
	const char *expected = strchr(groups, '0' + place);
	while (expected > groups && expected[-1] != ' ')
		expected--;
	size_t size = strcspn(expected, " ");
	assert_int_equal(wlb_comm_size(group), size);
	assert_int_equal(wlb_comm_all_gather(group, members, &own, 1, WLB_FLOAT64, &error), 0);
	for (size_t i = 0; i < size; i++)
		assert_true(members[i] == rank_at[expected[i] - '0']);
	assert_true(members[wlb_comm_rank(group)] == own);
}

static void check_layout(const struct expected *expected, const int *place_of)
{
	struct wlb_error error = {0};
	struct wlb_model model = model_of(8, expected->kv_heads, expected->tied);
	int rank_at[RANKS], own = wlb_comm_rank(world), size = wlb_comm_size(world);
	for (int rank = 0; rank < size; rank++)
		rank_at[place_of[rank]] = rank;
	struct wlb_groups *g = wlb_groups_open(world, &expected->layout, place_of[own], &model, &error);
	assert_non_null(g);
	assert_int_equal(g->place, place_of[own]);
	assert_int_equal(wlb_layout_place(&g->layout, &g->at), g->place);
	assert_ptr_equal(g->world, world);
	struct wlb_comm *const groups[GROUPS] = {g->tp, g->cp, g->data, g->pp, g->pp_back, g->kv, g->ends};
	static const char *const names[GROUPS] = {"tp", "cp", "data", "pp", "pp_back", "kv", "ends"};
	for (int i = 0; i < GROUPS; i++) {
		assert_string_equal(wlb_comm_name(groups[i]), names[i]);
		check_members(groups[i], expected->groups[i], g->place, rank_at);
	}
	wlb_groups_close(g);
}

/* In every layout above that has as many ranks as there are. */
static void every_group_has_its_members(void **state)
{
	static const int block[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7}, cyclic[RANKS] = {0, 4, 1, 5, 2, 6, 3, 7};
	int checked = 0;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (wlb_layout_ranks(&layouts[i].layout) != wlb_comm_size(world))
			continue;
		check_layout(&layouts[i], block);
		check_layout(&layouts[i], cyclic);
		checked++;
	}
	assert_true(checked > 0);
	(void)state;
}

int main(void)
{
	struct wlb_error error = {0};
	int code = 0;
	struct wlb_launch *launch = wlb_launch_open(&code, &error);
	struct wlb_device *device = launch != NULL ? wlb_device_open_cpu(WLB_FLOAT64, 1, &error) : NULL;
	world = device != NULL ? wlb_comm_open_world(device, launch->rank, launch->size, &error) : NULL;
	if (world == NULL) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_group_has_its_members),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wlb_launch_close(launch); /* before MPI, see launch.h */
	wlb_comm_close(world);
	wlb_device_close(device);
	return failed;
}
