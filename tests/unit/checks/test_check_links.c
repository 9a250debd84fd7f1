/* The parts of wlb-check-links: the peers of a rank; with four ranks of MPI, messages to and from ranks of which one
 * answers late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "checks/links/messages.h"

static int is_peer(int rank, int size, int other)
{
	int peers[WLB_LINK_PEERS_MOST];
	int count = wlb_link_peers(rank, size, peers);
	for (int i = 0; i < count; i++)
		if (peers[i] == other)
			return 1;
	return 0;
}

static void test_all_ranks_of_a_small_job(void **state)
{
	int peers[WLB_LINK_PEERS_MOST];
	(void)state;
	for (int size = 1; size <= WLB_LINK_PEERS_MOST; size++)
		for (int rank = 0; rank < size; rank++) {
			assert_int_equal(wlb_link_peers(rank, size, peers), size - 1);
			for (int other = 0; other < size; other++)
				assert_int_equal(is_peer(rank, size, other), other != rank);
		}
}

static void test_some_ranks_of_a_large_job(void **state)
{
	static const int sizes[] = {65, 100, 2048, 16384, 1 << 20};
	int peers[WLB_LINK_PEERS_MOST];
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const int ranks[] = {0, 1, sizes[i] / 2, sizes[i] - 1};
		for (int r = 0; r < 4; r++) {
			int count = wlb_link_peers(ranks[r], sizes[i], peers);
			assert_in_range(count, 7, WLB_LINK_PEERS_MOST);
			for (int k = 0; k < count; k++) {
				assert_in_range(peers[k], k == 0 ? 0 : peers[k - 1] + 1, sizes[i] - 1);
				assert_int_not_equal(peers[k], ranks[r]);
				assert_true(is_peer(peers[k], sizes[i], ranks[r]));
			}
		}
	}
}

static void test_each_pair_has_one_round(void **state)
{
	(void)state;
	for (int size = 1; size <= WLB_LINK_PEERS_MOST; size++)
		for (int rank = 0; rank < size; rank++) {
			int rounds[WLB_LINK_PEERS_MOST] = {0};
			for (int round = 0; round < size; round++) {
				int other = wlb_link_partner(rank, size, round);
				assert_in_range(other, 0, size - 1);
				assert_int_equal(wlb_link_partner(other, size, round), rank);
				rounds[other]++;
			}
			for (int other = 0; other < size; other++)
				assert_int_equal(rounds[other], 1);
		}
}

enum { RANKS = 4, LATE = 3 };

static int exchange(int rank, double limit_s, int answered[RANKS - 1])
{
	struct wlb_error error = {0};
	int peers[WLB_LINK_PEERS_MOST];
	assert_int_equal(wlb_link_peers(rank, RANKS, peers), RANKS - 1);
	int rc = wlb_exchange(peers, RANKS - 1, limit_s, answered, &error);
	assert_string_equal(error.message, "");
	return rc;
}

static int answer_of(int rank, const int answered[RANKS - 1], int other)
{
	int peers[WLB_LINK_PEERS_MOST];
	wlb_link_peers(rank, RANKS, peers);
	for (int i = 0; i < RANKS - 1; i++)
		if (peers[i] == other)
			return answered[i];
	return -1;
}

/* Set by Open MPI's mpirun. Alone MPI is not started, since it leaks. */
static int is_under_mpirun(void)
{
	return getenv("OMPI_COMM_WORLD_SIZE") != NULL;
}

/* A pair's time begins when both are there. */
static void test_times_of_pairs(void **state)
{
	struct wlb_pair_times times;
	struct wlb_error error;
	int rank, size;
	(void)state;
	if (!is_under_mpirun())
		skip();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == LATE)
		sleep(2);
	assert_int_equal(wlb_pair_times_measure(rank, size, &times, &error), 1);
	assert_true(times.bytes >= 256 << 10);
	for (int other = 0; other < RANKS; other++)
		if (other == rank)
			assert_true(times.seconds[other] == 0.0);
		else
			assert_true(times.seconds[other] > 0.0 && times.seconds[other] < 2.0);
}

static void test_a_rank_that_answers_late(void **state)
{
	int rank, size, answered[RANKS - 1];
	(void)state;
	if (!is_under_mpirun())
		skip();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	assert_int_equal(size, RANKS);
	assert_int_equal(exchange(rank, 60, answered), 1);
	for (int i = 0; i < RANKS - 1; i++)
		assert_int_equal(answered[i], 1);
	if (rank == LATE) { /* what the others have sent arrives all the same */
		sleep(6);
		assert_int_equal(exchange(rank, 3, answered), 0);
		return;
	}
	assert_int_equal(exchange(rank, 3, answered), 0);
	for (int other = 0; other < RANKS; other++)
		if (other != rank)
			assert_int_equal(answer_of(rank, answered, other), other != LATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_ranks_of_a_small_job), cmocka_unit_test(test_some_ranks_of_a_large_job),
		cmocka_unit_test(test_each_pair_has_one_round),  cmocka_unit_test(test_times_of_pairs),
		cmocka_unit_test(test_a_rank_that_answers_late),
	};
	if (is_under_mpirun() && MPI_Init(NULL, NULL) != MPI_SUCCESS)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (is_under_mpirun())
		MPI_Finalize();
	return failed;
}
