#include "tests/cuda_host/block.h"
#include "tests/cuda_host/fiber.h"
#include "tests/cuda_host/hopper.h"
#include "tests/cuda_host/order.h"
#include "tests/cuda_host/report.h"

#include <algorithm>
#include <memory>
#include <stdio.h>
#include <string>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace
{
enum class state { can_run, at_barrier, at_warp_operation, in_list, left };

struct thread {
	enum state state;
	cuda_host::fiber *fiber; /* NULL until it first runs */
	/* of at_warp_operation */
	const char *name;
	unsigned mask;
	cuda_host::warp_operation operation;
	void *mine;
	cuda_host::waiting_threads *list; /* of in_list */
};

const int WORD_BITS = 64;
const unsigned MOST_THREADS = 1024;

std::vector<std::unique_ptr<cuda_host::fiber>> fibers; /* all, kept from block to block */
std::vector<cuda_host::fiber *> idle;                  /* those of no thread */
std::vector<thread> threads;
uint64_t can_run[MOST_THREADS / WORD_BITS]; /* a bit for each thread in that state */
unsigned current;
unsigned next; /* the thread that runs when the current one waits or has left; the number of threads if none can */
const std::function<void()> *body;
uint64_t blocks_begun;

void set_can_run(unsigned number)
{
	threads[number].state = state::can_run;
	can_run[number / WORD_BITS] |= uint64_t(1) << (number % WORD_BITS);
}

/* The first of the threads that can run, from `start` on and around; the number of threads if none can. */
unsigned first_from(unsigned start)
{
	const unsigned words = MOST_THREADS / WORD_BITS;
	for (unsigned i = 0; i <= words; i++) {
		const unsigned word = (start / WORD_BITS + i) % words;
		uint64_t bits = can_run[word];
		if (i == 0)
			bits &= ~uint64_t(0) << (start % WORD_BITS);
		if (bits != 0)
			return word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
	}
	return (unsigned)threads.size();
}

unsigned last()
{
	for (unsigned word = MOST_THREADS / WORD_BITS; word-- > 0;)
		if (can_run[word] != 0)
			return word * WORD_BITS + WORD_BITS - 1 - (unsigned)__builtin_clzll(can_run[word]);
	return (unsigned)threads.size();
}

unsigned choose()
{
	switch (cuda_host_get_orders()->order) {
	case CUDA_HOST_ASCENDING:
		return first_from(0);
	case CUDA_HOST_DESCENDING:
		return last();
	case CUDA_HOST_RANDOM:
		break;
	}
	return first_from((unsigned)cuda_host_random(threads.size()));
}

void set_current(unsigned number)
{
	current = number;
	threadIdx.x = number % blockDim.x;
	threadIdx.y = number / blockDim.x % blockDim.y;
	threadIdx.z = number / blockDim.x / blockDim.y;
}

void start_turn(unsigned number)
{
	set_current(number);
	can_run[number / WORD_BITS] &= ~(uint64_t(1) << (number % WORD_BITS));
}

/* What a fiber runs: a thread, and then further threads for as long as the next has no fiber yet, so that threads that
 * do not wait cost no switch. */
void run_threads()
{
	cuda_host::fiber *const own = threads[current].fiber;
	for (;;) {
		(*body)();
		threads[current].state = state::left;
		next = choose();
		if (next == threads.size() || threads[next].fiber != nullptr)
			return;
		start_turn(next);
		threads[current].fiber = own;
	}
}

cuda_host::fiber *idle_fiber()
{
	if (idle.empty()) {
		fibers.push_back(std::make_unique<cuda_host::fiber>(run_threads));
		return fibers.back().get();
	}
	cuda_host::fiber *const fiber = idle.back();
	idle.pop_back();
	return fiber;
}

/* Runs thread `next` until it waits or returns. */
void run_next()
{
	start_turn(next);
	if (threads[current].fiber == nullptr)
		threads[current].fiber = idle_fiber();
	cuda_host::fiber *const fiber = threads[current].fiber;
	if (fiber->run())
		idle.push_back(fiber);
}

/* The current thread, whose state says why, waits. */
void wait()
{
	cuda_host::fiber *const fiber = threads[current].fiber;
	next = choose();
	fiber->leave();
}

std::string describe(unsigned number)
{
	const thread &t = threads[number];
	char text[160];
	if (t.state == state::in_list)
		return "thread " + std::to_string(number) + " of the block " + t.list->describe();
	const char *does = t.state == state::left ? "has left the kernel" : "waits at __syncthreads";
	if (t.state == state::at_warp_operation)
		snprintf(text, sizeof(text), "thread %u of the block (lane %u) waits at %s with mask 0x%08x", number,
		         number % warpSize, t.name, t.mask);
	else
		snprintf(text, sizeof(text), "thread %u of the block (lane %u) %s", number, number % warpSize, does);
	return text;
}

bool belong_together(const thread &one, const thread &other)
{
	return other.state == state::at_warp_operation && other.mask == one.mask && other.operation == one.operation;
}

/* The first thread for which `number` waits and that does not wait for it. */
unsigned first_absent(unsigned number)
{
	const thread &t = threads[number];
	const unsigned warp = number - number % warpSize;
	if (t.state == state::at_warp_operation) {
		for (unsigned lane = 0; lane < warpSize; lane++)
			if ((t.mask >> lane & 1) && !belong_together(t, threads[warp + lane]))
				return warp + lane;
		return number;
	}
	unsigned other = 0;
	while (other < threads.size() && threads[other].state == state::at_barrier)
		other++;
	return other;
}

/* What the threads from `first` on do that do the same; `end` is the number after the last of them. */
std::string describe_alike(unsigned first, unsigned *end)
{
	const thread &t = threads[first];
	for (*end = first + 1; *end < threads.size(); ++*end)
		if (threads[*end].state != t.state || threads[*end].list != t.list)
			break;
	return describe(first) + (*end - first > 1 ? ", as all up to thread " + std::to_string(*end - 1) : "");
}

/* Thread `waiting` waits in a list, or for one that does. */
[[noreturn]] void report_lists(unsigned waiting)
{
	std::string all;
	for (unsigned number = 0; number < threads.size();)
		all += "\n  " + describe_alike(number, &number);
	set_current(waiting);
	cuda_host::report("no thread of the block can run:%s", all.c_str());
}

/* The lists in which threads wait, each once. */
std::vector<cuda_host::waiting_threads *> lists()
{
	std::vector<cuda_host::waiting_threads *> found;
	for (const thread &t : threads)
		if (t.state == state::in_list && std::find(found.begin(), found.end(), t.list) == found.end())
			found.push_back(t.list);
	return found;
}

/* No thread can run: what runs beside them does a part of its work, if it has any for threads that wait: that for the
 * first, the last or any of their lists. Returns whether it had. */
bool advance()
{
	std::vector<cuda_host::waiting_threads *> candidates = lists();
	const enum cuda_host_order order = cuda_host_get_orders()->order;
	if (order == CUDA_HOST_DESCENDING)
		std::reverse(candidates.begin(), candidates.end());
	else if (order == CUDA_HOST_RANDOM && candidates.size() > 1)
		std::rotate(candidates.begin(), candidates.begin() + (long)cuda_host_random(candidates.size()),
		            candidates.end());
	for (cuda_host::waiting_threads *list : candidates) {
		set_current(list->threads.front());
		if (list->advance())
			return true;
	}
	return false;
}

/* No thread can run: all have left, or all are at the barrier and go on. Returns whether they have left. */
bool all_left()
{
	unsigned left = 0, at_barrier = 0;
	for (const thread &t : threads) {
		left += t.state == state::left;
		at_barrier += t.state == state::at_barrier;
	}
	if (left == threads.size())
		return true;
	if (at_barrier == threads.size()) {
		for (unsigned number = 0; number < threads.size(); number++)
			set_can_run(number);
		return false;
	}
	unsigned waiting = 0;
	while (threads[waiting].state == state::left)
		waiting++;
	if (!lists().empty())
		report_lists(waiting);
	set_current(waiting);
	cuda_host::report("%s; it waits forever, since %s", describe(waiting).c_str(),
	                  describe(first_absent(waiting)).c_str());
}

/* Completes the warp operation at which the current thread waits, if it was the last lane of it. */
void complete_warp_operation()
{
	const thread &mine = threads[current];
	const unsigned warp = current - current % warpSize;
	if ((unsigned)(can_run[warp / WORD_BITS] >> (warp % WORD_BITS)) & mine.mask)
		return; /* a lane has yet to come */
	void *lanes[warpSize] = {};
	for (unsigned lane = 0; lane < warpSize; lane++) {
		if (!(mine.mask >> lane & 1))
			continue;
		if (!belong_together(mine, threads[warp + lane]))
			return;
		lanes[lane] = threads[warp + lane].mine;
	}
	mine.operation(lanes);
	for (unsigned lane = 0; lane < warpSize; lane++)
		if (mine.mask >> lane & 1)
			set_can_run(warp + lane);
}
} // namespace

void cuda_host::block_run(dim3 size, const std::function<void()> &run)
{
	blockDim = size;
	blocks_begun++;
	const unsigned count = size.x * size.y * size.z;
	body = &run;
	threads.assign(count, thread());
	for (unsigned number = 0; number < count; number++)
		set_can_run(number);
	do {
		for (next = choose(); next < count;)
			run_next();
	} while (advance() || !all_left());
	hopper_end_block();
}

void cuda_host::block_warp_operation(const char *name, unsigned mask, warp_operation operation, void *mine)
{
	const unsigned lane = current % warpSize, warp = current - lane;
	const unsigned lanes = std::min((unsigned)threads.size() - warp, (unsigned)warpSize);
	if (!(mask >> lane & 1))
		report("%s with mask 0x%08x, which lacks the lane %u that calls it", name, mask, lane);
	if (lanes < warpSize && mask >> lanes != 0)
		report("%s with mask 0x%08x, but this last warp of the block has %u lanes", name, mask, lanes);
	threads[current] = {state::at_warp_operation, threads[current].fiber, name, mask, operation, mine, nullptr};
	complete_warp_operation();
	wait();
}

bool cuda_host::waiting_threads::advance()
{
	return false;
}

void cuda_host::block_wait(waiting_threads &list)
{
	threads[current].state = state::in_list;
	threads[current].list = &list;
	list.threads.push_back(current);
	wait();
}

void cuda_host::block_wake(waiting_threads &list)
{
	for (const unsigned number : list.threads)
		set_can_run(number);
	list.threads.clear();
}

uint64_t cuda_host::block_number()
{
	return blocks_begun;
}

unsigned cuda_host::block_thread()
{
	return current;
}

void __syncthreads()
{
	threads[current].state = state::at_barrier;
	wait();
}
