/* Clusters of stacks in the form that wlb-stacks prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libverdict/wlb_verdict.h"

#define FRAMES(...)                                                                                                    \
	((const char *const[]){__VA_ARGS__}), (int32_t)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))
#define OUTSIDE                                                                                                        \
	"wlb_train_steps+0x2a1 (wlb-worker)", "wlb_train+0x4f0 (wlb-worker)", "main+0x11 (wlb-worker)",                \
		"0x2724a (libc.so.6)", "__libc_start_main+0x85 (libc.so.6)", "_start+0x21 (wlb-worker)"

#define STACK(rank, frames) ((struct wlb_verdict_stack){rank, frames, (int32_t)(sizeof(frames) / sizeof(frames[0]))})

/* In an all_reduce, at several depths of MPI's progress. */
static struct wlb_verdict_stack waiting(int32_t rank)
{
	static const char *const shallow[] = {
		"opal_progress+0x30 (libopen-pal.so.40.30.2)", "ompi_request_default_wait+0x105 (libmpi.so.40.30.4)",
		"PMPI_Allreduce+0x1b7 (libmpi.so.40.30.4)",    "wlb_mpi_all_reduce+0x6c (wlb-worker)",
		"wlb_comm_all_reduce+0x41 (wlb-worker)",       OUTSIDE};
	static const char *const deep[] = {"poll+0x4f (libc.so.6)",
	                                   "0x22aa (libevent_core-2.1.so.7)",
	                                   "opal_progress+0x7c (libopen-pal.so.40.30.2)",
	                                   "ompi_coll_base_allreduce_intra_recursivedoubling+0x3b2 (libmpi.so.40.30.4)",
	                                   "PMPI_Allreduce+0x1b7 (libmpi.so.40.30.4)",
	                                   "wlb_mpi_all_reduce+0x6c (wlb-worker)",
	                                   "wlb_comm_all_reduce+0x41 (wlb-worker)",
	                                   OUTSIDE};
	return rank % 2 == 0 ? STACK(rank, shallow) : STACK(rank, deep);
}

static struct wlb_verdict_stack receiving(int32_t rank)
{
	static const char *const frames[] = {"opal_progress+0x30 (libopen-pal.so.40.30.2)",
	                                     "PMPI_Recv+0x1b7 (libmpi.so.40.30.4)", "wlb_mpi_recv+0x6c (wlb-worker)",
	                                     OUTSIDE};
	return STACK(rank, frames);
}

static struct wlb_verdict_stack computing(int32_t rank)
{
	static const char *const frames[] = {"sgemm_kernel_HASWELL+0x9c1 at sgemm.c:7 (libopenblas.so.0)",
	                                     "sgemm_nn+0x2bb (libopenblas.so.0)", "wlb_backward+0x1f2 (wlb-worker)",
	                                     OUTSIDE};
	return STACK(rank, frames);
}

static struct wlb_verdict_clusters *cluster(const struct wlb_verdict_stack *stacks, int32_t count)
{
	struct wlb_verdict_clusters *clusters = wlb_verdict_clusters_new(stacks, count, NULL, 0, NULL);
	assert_non_null(clusters);
	assert_int_equal(clusters->group, -1);
	return clusters;
}

static int32_t suspects(const struct wlb_verdict_clusters *clusters)
{
	int32_t count = 0;
	for (int32_t i = 0; i < clusters->count; i++)
		count += clusters->list[i].is_suspect ? clusters->list[i].count : 0;
	return count;
}

static void where_all_are_alike_nobody_is_suspect(void **state)
{
	(void)state;
	struct wlb_verdict_stack stacks[8];
	for (int32_t i = 0; i < 8; i++)
		stacks[i] = waiting(7 - i);
	struct wlb_verdict_clusters *clusters = cluster(stacks, 8);
	assert_int_equal(clusters->count, 1);
	assert_int_equal(clusters->list[0].count, 8);
	assert_int_equal(clusters->list[0].ranks[0], 0);
	assert_int_equal(clusters->list[0].ranks[7], 7);
	assert_int_equal(clusters->list[0].stack, 7);
	assert_string_equal(stacks[7].frames[clusters->list[0].innermost], "PMPI_Allreduce+0x1b7 (libmpi.so.40.30.4)");
	assert_int_equal(suspects(clusters), 0);
	wlb_verdict_clusters_free(clusters);
}

static void of_two_halves_nobody_is_suspect(void **state)
{
	(void)state;
	struct wlb_verdict_stack stacks[8];
	for (int32_t i = 0; i < 8; i++)
		stacks[i] = i < 4 ? waiting(i) : receiving(i);
	struct wlb_verdict_clusters *clusters = cluster(stacks, 8);
	assert_int_equal(clusters->count, 2);
	assert_int_equal(suspects(clusters), 0);
	wlb_verdict_clusters_free(clusters);
	clusters = cluster((const struct wlb_verdict_stack[]){waiting(0), computing(1)}, 2);
	assert_int_equal(suspects(clusters), 0);
	wlb_verdict_clusters_free(clusters);
}

static void the_one_that_differs_is_suspect(void **state)
{
	(void)state;
	struct wlb_verdict_stack stacks[8];
	for (int32_t i = 0; i < 8; i++)
		stacks[i] = i == 5 ? computing(i) : waiting(i);
	struct wlb_verdict_clusters *clusters = cluster(stacks, 8);
	assert_int_equal(clusters->count, 2);
	assert_int_equal(suspects(clusters), 1);
	assert_int_equal(clusters->list[1].ranks[0], 5);
	assert_int_equal(clusters->list[1].stack, 5);
	wlb_verdict_clusters_free(clusters);
}

/* Those that wait for the one in another call are fewer than half, and more than it. */
static void the_fewest_are_suspect(void **state)
{
	(void)state;
	struct wlb_verdict_stack stacks[8];
	for (int32_t i = 0; i < 8; i++)
		stacks[i] = i == 2 ? computing(i) : i < 2 ? receiving(i) : waiting(i);
	struct wlb_verdict_clusters *clusters = cluster(stacks, 8);
	assert_int_equal(clusters->count, 3);
	assert_int_equal(clusters->list[1].count, 2);
	assert_int_equal(clusters->list[1].is_suspect, 0);
	assert_int_equal(clusters->list[2].ranks[0], 2);
	assert_int_equal(clusters->list[2].is_suspect, 1);
	wlb_verdict_clusters_free(clusters);
}

static void the_group_that_outliers_share_is_named(void **state)
{
	(void)state;
	static const int32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7}, half[] = {4, 5, 6, 7}, stage[] = {6, 7},
			     other[] = {5, 6};
	const struct wlb_verdict_group groups[] = {
		{.kind = WLB_VERDICT_WORLD, .name = "all", .members = all, .count = 8},
		{.kind = WLB_VERDICT_OTHER, .name = "node", .members = half, .count = 4},
		{.kind = WLB_VERDICT_OTHER, .name = "other", .members = other, .count = 2},
		{.kind = WLB_VERDICT_OTHER, .name = "stage", .members = stage, .count = 2}};
	struct wlb_verdict_stack stacks[8];
	for (int32_t i = 0; i < 8; i++)
		stacks[i] = i < 6 ? waiting(i) : i == 6 ? computing(i) : receiving(i);
	struct wlb_verdict_clusters *clusters = wlb_verdict_clusters_new(stacks, 8, groups, 4, NULL);
	assert_int_equal(clusters->group, 3);
	wlb_verdict_clusters_free(clusters);
	stacks[5] = computing(5);
	clusters = wlb_verdict_clusters_new(stacks, 8, groups, 4, NULL);
	assert_int_equal(clusters->group, 1);
	wlb_verdict_clusters_free(clusters);
	/* One outlier is named by itself, and ranks that only the group of all ranks holds share none. */
	stacks[5] = waiting(5), stacks[6] = waiting(6);
	clusters = wlb_verdict_clusters_new(stacks, 8, groups, 4, NULL);
	assert_int_equal(clusters->group, -1);
	wlb_verdict_clusters_free(clusters);
	stacks[0] = computing(0);
	clusters = wlb_verdict_clusters_new(stacks, 8, groups, 4, NULL);
	assert_int_equal(clusters->group, -1);
	wlb_verdict_clusters_free(clusters);
}

/* Of Python, whose functions have no symbols in part. */
static void a_system_call_counts_as_its_outermost_frame(void **state)
{
	(void)state;
	const struct wlb_verdict_stack stacks[] = {
		{0,
	         FRAMES("clock_nanosleep+0x23 (libc.so.6)", "__nanosleep+0x13 (libc.so.6)", "usleep+0x44 (libc.so.6)",
	                "0x1f0ad3 (python3.11)", "Py_BytesMain+0x39 (python3.11)", "0x2724a (libc.so.6)")},
		{1, FRAMES("usleep+0x12 (libc.so.6)", "0x1f0bbb (python3.11)", "Py_BytesMain+0x39 (python3.11)",
	                   "0x2724a (libc.so.6)")},
		{2, FRAMES("read+0xd (libc.so.6)", "0x1f0bbb (python3.11)", "Py_BytesMain+0x39 (python3.11)",
	                   "0x2724a (libc.so.6)")}};
	struct wlb_verdict_clusters *clusters = cluster(stacks, 3);
	assert_int_equal(clusters->count, 2);
	assert_int_equal(clusters->list[0].count, 2);
	assert_int_equal(clusters->list[0].innermost, 2);
	assert_int_equal(clusters->list[1].ranks[0], 2);
	wlb_verdict_clusters_free(clusters);
}

static void ranks_without_frames_are_a_cluster(void **state)
{
	(void)state;
	const struct wlb_verdict_stack stacks[] = {
		waiting(0), {1, NULL, 0}, waiting(2), {3, FRAMES("nfs_wait (kernel)")}};
	struct wlb_verdict_clusters *clusters = cluster(stacks, 4);
	assert_int_equal(clusters->count, 3);
	assert_int_equal(suspects(clusters), 0); /* two of four are no more than half */
	wlb_verdict_clusters_free(clusters);
	clusters = cluster(stacks, 0);
	assert_int_equal(clusters->count, 0);
	wlb_verdict_clusters_free(clusters);
	wlb_verdict_clusters_free(NULL);
}

static void versions_and_offsets_do_not_count(void **state)
{
	(void)state;
	const struct wlb_verdict_stack stacks[] = {
		{0, FRAMES("f(int, char)+0x1 (libx.so.1.2)", "g+0x99 (a)")},
		{1, FRAMES("f(int, char)+0xabc at f.cc:7 (libx.so.1.3)", "g+0x1 at g.cc:12 (a)")},
		{2, FRAMES("f(int, char)+0xabc (liby.so.1.3)", "g+0x1 (a)")},
		{3, FRAMES("f(int, char)+0xabc (libx.so.1.3)", "ga+0x1 (a)")},
	};
	struct wlb_verdict_clusters *clusters = cluster(stacks, 4);
	assert_int_equal(clusters->count, 3);
	assert_int_equal(clusters->list[0].count, 2);
	wlb_verdict_clusters_free(clusters);
}

static void a_verdict_names_the_suspects(void **state)
{
	(void)state;
	struct wlb_verdict_stack stacks[12];
	struct wlb_verdict verdict = {.rank_count = 77};
	for (int32_t i = 0; i < 12; i++)
		stacks[i] = i == 9 ? computing(i) : i == 3 || i == 4 ? receiving(i) : waiting(i);
	struct wlb_verdict_clusters *clusters = cluster(stacks, 12);
	assert_int_equal(wlb_verdict_of_clusters(clusters, stacks, NULL, &verdict), 1);
	assert_int_equal(verdict.kind, WLB_VERDICT_OUTLIERS);
	assert_string_equal(wlb_verdict_kind_name(verdict.kind), "stack outliers");
	assert_int_equal(verdict.stage, WLB_VERDICT_CONFIRMED);
	assert_int_equal(verdict.node, -1);
	assert_int_equal(verdict.group, -1);
	assert_int_equal(verdict.rank_count, 1);
	assert_int_equal(verdict.ranks[0], 9);
	assert_true(verdict.certainty == 0.5 && verdict.cost_percent == 100.0);
	assert_string_equal(verdict.evidence,
	                    "9 of 12 ranks are in PMPI_Allreduce (libmpi.so.40.30.4), 2 in PMPI_Recv "
	                    "(libmpi.so.40.30.4), 1 in sgemm_kernel_HASWELL at sgemm.c:7 (libopenblas.so.0)");
	wlb_verdict_clusters_free(clusters);
}

/* More ranks than a verdict lists, in several clusters. */
static void a_verdict_names_the_group(void **state)
{
	(void)state;
	enum { RANKS = 64, FIRST = 32, MEMBERS = 20 };
	struct wlb_verdict_stack stacks[RANKS];
	struct wlb_verdict verdict;
	int32_t members[MEMBERS];
	for (int32_t i = 0; i < RANKS; i++)
		stacks[i] = i < FIRST || i >= FIRST + MEMBERS ? waiting(i) : i % 4 == 0 ? computing(i) : receiving(i);
	for (int32_t i = 0; i < MEMBERS; i++)
		members[i] = FIRST + i;
	const struct wlb_verdict_group group = {
		.kind = WLB_VERDICT_OTHER, .name = "node n5", .members = members, .count = MEMBERS};
	struct wlb_verdict_clusters *clusters = wlb_verdict_clusters_new(stacks, RANKS, &group, 1, NULL);
	assert_int_equal(wlb_verdict_of_clusters(clusters, stacks, &group, &verdict), 1);
	assert_int_equal(verdict.group, 0);
	assert_int_equal(verdict.rank_count, MEMBERS);
	for (int32_t i = 0; i < WLB_VERDICT_RANKS; i++)
		assert_int_equal(verdict.ranks[i], FIRST + i);
	assert_non_null(strstr(verdict.evidence, "; all that are not with most ranks are of node n5"));
	wlb_verdict_clusters_free(clusters);
}

static void no_verdict_where_nobody_is_suspect(void **state)
{
	(void)state;
	struct wlb_verdict verdict = {.rank_count = 77};
	const struct wlb_verdict_stack stacks[] = {waiting(0), waiting(1), computing(2), computing(3)};
	for (int32_t count = 0; count <= 4; count += 2) {
		struct wlb_verdict_clusters *clusters = cluster(stacks, count);
		assert_int_equal(wlb_verdict_of_clusters(clusters, stacks, NULL, &verdict), 0);
		assert_int_equal(verdict.rank_count, 77);
		wlb_verdict_clusters_free(clusters);
	}
}

static void wrong_ranks_are_refused(void **state)
{
	(void)state;
	struct wlb_verdict_error error = {""};
	assert_null(wlb_verdict_clusters_new((const struct wlb_verdict_stack[]){waiting(3), computing(3)}, 2, NULL, 0,
	                                     &error));
	assert_string_equal(error.message, "rank 3 is listed twice; give one stack of each rank");
	assert_null(wlb_verdict_clusters_new((const struct wlb_verdict_stack[]){waiting(-2)}, 1, NULL, 0, &error));
	assert_string_equal(error.message, "rank -2: must not be negative");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_all_are_alike_nobody_is_suspect),
		cmocka_unit_test(of_two_halves_nobody_is_suspect),
		cmocka_unit_test(the_one_that_differs_is_suspect),
		cmocka_unit_test(the_fewest_are_suspect),
		cmocka_unit_test(the_group_that_outliers_share_is_named),
		cmocka_unit_test(a_system_call_counts_as_its_outermost_frame),
		cmocka_unit_test(ranks_without_frames_are_a_cluster),
		cmocka_unit_test(versions_and_offsets_do_not_count),
		cmocka_unit_test(a_verdict_names_the_suspects),
		cmocka_unit_test(a_verdict_names_the_group),
		cmocka_unit_test(no_verdict_where_nobody_is_suspect),
		cmocka_unit_test(wrong_ranks_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
