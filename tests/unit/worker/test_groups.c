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

enum { RANKS = 8, GROUPS = 5 };

static struct wlb_comm *world;

/* What wlb_groups_open asks of worker/comm: recorded in place of what it does, or done and counted. */
static struct {
	int is_on;
	struct wlb_comm_split *splits; /* of the last call */
	int count;
	int split_calls, connect_calls;
} recorded;

int __real_wlb_comm_split_all(struct wlb_comm *parent, const struct wlb_comm_split *splits, int count,
                              struct wlb_error *error);
int __wrap_wlb_comm_split_all(struct wlb_comm *parent, const struct wlb_comm_split *splits, int count,
                              struct wlb_error *error);
int __wrap_wlb_comm_split_all(struct wlb_comm *parent, const struct wlb_comm_split *splits, int count,
                              struct wlb_error *error)
{
	recorded.split_calls++;
	if (!recorded.is_on)
		return __real_wlb_comm_split_all(parent, splits, count, error);
	recorded.count = count;
	memcpy(recorded.splits, splits, (size_t)count * sizeof(*splits));
	return 0;
}

int __real_wlb_comm_connect(struct wlb_comm *const *comms, int count, struct wlb_error *error);
int __wrap_wlb_comm_connect(struct wlb_comm *const *comms, int count, struct wlb_error *error);
int __wrap_wlb_comm_connect(struct wlb_comm *const *comms, int count, struct wlb_error *error)
{
	recorded.connect_calls++;
	return recorded.is_on ? 0 : __real_wlb_comm_connect(comms, count, error);
}

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
	const char *groups[GROUPS]; /* tp cp data kv tied */
	int shared_head;
};

static const char alone[] = "0 1 2 3 4 5 6 7", pairs[] = "01 23 45 67", seconds[] = "02 13 46 57",
		  fourths[] = "04 15 26 37", halves[] = "0123 4567";

#define EXPECT(...)                                                                                                    \
	{                                                                                                              \
		__VA_ARGS__, 0                                                                                         \
	}
#define EXPECT_SHARED(...)                                                                                             \
	{                                                                                                              \
		__VA_ARGS__, 1                                                                                         \
	}
static const struct expected layouts[] = {
	EXPECT({1, 1, 1, 1}, 2, 1, {"0", "0", "0", "0", "0"}),
	EXPECT({2, 2, 2, 1}, 1, 1, {pairs, seconds, seconds, pairs, fourths}),
	EXPECT({1, 2, 1, 4}, 2, 1, {alone, pairs, "01234567", alone, alone}),
	/* Two ranks to a key head; no embedding is shared. */
	EXPECT({4, 1, 2, 1}, 2, 0, {halves, alone, alone, pairs, alone}),
	/* The stages between the ends are alone. */
	EXPECT({1, 1, 4, 2}, 4, 1, {alone, alone, fourths, alone, "03 1 2 47 5 6"}),
	EXPECT({1, 1, 8, 1}, 4, 0, {alone, alone, alone, alone, alone}),
	/* cp varies fastest among the ranks that hold the same weights. */
	EXPECT({2, 2, 1, 2}, 4, 1, {pairs, seconds, "0246 1357", alone, alone}),
	/* A shared head is on all stages, whether it is the embedding or not. */
	EXPECT_SHARED({1, 1, 4, 2}, 4, 1, {alone, alone, fourths, alone, halves}),
	EXPECT_SHARED({2, 1, 4, 1}, 4, 0, {pairs, alone, alone, alone, "0246 1357"}),
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

/* One edge of the ring of stages: the sender first. */
static void check_edge(struct wlb_groups *g, struct wlb_comm *edge, int from_stage, int to_stage, const int *rank_at)
{
	struct wlb_error error = {0};
	int stages = g->layout.pp;
	double own = wlb_comm_rank(world), members[2];
	if (stages == 1) {
		assert_int_equal(wlb_comm_size(edge), 1);
		return;
	}
	struct wlb_coordinates from = g->coords, to = g->coords;
	from.pp = (from_stage + stages) % stages;
	to.pp = (to_stage + stages) % stages;
	assert_int_equal(wlb_comm_size(edge), 2);
	assert_int_equal(wlb_comm_rank(edge), from.pp == g->coords.pp ? 0 : 1);
	assert_int_equal(wlb_comm_all_gather(edge, members, &own, 1, WLB_FLOAT64, &error), 0);
	assert_true(members[0] == rank_at[wlb_layout_place(&g->layout, &from)]);
	assert_true(members[1] == rank_at[wlb_layout_place(&g->layout, &to)]);
}

/* Every edge has a communicator of its own for each kind. The ranks gather on even edges before odd ones, so that they
 * meet. */
static void check_edges(struct wlb_groups *g, const int *rank_at)
{
	int own = g->coords.pp;
	struct wlb_comm *const edges[] = {g->activations_in, g->activations_out, g->gradients_in, g->gradients_out};
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			assert_ptr_not_equal(edges[i], edges[j]);
	for (int turn = 0; turn < 3; turn++) {
		int last = g->layout.pp - 1, before = own == 0 ? last : own - 1;
		int after_is_now = turn == (own == last ? 2 : own % 2);
		int before_is_now = turn == (before == last ? 2 : before % 2);
		if (after_is_now)
			check_edge(g, g->activations_out, own, own + 1, rank_at);
		if (before_is_now)
			check_edge(g, g->activations_in, own - 1, own, rank_at);
		if (after_is_now)
			check_edge(g, g->gradients_in, own + 1, own, rank_at);
		if (before_is_now)
			check_edge(g, g->gradients_out, own, own - 1, rank_at);
	}
}

/* Where the head is shared: an edge from the last stage to each other one, and one back. */
static void check_head_edges(struct wlb_groups *g, int shared, const int *rank_at)
{
	int last = g->layout.pp - 1, own = g->coords.pp;
	assert_int_equal(g->head_rows != NULL, shared);
	assert_int_equal(g->head_gradients != NULL, shared);
	for (int stage = 0; shared && stage < last; stage++) {
		assert_int_equal(g->head_rows[stage] != NULL, own == last || own == stage);
		assert_int_equal(g->head_gradients[stage] != NULL, own == last || own == stage);
		if (g->head_rows[stage] == NULL)
			continue;
		check_edge(g, g->head_rows[stage], last, stage, rank_at);
		check_edge(g, g->head_gradients[stage], stage, last, rank_at);
	}
}

static void check_layout(const struct expected *expected, const int *place_of)
{
	struct wlb_error error = {0};
	struct wlb_model model = model_of(8, expected->kv_heads, expected->tied);
	int rank_at[RANKS], own = wlb_comm_rank(world), size = wlb_comm_size(world);
	for (int rank = 0; rank < size; rank++)
		rank_at[place_of[rank]] = rank;
	const struct wlb_plan plan = {.layout = expected->layout, .shared_head = expected->shared_head};
	struct wlb_groups *g = wlb_groups_open(world, &plan, place_of[own], &model, &error);
	assert_non_null(g);
	assert_int_equal(g->place, place_of[own]);
	assert_int_equal(wlb_layout_place(&g->layout, &g->coords), g->place);
	assert_ptr_equal(g->world, world);
	struct wlb_comm *const groups[GROUPS] = {g->tp, g->cp, g->data, g->kv, g->tied};
	static const char *const names[GROUPS] = {"tp", "cp", "data", "kv", "tied"};
	for (int i = 0; i < GROUPS; i++) {
		assert_string_equal(wlb_comm_name(groups[i]), names[i]);
		check_members(groups[i], expected->groups[i], g->place, rank_at);
	}
	check_edges(g, rank_at);
	check_head_edges(g, expected->shared_head, rank_at);
	wlb_groups_close(g);
}

/* Of dynamic context parallelism: cp x dp ranks and the powers of two below, but for cp. */
static const struct {
	struct wlb_layout layout;
	const char *groups[3];
	int count;
} dynamic_layouts[] = {
	{{1, 1, 1, 1}, {NULL}, 0},
	{{1, 2, 1, 4}, {"01234567", halves, alone}, 3},
	{{1, 4, 1, 2}, {"01234567", pairs, alone}, 3},
	{{2, 2, 1, 2}, {"0246 1357", alone}, 2},
	{{1, 1, 2, 4}, {"0246 1357", "02 46 13 57"}, 2},
};

static void documents_have_groups_of_every_size(void **state)
{
	static const int block[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
	const struct wlb_model model = model_of(8, 8, 0);
	struct wlb_error error = {0};
	for (size_t i = 0; i < sizeof(dynamic_layouts) / sizeof(dynamic_layouts[0]); i++) {
		const struct wlb_plan plan = {.layout = dynamic_layouts[i].layout, .dynamic_cp = 1};
		if (wlb_layout_ranks(&plan.layout) != wlb_comm_size(world))
			continue;
		struct wlb_groups *g = wlb_groups_open(world, &plan, wlb_comm_rank(world), &model, &error);
		assert_non_null(g);
		assert_int_equal(g->key_group_count, 1 + dynamic_layouts[i].count);
		assert_ptr_equal(g->key_groups[0], g->cp);
		for (int k = 0; k < dynamic_layouts[i].count; k++)
			check_members(g->key_groups[1 + k], dynamic_layouts[i].groups[k], g->place, block);
		wlb_groups_close(g);
	}
	(void)state;
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

/* What opening the groups of a large run takes: the most that a rank does. */
struct start_up {
	struct wlb_layout layout; /* tp cp pp dp */
	int shared_head, dynamic_cp;
	int splits; /* groups that were opened one after the other when each was split off and connected by itself */
	int communicators; /* of two ranks or more, all of which are connected side by side */
	int ids;           /* that it sends to other ranks, one message each */
};

static const struct start_up large[] = {
	{{8, 1, 16, 32}, 1, 0, 41, 37, 7 + 31 + 15 + 2 + 1},      /* 4,096 ranks */
	{{8, 2, 16, 64}, 1, 0, 41, 38, 7 + 1 + 127 + 15 + 2 + 1}, /* 2,048 nodes of 8 */
	{{8, 2, 1, 1024}, 0, 0, 9, 3, 7 + 1 + 2047},              /* the largest group */
	/* And with groups of 128, 64 ... 4 ranks and of one. */
	{{8, 2, 16, 64}, 1, 8, 48, 44, 7 + 1 + 127 + 15 + 2 + 1 + 127 + 63 + 31 + 15 + 7 + 3},
};

/* Sets sizes[split * ranks + color] and splits[place * count + split] of all places. */
static void record_all(const struct start_up *run, int ranks, struct wlb_comm_split *splits, int *sizes)
{
	struct wlb_error error = {0};
	const struct wlb_model model = model_of(8, 8, 0);
	const struct wlb_plan plan = {
		.layout = run->layout, .shared_head = run->shared_head, .dynamic_cp = run->dynamic_cp};
	for (int place = 0; place < ranks; place++) {
		recorded.splits = &splits[place * run->splits];
		struct wlb_groups *g = wlb_groups_open(world, &plan, place, &model, &error);
		assert_non_null(g);
		wlb_groups_close(g);
		assert_int_equal(recorded.count, run->splits);
		for (int i = 0; i < run->splits; i++)
			if (recorded.splits[i].color >= 0)
				sizes[i * ranks + recorded.splits[i].color]++;
	}
}

/* Every rank makes two calls of worker/comm, whatever the layout and the number of ranks. */
static void check_start_up(const struct start_up *run)
{
	const int ranks = wlb_layout_ranks(&run->layout), count = run->splits;
	struct wlb_comm_split *splits = calloc((size_t)ranks * (size_t)count, sizeof(*splits));
	int *sizes = calloc((size_t)ranks * (size_t)count, sizeof(*sizes)), most_communicators = 0, most_ids = 0;
	assert_true(splits != NULL && sizes != NULL);
	recorded.split_calls = recorded.connect_calls = 0;
	record_all(run, ranks, splits, sizes);
	assert_true(recorded.split_calls == ranks && recorded.connect_calls == ranks);
	for (int place = 0; place < ranks; place++) {
		int communicators = 0, ids = 0;
		for (int i = 0; i < count; i++) {
			const struct wlb_comm_split *split = &splits[place * count + i];
			int size = split->color >= 0 ? sizes[i * ranks + split->color] : 1;
			communicators += size > 1;
			ids += split->key == 0 ? size - 1 : 0;
		}
		most_communicators = communicators > most_communicators ? communicators : most_communicators;
		most_ids = ids > most_ids ? ids : most_ids;
	}
	assert_int_equal(most_communicators, run->communicators);
	assert_int_equal(most_ids, run->ids);
	free(splits);
	free(sizes);
}

static void start_up_is_bounded(void **state)
{
	(void)state;
	if (wlb_comm_size(world) > 1)
		return; /* the same on each rank: one alone computes it */
	recorded.is_on = 1;
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		check_start_up(&large[i]);
	recorded.is_on = 0;
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
		cmocka_unit_test(documents_have_groups_of_every_size),
		cmocka_unit_test(start_up_is_bounded),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wlb_launch_close(launch); /* before MPI, see launch.h */
	wlb_comm_close(world);
	wlb_device_close(device);
	return failed;
}
