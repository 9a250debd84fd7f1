/*
 * Streams and events. A stream runs its operations in the order in which they were queued; of several streams whose
 * next operation can run, order.h chooses one. With late queues an operation runs when the host waits for it, and in
 * random order now and then before, so that an operation that nothing orders before another runs after it in some
 * order. Work that waits for other processes begins when it is the next of its stream, and ends in the same order as
 * other operations run. Streams proceed only inside calls of the API.
 */
#include "tests/cuda_host/order.h"
#include "tests/cuda_host/report.h"
#include "tests/cuda_host/runtime.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <stdint.h>
#include <stdlib.h>
#include <vector>

namespace
{
/* How often an event was recorded, and how many of these records streams have reached. */
struct records {
	uint64_t made = 0;
	uint64_t reached = 0;
	bool timed = false;
	std::chrono::steady_clock::time_point time; /* at which the last of them was reached */
};

/* Work, here or with other processes; or, where there is an event, its record or the wait for it. */
struct operation {
	std::function<void()> work;
	std::shared_ptr<cuda_host::remote_work> remote;
	std::shared_ptr<records> event;
	uint64_t record; /* the number of it */
	bool waits;
};
} // namespace

struct CUstream_st {
	std::deque<operation> operations;
};

struct CUevent_st {
	std::shared_ptr<records> event = std::make_shared<records>();
};

static std::vector<CUstream_st *> streams; /* in the order in which they were created */

static bool can_run(const CUstream_st *stream)
{
	if (stream->operations.empty())
		return false;
	const operation &next = stream->operations.front();
	if (next.remote)
		return next.remote->ready();
	return !next.waits || next.event->reached >= next.record;
}

static void reach(records &event, uint64_t record)
{
	if (record <= event.reached)
		return;
	event.reached = record;
	event.time = std::chrono::steady_clock::now();
}

/* Runs one operation of the stream that is chosen. */
bool cuda_host::stream_advance()
{
	std::vector<CUstream_st *> ready;
	std::copy_if(streams.begin(), streams.end(), std::back_inserter(ready), can_run);
	if (ready.empty())
		return false;
	size_t chosen = 0;
	if (cuda_host_get_orders()->order == CUDA_HOST_DESCENDING)
		chosen = ready.size() - 1;
	else if (cuda_host_get_orders()->order == CUDA_HOST_RANDOM)
		chosen = (size_t)cuda_host_random(ready.size());
	const operation next = ready[chosen]->operations.front();
	ready[chosen]->operations.pop_front();
	if (next.work)
		next.work();
	else if (next.remote)
		next.remote->run();
	else if (!next.waits)
		reach(*next.event, next.record);
	return true;
}

/* What the next operations of the streams wait for, of other processes; empty if none does. */
static std::string describe_remote()
{
	std::string text;
	for (const CUstream_st *stream : streams)
		if (!stream->operations.empty() && stream->operations.front().remote)
			text += "\n  " + stream->operations.front().remote->describe();
	return text;
}

double cuda_host::wait_bound_s()
{
	static const char *const given = getenv("CUDA_HOST_WAIT_S");
	return given != nullptr ? atof(given) : 600;
}

void cuda_host::stream_run_until(const std::function<bool()> &done, const char *waiting)
{
	typedef std::chrono::steady_clock clock;
	clock::time_point since = clock::now();
	while (!done()) {
		if (stream_advance()) {
			since = clock::now();
			continue;
		}
		const std::string remote = describe_remote();
		if (remote.empty() && waiting == nullptr)
			report("the streams wait for each other: no operation can run");
		if (std::chrono::duration<double>(clock::now() - since).count() > wait_bound_s())
			report("nothing has arrived from other processes for %g s (CUDA_HOST_WAIT_S). It waits for: "
			       "%s%s",
			       wait_bound_s(), waiting != nullptr ? waiting : "", remote.c_str());
		lock.yield();
	}
}

static bool exists(cudaStream_t stream)
{
	return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

static cudaError_t queue(cudaStream_t stream, const operation &next)
{
	if (stream == nullptr)
		cuda_host::report("the default stream, on which work waits for all other streams, is not used here");
	if (!exists(stream))
		return cuda_host::result(cudaErrorInvalidResourceHandle);
	stream->operations.push_back(next);
	const struct cuda_host_orders *orders = cuda_host_get_orders();
	if (!orders->late)
		while (cuda_host::stream_advance())
			;
	else if (orders->order == CUDA_HOST_RANDOM)
		while (cuda_host_random(2) == 0 && cuda_host::stream_advance())
			;
	return cudaSuccess;
}

cudaError_t cuda_host::stream_queue(cudaStream_t stream, std::function<void()> work)
{
	return queue(stream, {std::move(work), nullptr, nullptr, 0, false});
}

cudaError_t cuda_host::stream_queue_remote(cudaStream_t stream, std::shared_ptr<remote_work> work)
{
	return queue(stream, {nullptr, std::move(work), nullptr, 0, false});
}

void cuda_host::stream_finish_all()
{
	stream_run_until(
		[] {
			return std::all_of(streams.begin(), streams.end(),
		                           [](const CUstream_st *stream) { return stream->operations.empty(); });
		},
		nullptr);
}

cudaError_t cudaDeviceSynchronize(void)
{
	const cuda_host::guard guard(cuda_host::lock);
	cuda_host::count(&cuda_host_counts::waits);
	cuda_host::stream_finish_all();
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	const cuda_host::guard guard(cuda_host::lock);
	if (flags != cudaStreamNonBlocking)
		return cuda_host::result(cudaErrorInvalidValue);
	cuda_host::count(&cuda_host_counts::objects);
	*stream = new CUstream_st;
	streams.push_back(*stream);
	return cudaSuccess;
}

enum { LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = LEAST_PRIORITY;
	*greatest = GREATEST_PRIORITY;
	return cudaSuccess;
}

/* The order of streams does not depend on their priorities, on which a program must not rely. */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	if (priority > LEAST_PRIORITY || priority < GREATEST_PRIORITY)
		return cuda_host::result(cudaErrorInvalidValue);
	return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	const cuda_host::guard guard(cuda_host::lock);
	if (!exists(stream))
		return cuda_host::result(cudaErrorInvalidResourceHandle);
	cuda_host::count(&cuda_host_counts::waits);
	cuda_host::stream_run_until([stream] { return !exists(stream) || stream->operations.empty(); }, nullptr);
	return cudaSuccess;
}

/* What is queued runs first; on a GPU it would run on beside the host. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	const cuda_host::guard guard(cuda_host::lock);
	const cudaError_t status = cudaStreamSynchronize(stream);
	if (status != cudaSuccess)
		return status;
	streams.erase(std::find(streams.begin(), streams.end(), stream));
	delete stream;
	return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
	const cuda_host::guard guard(cuda_host::lock);
	return queue(stream, {nullptr, nullptr, event->event, event->event->made, true});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	cuda_host::count(&cuda_host_counts::objects);
	*event = new CUevent_st;
	(*event)->event->timed = (flags & cudaEventDisableTiming) == 0;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	delete event;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	const cuda_host::guard guard(cuda_host::lock);
	event->event->made++;
	return queue(stream, {nullptr, nullptr, event->event, event->event->made, false});
}

/* A program may call it until the event is reached: each call runs an operation. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
	const cuda_host::guard guard(cuda_host::lock);
	if (event->event->reached < event->event->made)
		cuda_host::stream_advance();
	return event->event->reached < event->event->made ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	const cuda_host::guard guard(cuda_host::lock);
	cuda_host::count(&cuda_host_counts::waits);
	const std::shared_ptr<records> records = event->event;
	cuda_host::stream_run_until([records] { return records->reached >= records->made; }, nullptr);
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *elapsed_ms, cudaEvent_t from, cudaEvent_t to)
{
	const cuda_host::guard guard(cuda_host::lock);
	const records &first = *from->event, &last = *to->event;
	if (!first.timed || !last.timed || first.made == 0 || last.made == 0)
		return cuda_host::result(cudaErrorInvalidResourceHandle);
	if (first.reached < first.made || last.reached < last.made)
		return cuda_host::result(cudaErrorNotReady);
	*elapsed_ms = std::chrono::duration<float, std::milli>(last.time - first.time).count();
	return cudaSuccess;
}
