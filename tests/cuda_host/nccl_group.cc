#include "tests/cuda_host/nccl_group.h"
#include "tests/cuda_host/report.h"

#include <algorithm>
#include <string.h>

using cuda_host::message;
using cuda_host::nccl_call;
using cuda_host::nccl_function;
using cuda_host::nccl_kind;

namespace
{
std::map<uint64_t, cuda_host::nccl_inbox> inboxes;

void put(message &&m)
{
	cuda_host::nccl_inbox &inbox = inboxes[m.communicator];
	switch ((nccl_kind)m.kind) {
	case nccl_kind::open:
		inbox.processes[m.from] = m.sender;
		break;
	case nccl_kind::collective:
		inbox.collectives[{m.sequence, m.from}] = std::move(m);
		break;
	case nccl_kind::send:
		inbox.sends[m.from].push_back(std::move(m));
		break;
	case nccl_kind::received:
		inbox.received[m.from]++;
		break;
	}
}

nccl_call call_of(const message &m)
{
	return {(nccl_function)m.call[0], nullptr,       nullptr, m.call[1], (ncclDataType_t)m.call[2],
	        (ncclRedOp_t)m.call[3],   (int)m.call[4]};
}

bool is_same(const nccl_call &one, const nccl_call &other)
{
	return one.function == other.function && one.count == other.count && one.type == other.type &&
	       one.op == other.op && one.peer == other.peer;
}
} // namespace

cuda_host::nccl_inbox &cuda_host::nccl_inbox_of(uint64_t communicator)
{
	messages_receive(put);
	return inboxes[communicator];
}

void cuda_host::nccl_inbox_drop(uint64_t communicator)
{
	inboxes.erase(communicator);
}

cuda_host::nccl_group::nccl_group(std::shared_ptr<ncclComm> of) : communicator(std::move(of))
{
	communicator->order.push_back(this);
}

cuda_host::nccl_group::~nccl_group()
{
	leave();
}

void cuda_host::nccl_group::leave()
{
	std::deque<nccl_group *> &order = communicator->order;
	order.erase(std::remove(order.begin(), order.end(), this), order.end());
}

void cuda_host::nccl_group::add(const nccl_call &call)
{
	uint64_t &number = call.function == nccl_function::send      ? communicator->sends[call.peer]
	                   : call.function == nccl_function::receive ? communicator->receives[call.peer]
	                                                             : communicator->collectives;
	steps.push_back({call, number++, {}});
}

message cuda_host::nccl_group::header(const step &s, nccl_kind kind, size_t bytes) const
{
	const nccl_call &c = s.call;
	return {communicator->id,
	        (uint64_t)kind,
	        (uint64_t)communicator->rank,
	        s.sequence,
	        {(uint64_t)c.function, c.count, (uint64_t)c.type, (uint64_t)c.op, (uint64_t)c.peer},
	        bytes,
	        0,
	        {}};
}

/* Reads the memory that the call sends, and sends it; tells the sender that its receive is there. */
void cuda_host::nccl_group::begin(step &s)
{
	const ncclComm &comm = *communicator;
	const char *from = static_cast<const char *>(s.call.from);
	s.from.assign(from, from + nccl_from_bytes(s.call, comm.rank, comm.ranks));
	if (s.call.function == nccl_function::send) {
		messages_send(comm.processes[(size_t)s.call.peer], header(s, nccl_kind::send, s.from.size()),
		              s.from.data());
	} else if (s.call.function == nccl_function::receive) {
		messages_send(comm.processes[(size_t)s.call.peer], header(s, nccl_kind::received, 0), nullptr);
	} else {
		const size_t bytes = nccl_sent_bytes(s.call, comm.rank);
		for (int other = 0; other < comm.ranks; other++)
			if (other != comm.rank)
				messages_send(comm.processes[(size_t)other], header(s, nccl_kind::collective, bytes),
				              s.from.data() + (s.call.function == nccl_function::reduce_scatter
				                                       ? (size_t)other * bytes
				                                       : 0));
	}
}

bool cuda_host::nccl_group::can_end(const step &s) const
{
	nccl_inbox &inbox = inboxes[communicator->id];
	if (s.call.function == nccl_function::send)
		return s.from.size() <= NCCL_EAGER_BYTES || inbox.received[(uint64_t)s.call.peer] > s.sequence;
	if (s.call.function == nccl_function::receive)
		return std::any_of(inbox.sends[(uint64_t)s.call.peer].begin(), inbox.sends[(uint64_t)s.call.peer].end(),
		                   [&s](const message &m) { return m.sequence == s.sequence; });
	for (uint64_t other = 0; other < (uint64_t)communicator->ranks; other++)
		if (other != (uint64_t)communicator->rank && inbox.collectives.count({s.sequence, other}) == 0)
			return false;
	return true;
}

bool cuda_host::nccl_group::ready()
{
	if (communicator->is_aborted)
		return true;
	if (communicator->order.front() != this)
		return false;
	nccl_inbox_of(communicator->id);
	if (!has_begun)
		for (step &s : steps)
			begin(s);
	has_begun = true;
	return std::all_of(steps.begin(), steps.end(), [this](const step &s) { return can_end(s); });
}

void cuda_host::nccl_group::end_receive(step &s)
{
	std::deque<message> &sends = inboxes[communicator->id].sends[(uint64_t)s.call.peer];
	const message sent = std::move(sends.front());
	sends.pop_front();
	const size_t bytes = nccl_to_bytes(s.call, communicator->rank, communicator->ranks);
	if (sent.data.size() != bytes)
		report("rank %d calls %s, rank %d %s: they must have the same bytes", communicator->rank,
		       nccl_describe(s.call).c_str(), s.call.peer, nccl_describe(call_of(sent)).c_str());
	if (bytes > 0)
		memcpy(s.call.to, sent.data.data(), bytes);
}

void cuda_host::nccl_group::end_collective(step &s)
{
	nccl_inbox &inbox = inboxes[communicator->id];
	const size_t rank = (size_t)communicator->rank, part = nccl_sent_bytes(s.call, communicator->rank);
	std::vector<const char *> from((size_t)communicator->ranks);
	for (size_t other = 0; other < from.size(); other++) {
		if (other == rank)
			continue;
		const message &m = inbox.collectives[{s.sequence, other}];
		if (!is_same(s.call, call_of(m)))
			report("collective %llu of a communicator: rank %zu calls %s, rank %zu %s; all must make the "
			       "same calls in the same order",
			       (unsigned long long)s.sequence, rank, nccl_describe(s.call).c_str(), other,
			       nccl_describe(call_of(m)).c_str());
		from[other] = m.data.data();
	}
	from[rank] = s.from.data() + (s.call.function == nccl_function::reduce_scatter ? rank * part : 0);
	if (s.call.count > 0)
		nccl_combine(s.call, communicator->rank, from, static_cast<char *>(s.call.to));
	for (size_t other = 0; other < from.size(); other++)
		inbox.collectives.erase({s.sequence, other});
}

void cuda_host::nccl_group::end(step &s)
{
	if (!s.from.empty() && memcmp(s.from.data(), s.call.from, s.from.size()) != 0)
		report("%s: its input was changed while it ran", nccl_describe(s.call).c_str());
	if (s.call.function == nccl_function::receive)
		end_receive(s);
	else if (s.call.function != nccl_function::send)
		end_collective(s);
}

void cuda_host::nccl_group::run()
{
	if (!communicator->is_aborted)
		for (step &s : steps)
			end(s);
	leave();
}

std::string cuda_host::nccl_group::waits_for(const step &s) const
{
	if (s.call.function == nccl_function::send)
		return "rank " + std::to_string(s.call.peer) + " has not reached its ncclRecv";
	if (s.call.function == nccl_function::receive)
		return "rank " + std::to_string(s.call.peer) + " has not reached its ncclSend";
	std::string absent;
	for (int other = 0; other < communicator->ranks; other++)
		if (other != communicator->rank &&
		    inboxes[communicator->id].collectives.count({s.sequence, (uint64_t)other}) == 0)
			absent += " " + std::to_string(other);
	return "these ranks have not reached it:" + absent;
}

std::string cuda_host::nccl_group::describe() const
{
	const ncclComm &comm = *communicator;
	std::string text = "rank " + std::to_string(comm.rank) + " of " + std::to_string(comm.ranks) + ": ";
	if (comm.order.front() != this)
		return text + nccl_describe(steps.front().call) +
		       ": an earlier call of its communicator, on another stream, has not ended";
	for (const step &s : steps)
		if (!can_end(s))
			text += nccl_describe(s.call) + ": " + waits_for(s) + "; ";
	text += "behind it:";
	const size_t most = std::min(comm.order.size(), (size_t)6);
	for (size_t i = 1; i < most; i++)
		text += (i > 1 ? ", " : " ") + nccl_describe(comm.order[i]->steps.front().call);
	return text + (comm.order.size() > most ? ", ..." : most == 1 ? " nothing" : "");
}
