/*
 * NCCL's calls. A communicator's id is a number that its ranks tell all processes when they open it; it is open when
 * all of its ranks have. Its calls run in the order in which they were made, on whichever streams.
 *
 * A communicator that does not block answers every call with ncclInProgress, as NCCL does, and the call reaches its
 * stream only when ncclCommGetAsyncError has been asked twice. So what is queued on the stream before that comes before
 * the call. In random order it is asked more often, and communicators under way go on in random order, whichever is
 * asked: NCCL has a thread for each. That also holds of a rank that joins a communicator, which the others wait for.
 *
 * ncclCommAbort ends the test where another thread is in a call, or begins one before it has ended. In random order it
 * takes some milliseconds, and a call lets other threads run now and then before it ends.
 */
#include "tests/cuda_host/nccl_group.h"
#include "tests/cuda_host/order.h"
#include "tests/cuda_host/report.h"

#include <algorithm>
#include <random>
#include <string.h>

using cuda_host::guard;
using cuda_host::lock;
using cuda_host::nccl_call;
using cuda_host::nccl_function;
using cuda_host::nccl_group;

namespace
{
typedef std::shared_ptr<ncclComm> communicator;

struct queued_call {
	nccl_call call;
	communicator comm;
	cudaStream_t stream;
};

std::map<ncclComm_t, communicator> live;
bool was_aborted;
std::string last_error;
int callers;      /* threads that are in a call */
bool is_aborting; /* a thread is in ncclCommAbort */

bool is_random()
{
	return cuda_host_get_orders()->order == CUDA_HOST_RANDOM;
}

void report_abort()
{
	cuda_host::report("ncclCommAbort is called while another thread is in a call of NCCL");
}

/* A thread in a call, which holds the lock. */
class caller
{
      public:
	caller()
	{
		if (is_aborting)
			report_abort();
		callers++;
		if (is_random() && cuda_host_random(8) == 0)
			lock.yield();
	}
	caller(const caller &) = delete;
	~caller()
	{
		callers--;
	}
};

/* Of the thread that has begun a group. */
thread_local int depth;
thread_local std::vector<queued_call> group_calls;
thread_local std::vector<communicator> group_opened;

ncclResult_t fail(ncclResult_t result, const communicator &comm, const std::string &text)
{
	last_error = text;
	if (comm)
		comm->last_error = text;
	return result;
}

communicator find(ncclComm_t comm)
{
	const auto at = live.find(comm);
	if (at == live.end())
		cuda_host::report("a communicator is used that is not open: it was never opened, or was destroyed");
	return at->second;
}

/* A process that ends while others may hang does not wait for them. */
void update_exit()
{
	cuda_host::messages_finalize_at_exit(live.empty() && !was_aborted);
}

void add(const communicator &comm)
{
	live[comm.get()] = comm;
	update_exit();
}

void remove(ncclComm_t handle)
{
	live.erase(handle);
	update_exit();
}

/* -- opening -- */

void tell_processes(ncclComm &comm)
{
	comm.is_told = true;
	const cuda_host::message m = {comm.id, (uint64_t)cuda_host::nccl_kind::open, (uint64_t)comm.rank, 0, {}, 0, 0,
	                              {}};
	for (int process = 0; process < cuda_host::messages_processes(); process++)
		cuda_host::messages_send(process, m, nullptr);
}

bool is_open(ncclComm &comm)
{
	const cuda_host::nccl_inbox &inbox = cuda_host::nccl_inbox_of(comm.id);
	if (comm.is_open || comm.is_aborted || (int)inbox.processes.size() < comm.ranks)
		return comm.is_open || comm.is_aborted;
	for (const auto &process : inbox.processes)
		comm.processes.push_back(process.second);
	return comm.is_open = true;
}

void wait_until_open(const communicator &comm)
{
	cuda_host::stream_run_until([comm] { return is_open(*comm); },
	                            "all ranks of a communicator to call ncclCommInitRank");
}

/* -- calls -- */

/* Ends the test where a range of a call is not memory that the device may access. */
void check_memory(const nccl_call &call, const void *memory, size_t bytes)
{
	if (bytes > 0 && cuda_host::memory_of(memory, bytes) == cuda_host::memory_kind::pageable)
		cuda_host::report("%s: %zu bytes at %p are not within an allocation of device memory",
		                  cuda_host::nccl_describe(call).c_str(), bytes, memory);
}

/* Input and output are apart, or lie as NCCL's calls in place say. */
bool may_overlap(const nccl_call &call, const ncclComm &comm)
{
	const char *from = static_cast<const char *>(call.from), *to = static_cast<const char *>(call.to);
	const size_t from_bytes = nccl_from_bytes(call, comm.rank, comm.ranks);
	const size_t to_bytes = nccl_to_bytes(call, comm.rank, comm.ranks);
	const size_t part = call.count * cuda_host::nccl_type_bytes(call.type) * (size_t)comm.rank;
	if (from_bytes == 0 || to_bytes == 0 || from + from_bytes <= to || to + to_bytes <= from)
		return true;
	if (call.function == nccl_function::all_gather)
		return from == to + part;
	if (call.function == nccl_function::reduce_scatter)
		return to == from + part;
	return from == to;
}

ncclResult_t check_call(const nccl_call &call, const communicator &comm)
{
	const bool reduces =
		call.function == nccl_function::all_reduce || call.function == nccl_function::reduce_scatter;
	const std::string name = cuda_host::nccl_describe(call);
	if (comm->is_aborted || !comm->is_open || !comm->unqueued.empty())
		return fail(ncclInvalidArgument, comm,
		            name + ": the communicator is used before its last operation returned ncclSuccess");
	if (cuda_host::nccl_type_bytes(call.type) == 0 || call.peer < 0 || call.peer >= comm->ranks)
		return fail(ncclInvalidArgument, comm, name + ": no such type or rank");
	if (reduces && !cuda_host::nccl_can_reduce(call.type, call.op))
		return fail(ncclInvalidArgument, comm, name + ": this type or operation is not computed here");
	check_memory(call, call.from, nccl_from_bytes(call, comm->rank, comm->ranks));
	check_memory(call, call.to, nccl_to_bytes(call, comm->rank, comm->ranks));
	if (!may_overlap(call, *comm))
		cuda_host::report("%s: input and output overlap", name.c_str());
	return ncclSuccess;
}

ncclResult_t queue_group(const std::shared_ptr<nccl_group> &group, const communicator &comm, cudaStream_t stream)
{
	if (comm->is_blocking)
		return cuda_host::stream_queue_remote(stream, group) == cudaSuccess ? ncclSuccess
		                                                                    : ncclUnhandledCudaError;
	comm->unqueued.emplace_back(group, stream);
	comm->polls = is_random() ? 2 + (int)cuda_host_random(4) : 2;
	return ncclInProgress;
}

/* Queues the calls, those of one communicator as one operation. */
ncclResult_t queue_calls(std::vector<queued_call> calls)
{
	ncclResult_t result = ncclSuccess;
	while (!calls.empty()) {
		const queued_call first = calls.front();
		const auto group = std::make_shared<nccl_group>(first.comm);
		for (const queued_call &call : calls) {
			if (call.comm != first.comm)
				continue;
			if (call.stream != first.stream)
				cuda_host::report("%s: a group uses two streams for one communicator, which is not "
				                  "done here",
				                  cuda_host::nccl_describe(call.call).c_str());
			group->add(call.call);
		}
		calls.erase(std::remove_if(calls.begin(), calls.end(),
		                           [&first](const queued_call &call) { return call.comm == first.comm; }),
		            calls.end());
		const ncclResult_t queued = queue_group(group, first.comm, first.stream);
		if (queued != ncclSuccess)
			result = queued;
	}
	return result;
}

ncclResult_t call(const nccl_call &made, ncclComm_t handle, cudaStream_t stream)
{
	const guard guard(lock);
	const communicator comm = find(handle);
	const caller caller;
	const ncclResult_t status = check_call(made, comm);
	if (status != ncclSuccess)
		return status;
	if (depth == 0)
		return queue_calls({{made, comm, stream}});
	group_calls.push_back({made, comm, stream});
	return ncclSuccess;
}

/* -- what NCCL does while the program goes on -- */

void go_on(ncclComm &comm)
{
	if (!comm.is_told)
		tell_processes(comm);
	if (comm.unqueued.empty() || --comm.polls > 0)
		return;
	for (const auto &unqueued : comm.unqueued)
		cuda_host::stream_queue_remote(unqueued.second, unqueued.first);
	comm.unqueued.clear();
}

/* At a question for the state of one communicator. */
void all_go_on(const communicator &asked)
{
	if (!is_random())
		return go_on(*asked);
	for (const auto &one : live)
		if (cuda_host_random(2) == 0)
			go_on(*one.second);
}

bool is_done(ncclComm &comm)
{
	if (!is_open(comm) || !comm.unqueued.empty())
		return false;
	if (comm.is_finalized && !comm.order.empty())
		cuda_host::stream_advance();
	return !comm.is_finalized || comm.order.empty();
}
} // namespace

ncclResult_t ncclGetVersion(int *version)
{
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const TEXTS[] = {"no error",
	                                    "unhandled cuda error",
	                                    "unhandled system error",
	                                    "internal error",
	                                    "invalid argument",
	                                    "invalid usage",
	                                    "remote process exited or there was a network error",
	                                    "NCCL operation in progress"};
	return result >= ncclSuccess && result < ncclNumResults ? TEXTS[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t handle)
{
	const guard guard(lock);
	return handle == nullptr ? last_error.c_str() : find(handle)->last_error.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	static std::random_device random;
	const guard guard(lock);
	memset(id, 0, sizeof(*id));
	const uint64_t number = (uint64_t)random() << 32 | random();
	memcpy(id->internal, &number, sizeof(number));
	return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *handle, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	const guard guard(lock);
	if (rank < 0 || rank >= ranks || (config != nullptr && config->magic != NCCL_CONFIG_MAGIC))
		return fail(ncclInvalidArgument, nullptr, "ncclCommInitRankConfig: rank or config is not valid");
	const caller caller;
	const auto comm = std::make_shared<ncclComm>();
	memcpy(&comm->id, id.internal, sizeof(comm->id));
	comm->rank = rank;
	comm->ranks = ranks;
	comm->is_blocking = config == nullptr || config->blocking != 0;
	add(comm);
	*handle = comm.get();
	cuda_host::messages_start();
	if (comm->is_blocking || !is_random())
		tell_processes(*comm);
	if (!comm->is_blocking)
		return ncclInProgress;
	if (depth > 0)
		group_opened.push_back(comm);
	else
		wait_until_open(comm);
	return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *state)
{
	const guard guard(lock);
	const communicator comm = find(handle);
	const caller caller;
	all_go_on(comm);
	*state = is_done(*comm) ? ncclSuccess : ncclInProgress;
	return ncclSuccess;
}

/* Waits for the communicator's calls of this rank. */
ncclResult_t ncclCommFinalize(ncclComm_t handle)
{
	const guard guard(lock);
	const communicator comm = find(handle);
	if (!comm->is_open || !comm->unqueued.empty())
		return fail(ncclInvalidArgument, comm,
		            "ncclCommFinalize: the last operation of the communicator has not returned ncclSuccess");
	comm->is_finalized = true;
	if (!comm->is_blocking)
		return ncclInProgress;
	cuda_host::stream_run_until([comm] { return comm->order.empty(); }, nullptr);
	return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle)
{
	const guard guard(lock);
	const communicator comm = find(handle);
	cuda_host::stream_run_until([comm] { return comm->order.empty(); }, nullptr);
	cuda_host::stream_run_until([] { return cuda_host::messages_are_sent(); }, "MPI to send what is left");
	cuda_host::nccl_inbox_drop(comm->id);
	remove(handle);
	return ncclSuccess;
}

/* May be called by any thread while another waits for a stream. Calls that have not ended end without an effect. */
ncclResult_t ncclCommAbort(ncclComm_t handle)
{
	const guard guard(lock);
	const communicator comm = find(handle);
	if (callers > 0)
		report_abort();
	is_aborting = true;
	for (int i = 0; i < 40 && is_random(); i++)
		lock.yield();
	is_aborting = false;
	comm->is_aborted = true;
	comm->unqueued.clear();
	was_aborted = true;
	remove(handle);
	return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
	const guard guard(lock);
	*count = find(comm)->ranks;
	return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	const guard guard(lock);
	*rank = find(comm)->rank;
	return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
	const guard guard(lock);
	find(comm);
	*device = 0;
	return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	const guard guard(lock);
	if (depth == 0)
		return fail(ncclInvalidUsage, nullptr, "ncclGroupEnd: no group was begun");
	if (--depth > 0)
		return ncclSuccess;
	for (const communicator &comm : group_opened)
		wait_until_open(comm);
	group_opened.clear();
	return queue_calls(std::exchange(group_calls, {}));
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
	return call({nccl_function::all_reduce, from, to, count, type, op, 0}, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t to_count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
	return call({nccl_function::reduce_scatter, from, to, to_count, type, op, 0}, comm, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t from_count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
	return call({nccl_function::all_gather, from, to, from_count, type, ncclSum, 0}, comm, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
	return call({nccl_function::broadcast, from, to, count, type, ncclSum, root}, comm, stream);
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
	return call({nccl_function::send, from, nullptr, count, type, ncclSum, peer}, comm, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
	return call({nccl_function::receive, nullptr, to, count, type, ncclSum, peer}, comm, stream);
}
