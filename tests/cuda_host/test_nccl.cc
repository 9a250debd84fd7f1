/* NCCL's calls on the ranks of mpirun; check_nccl runs the cases that must end with a report. */
#include "kernels/bfloat16.h"
#include "tests/cuda_host/order.h"
#include "tests/cuda_host/trial.h"

#include <nccl.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <stdlib.h>
#include <thread>
#include <unistd.h>

using namespace cuda_host;

namespace
{
int rank, ranks;
ncclComm_t world;

void expect(ncclResult_t result)
{
	if (result != ncclSuccess)
		fail_msg("%s: %s", ncclGetErrorString(result), ncclGetLastError(NULL));
}

/* The same id on every rank. */
ncclUniqueId new_id()
{
	ncclUniqueId id;
	expect(ncclGetUniqueId(&id));
	MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
	return id;
}

int open_world(void **)
{
	return ncclCommInitRank(&world, ranks, new_id(), rank) != ncclSuccess;
}

int close_world(void **)
{
	return ncclCommDestroy(world) != ncclSuccess;
}

/* Whole numbers that differ from rank to rank and from place to place. */
std::vector<int> numbers(size_t count, int of_rank)
{
	std::vector<int> values(count);
	for (size_t i = 0; i < count; i++)
		values[i] = (int)(i % 1000) * 10 + of_rank;
	return values;
}

int sum_at(size_t i)
{
	return ranks * (int)(i % 1000) * 10 + ranks * (ranks - 1) / 2;
}

/* -- the calls -- */

void test_all_reduce(void **)
{
	for (const size_t count : {0, 1, 7, 5000}) {
		int *memory = trial_memory(count + 1, numbers(count + 1, rank));
		expect(ncclAllReduce(memory, memory, count, ncclInt32, ncclSum, world, trial_stream()));
		const std::vector<int> sums = trial_take(memory, count + 1);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(sums[i], sum_at(i));
		assert_int_equal(sums[count], numbers(count + 1, rank)[count]);
	}
	int *from = trial_memory(5, numbers(5, rank)), *to = trial_memory(5);
	expect(ncclAllReduce(from, to, 5, ncclInt32, ncclMax, world, trial_stream()));
	assert_true(trial_take(to, 5) == numbers(5, ranks - 1));
	trial_take(from, 5);
}

void test_all_reduce_of_floats(void **)
{
	const size_t count = 300;
	std::vector<int> bits(count);
	for (size_t i = 0; i < count; i++) {
		const float value = (float)i / 4 + (float)rank;
		memcpy(&bits[i], &value, sizeof(value));
	}
	int *memory = trial_memory(count, bits);
	expect(ncclAllReduce(memory, memory, count, ncclFloat32, ncclSum, world, trial_stream()));
	bits = trial_take(memory, count);
	for (size_t i = 0; i < count; i++) {
		float value;
		memcpy(&value, &bits[i], sizeof(value));
		assert_true(value == (float)ranks * (float)i / 4 + (float)(ranks * (ranks - 1) / 2));
	}
}

/* 1 on rank 0, half a unit in its last place on the others: what is added to 1 one by one is lost, what is added up
 * first is not. */
void test_bfloat16_is_rounded_after_each_addition(void **)
{
	const auto number = [](int of_rank) { return of_rank == 0 ? 1.0f : 1.0f / 256; };
	const uint16_t mine = wlb_bfloat16_of_float(number(rank));
	const std::vector<int> bits((size_t)ranks, (int)((uint32_t)mine << 16 | mine)); /* two elements in each */
	int *memory = trial_memory((size_t)ranks, bits);
	expect(ncclAllReduce(memory, memory, 2 * (size_t)ranks, ncclBfloat16, ncclSum, world, trial_stream()));
	const std::vector<int> sums = trial_take(memory, (size_t)ranks);
	for (int part = 0; part < ranks; part++) {
		float sum = number((part + 1) % ranks);
		for (int step = 2; step <= ranks; step++)
			sum = wlb_float_of_bfloat16(wlb_bfloat16_of_float(sum + number((part + step) % ranks)));
		const uint16_t want = wlb_bfloat16_of_float(sum);
		assert_int_equal(sums[(size_t)part], (int)((uint32_t)want << 16 | want));
	}
	assert_true(ranks == 2 || sums[0] != sums[(size_t)ranks - 1]);
}

void test_reduce_scatter_and_all_gather(void **)
{
	const size_t count = 999, all = count * (size_t)ranks;
	int *memory = trial_memory(all, numbers(all, rank)), *part = memory + count * (size_t)rank;
	int *sums = trial_memory(count), *gathered = trial_memory(all);
	expect(ncclReduceScatter(memory, sums, count, ncclInt32, ncclSum, world, trial_stream()));
	expect(ncclReduceScatter(memory, part, count, ncclInt32, ncclSum, world, trial_stream()));
	expect(ncclAllGather(sums, gathered, count, ncclInt32, world, trial_stream()));
	expect(ncclAllGather(part, memory, count, ncclInt32, world, trial_stream()));
	const std::vector<int> one = trial_take(gathered, all), other = trial_take(memory, all);
	for (size_t i = 0; i < all; i++)
		assert_int_equal(one[i], sum_at(i));
	assert_true(one == other);
	trial_take(sums, count);
}

void test_broadcast(void **)
{
	const int root = ranks - 1;
	int *from = trial_memory(3000, numbers(3000, rank)), *to = trial_memory(3000);
	expect(ncclBroadcast(from, to, 3000, ncclInt32, root, world, trial_stream()));
	assert_true(trial_take(to, 3000) == numbers(3000, root));
	trial_take(from, 3000);
}

/* Every rank sends to the next and receives from the one before, in one group. */
void test_ring_of_sends_in_a_group(void **)
{
	const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	for (const size_t count : {1, 3000}) {
		int *from = trial_memory(count, numbers(count, rank)), *to = trial_memory(count);
		expect(ncclGroupStart());
		expect(ncclSend(from, count, ncclInt32, next, world, trial_stream()));
		expect(ncclRecv(to, count, ncclInt32, before, world, trial_stream()));
		expect(ncclGroupEnd());
		assert_true(trial_take(to, count) == numbers(count, before));
		trial_take(from, count);
	}
}

/* Ranks use the streams of the same calls differently. */
void test_calls_of_a_communicator_keep_their_order(void **)
{
	int *one = trial_memory(1, numbers(1, rank)), *two = trial_memory(2, numbers(2, rank));
	cudaDeviceSynchronize();
	expect(ncclAllReduce(one, one, 1, ncclInt32, ncclSum, world, trial_stream((size_t)rank % 2)));
	expect(ncclAllReduce(two, two, 2, ncclInt32, ncclSum, world, trial_stream((size_t)(rank + 1) % 2)));
	assert_int_equal(trial_take(one, 1)[0], sum_at(0));
	assert_int_equal(trial_take(two, 2)[1], sum_at(1));
}

/* Two communicators of half the ranks each. */
void test_communicators_of_some_ranks(void **)
{
	const ncclUniqueId ids[] = {new_id(), new_id()};
	const int color = rank % 2, size = (ranks + 1 - color) / 2;
	ncclComm_t half;
	int count, own;
	expect(ncclCommInitRank(&half, size, ids[color], rank / 2));
	expect(ncclCommCount(half, &count));
	expect(ncclCommUserRank(half, &own));
	assert_int_equal(count, size);
	assert_int_equal(own, rank / 2);
	int *memory = trial_memory(1, {rank});
	expect(ncclAllReduce(memory, memory, 1, ncclInt32, ncclMax, half, trial_stream()));
	assert_int_equal(trial_take(memory, 1)[0], 2 * (size - 1) + color);
	expect(ncclCommDestroy(half));
}

/* -- communicators that do not block -- */

ncclResult_t state_of(ncclComm_t comm)
{
	ncclResult_t state;
	expect(ncclCommGetAsyncError(comm, &state));
	return state;
}

void poll(ncclComm_t comm)
{
	while (state_of(comm) == ncclInProgress)
		usleep(100);
	assert_int_equal(state_of(comm), ncclSuccess);
}

ncclComm_t start_without_blocking(const ncclUniqueId &id)
{
	ncclComm_t comm;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 0;
	assert_int_equal(ncclCommInitRankConfig(&comm, ranks, id, rank, &config), ncclInProgress);
	return comm;
}

void test_opening_without_blocking(void **)
{
	const ncclUniqueId id = new_id();
	ncclComm_t comm = nullptr;
	int *memory = trial_memory(1, {1});
	if (rank == 0) {
		comm = start_without_blocking(id);
		for (int i = 0; i < 20; i++, usleep(1000))
			assert_int_equal(state_of(comm), ncclInProgress);
		assert_int_equal(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, trial_stream()),
		                 ncclInvalidArgument);
		assert_non_null(strstr(ncclGetLastError(comm), "before its last operation"));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank != 0)
		comm = start_without_blocking(id);
	poll(comm);
	assert_int_equal(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, trial_stream()), ncclInProgress);
	assert_int_equal(state_of(comm), ncclInProgress); /* a call needs more than one question */
	poll(comm);
	assert_int_equal(trial_take(memory, 1)[0], ranks);
	assert_int_equal(ncclCommFinalize(comm), ncclInProgress);
	poll(comm);
	expect(ncclCommDestroy(comm));
}

/* Each rank opens them in an order of its own, asks for them in another, and then calls on each. */
void test_communicators_opened_side_by_side(void **)
{
	const int count = 5;
	std::vector<ncclUniqueId> ids;
	std::vector<ncclComm_t> comms((size_t)count);
	for (int i = 0; i < count; i++)
		ids.push_back(new_id());
	for (int i = 0; i < count; i++)
		comms[(size_t)((i + rank) % count)] = start_without_blocking(ids[(size_t)((i + rank) % count)]);
	for (int i = 0; i < count; i++)
		poll(comms[(size_t)((2 * i + rank) % count)]);
	for (ncclComm_t comm : comms) {
		int *memory = trial_memory(1, {rank});
		assert_int_equal(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, trial_stream()),
		                 ncclInProgress);
		poll(comm);
		assert_int_equal(trial_take(memory, 1)[0], ranks * (ranks - 1) / 2);
		expect(ncclCommDestroy(comm));
	}
}

/* -- faults -- */

/* What an all-gather on a stream of its own writes is copied by another. */
template <bool faulty> std::vector<int> read_gathered()
{
	trial_stream(0);
	int *part = trial_memory(1, {rank + 1}),
	    *gathered = trial_memory((size_t)ranks, std::vector<int>((size_t)ranks));
	int *copy = trial_memory((size_t)ranks);
	cudaEvent_t done;
	cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
	cudaDeviceSynchronize();
	expect(ncclAllGather(part, gathered, 1, ncclInt32, world, trial_stream(1)));
	cudaEventRecord(done, trial_stream(1));
	if (!faulty)
		cudaStreamWaitEvent(trial_stream(), done, 0);
	cudaMemcpyAsync(copy, gathered, (size_t)ranks * sizeof(int), cudaMemcpyDeviceToDevice, trial_stream());
	const std::vector<int> result = trial_take(copy, (size_t)ranks);
	trial_take(part, 1);
	trial_take(gathered, 1);
	cudaEventDestroy(done);
	return result;
}

void test_all_gather_read_before_it_is_awaited(void **)
{
	const std::vector<std::vector<int>> right = trial_results(read_gathered<false>);
	assert_int_equal(right.size(), 1);
	/* Where the other ranks are slow, every order reads it too early. */
	assert_true(trial_results(read_gathered<true>) != right);
}

/* What one stream writes is reduced on another. */
std::vector<int> reduce_written(bool faulty, ncclComm_t comm)
{
	int *memory = trial_memory(1, {5});
	cudaEvent_t written;
	cudaEventCreateWithFlags(&written, cudaEventDisableTiming);
	cudaDeviceSynchronize();
	cudaMemsetAsync(memory, 0, sizeof(int), trial_stream());
	cudaEventRecord(written, trial_stream());
	if (!faulty)
		cudaStreamWaitEvent(trial_stream(1), written, 0);
	int *sum = trial_memory(1);
	expect(ncclAllReduce(memory, sum, 1, ncclInt32, ncclSum, comm, trial_stream(1)));
	cudaDeviceSynchronize();
	const std::vector<int> result = trial_take(sum, 1);
	trial_take(memory, 1);
	cudaEventDestroy(written);
	return result;
}

/* check_nccl has the same without the event. */
void test_event_before_a_collective(void **)
{
	assert_int_equal(trial_results([] { return reduce_written(false, world); }).size(), 1);
}

/* The event is recorded before the call has reached the stream. */
template <bool faulty> std::vector<int> record_after_call()
{
	ncclComm_t comm = start_without_blocking(new_id());
	poll(comm);
	int *memory = trial_memory(1, {1}), *copy = trial_memory(1);
	cudaEvent_t done;
	cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
	cudaDeviceSynchronize();
	assert_int_equal(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, trial_stream(1)), ncclInProgress);
	if (!faulty)
		poll(comm);
	cudaEventRecord(done, trial_stream(1));
	cudaStreamWaitEvent(trial_stream(), done, 0);
	cudaMemcpyAsync(copy, memory, sizeof(int), cudaMemcpyDeviceToDevice, trial_stream());
	const std::vector<int> result = trial_take(copy, 1);
	poll(comm);
	trial_take(memory, 1);
	cudaEventDestroy(done);
	expect(ncclCommDestroy(comm));
	return result;
}

void test_event_recorded_before_the_call_reached_its_stream(void **)
{
	const std::vector<int> sum = {ranks}, before = {1};
	assert_true(record_after_call<false>() == sum);
	assert_true(record_after_call<true>() == before);
}

/* One rank calls what the others never do; a thread aborts it. */
void test_abort_of_a_collective_that_hangs(void **)
{
	ncclComm_t comm;
	expect(ncclCommInitRank(&comm, ranks, new_id(), rank));
	if (rank == 0) {
		int *memory = trial_memory(1, {7});
		expect(ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, comm, trial_stream()));
		std::thread watchdog([comm] {
			usleep(100000);
			ncclCommAbort(comm);
		});
		assert_int_equal(cudaStreamSynchronize(trial_stream()), cudaSuccess);
		watchdog.join();
		assert_int_equal(trial_take(memory, 1)[0], 7);
	} else {
		expect(ncclCommAbort(comm));
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* -- cases for check_nccl, of two ranks; MPI is started by the first communicator -- */

ncclComm_t open_numbered(int number)
{
	ncclUniqueId id = {};
	id.internal[0] = (char)(number + 1);
	ncclComm_t comm;
	expect(ncclCommInitRank(&comm, 2, id, rank));
	return comm;
}

/* The first passes of two stages with two chunks each: stage 0 sends, sends and receives; stage 1 receives, sends,
 * receives and sends. forward carries what stage 0 sends, back what stage 1 sends, on `streams` streams. */
void run_pipeline(ncclComm_t forward, ncclComm_t back, size_t streams, size_t count)
{
	const char order[] = {rank == 0 ? 's' : 'r', 's', 'r', rank == 0 ? 'r' : 's'};
	int *memory = trial_memory(4 * count, numbers(4 * count, rank));
	cudaDeviceSynchronize();
	for (size_t i = 0; i < 4; i++) {
		const bool is_forward = (order[i] == 's') == (rank == 0);
		ncclComm_t const comm = is_forward ? forward : back;
		cudaStream_t const stream = trial_stream(is_forward ? 0 : streams - 1);
		int *const at = memory + i * count;
		expect(order[i] == 's' ? ncclSend(at, count, ncclInt32, 1 - rank, comm, stream)
		                       : ncclRecv(at, count, ncclInt32, 1 - rank, comm, stream));
	}
	cudaDeviceSynchronize();
	trial_take(memory, 1);
}

void run_case(const std::string &name)
{
	ncclComm_t forward = open_numbered(0), back = open_numbered(1);
	int *memory = trial_memory(4, {1, 2, 3, 4});
	cudaDeviceSynchronize();
	if (name == "one" || name == "small") {
		run_pipeline(forward, forward, 1, name == "one" ? 10000 : 100);
	} else if (name == "streams") { /* which do not help */
		run_pipeline(forward, forward, 2, 10000);
	} else if (name == "two") {
		run_pipeline(forward, back, 2, 10000);
	} else if (name == "mismatch") {
		if (rank == 0)
			ncclAllReduce(memory, memory, 2, ncclInt32, ncclSum, forward, trial_stream());
		else
			ncclAllGather(memory + 3, memory, 1, ncclInt32, forward, trial_stream());
	} else if (name == "bytes") {
		if (rank == 0)
			ncclSend(memory, 2, ncclInt32, 1, forward, trial_stream());
		else
			ncclRecv(memory, 3, ncclInt32, 0, forward, trial_stream());
	} else if (name == "abort") { /* beside a question: one of many comes between */
		std::thread asks([back] {
			ncclResult_t state;
			while (ncclCommGetAsyncError(back, &state) == ncclSuccess)
				;
		});
		usleep(100000);
		ncclCommAbort(forward);
		asks.join();
	} else if (name == "written") {
		reduce_written(true, forward);
	} else if (name == "changed") {
		ncclAllReduce(memory, memory + 2, 2, ncclInt32, ncclSum, forward, trial_stream(1));
		cudaMemsetAsync(memory, 0, sizeof(int), trial_stream());
	}
	cudaDeviceSynchronize();
	trial_take(memory, 1);
	expect(ncclCommDestroy(back));
	expect(ncclCommDestroy(forward));
}
} // namespace

int main(int count, char **arguments)
{
	trial_stream(0);
	if (count > 1) {
		rank = atoi(getenv("OMPI_COMM_WORLD_RANK"));
		run_case(arguments[1]);
		return 0;
	}
	int provided;
	MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_reduce),
		cmocka_unit_test(test_all_reduce_of_floats),
		cmocka_unit_test(test_bfloat16_is_rounded_after_each_addition),
		cmocka_unit_test(test_reduce_scatter_and_all_gather),
		cmocka_unit_test(test_broadcast),
		cmocka_unit_test(test_ring_of_sends_in_a_group),
		cmocka_unit_test(test_calls_of_a_communicator_keep_their_order),
		cmocka_unit_test(test_communicators_of_some_ranks),
		cmocka_unit_test(test_opening_without_blocking),
		cmocka_unit_test(test_communicators_opened_side_by_side),
		cmocka_unit_test(test_all_gather_read_before_it_is_awaited),
		cmocka_unit_test(test_event_before_a_collective),
		cmocka_unit_test(test_event_recorded_before_the_call_reached_its_stream),
		cmocka_unit_test(test_abort_of_a_collective_that_hangs),
	};
	const int failed = cmocka_run_group_tests(tests, open_world, close_world);
	MPI_Finalize();
	return failed;
}
