/*
 * Sums are those of NCCL's ring: of the parts into which an array is cut, one for each rank, part r begins at rank
 * r + 1 and is added up around the ring, rank r last; each addition is rounded to the type, bfloat16 too. NCCL's other
 * algorithms (trees, sums inside a switch) add in another order or round less.
 */
#include "tests/cuda_host/nccl_call.h"
#include "kernels/bfloat16.h"

#include <algorithm>
#include <string.h>

using cuda_host::nccl_call;
using cuda_host::nccl_function;

namespace
{
const struct {
	const char *name;
	size_t bytes;
} TYPES[] = {{"ncclInt8", 1},   {"ncclUint8", 1},   {"ncclInt32", 4},   {"ncclUint32", 4},  {"ncclInt64", 8},
             {"ncclUint64", 8}, {"ncclFloat16", 2}, {"ncclFloat32", 4}, {"ncclFloat64", 8}, {"ncclBfloat16", 2}};

struct bfloat16 {
	uint16_t bits;
};

float number_of(bfloat16 number)
{
	return wlb_float_of_bfloat16(number.bits);
}
template <typename number> number number_of(number value)
{
	return value;
}
void set(bfloat16 &to, float value)
{
	to.bits = wlb_bfloat16_of_float(value);
}
template <typename number> void set(number &to, number value)
{
	to = value;
}

template <typename number> void accumulate(number &sum, number next, ncclRedOp_t op)
{
	const auto a = number_of(sum), b = number_of(next);
	typedef decltype(number_of(sum)) value;
	if (op == ncclSum)
		set(sum, (value)(a + b));
	else
		set(sum, op == ncclMax ? std::max(a, b) : std::min(a, b));
}

/* to[count] = elements [first, first + count) of `from`, combined as part `part` of the array. */
template <typename number>
void reduce(const std::vector<const char *> &from, size_t first, size_t count, size_t part, ncclRedOp_t op, char *to)
{
	const size_t ranks = from.size();
	for (size_t i = 0; i < count; i++) {
		number result, next;
		memcpy(&result, from[(part + 1) % ranks] + (first + i) * sizeof(number), sizeof(number));
		for (size_t step = 2; step <= ranks; step++) {
			memcpy(&next, from[(part + step) % ranks] + (first + i) * sizeof(number), sizeof(number));
			accumulate(result, next, op);
		}
		memcpy(to + i * sizeof(number), &result, sizeof(number));
	}
}

void reduce_part(const nccl_call &call, const std::vector<const char *> &from, size_t first, size_t count, size_t part,
                 char *to)
{
	switch (call.type) {
	case ncclFloat32:
		return reduce<float>(from, first, count, part, call.op, to);
	case ncclFloat64:
		return reduce<double>(from, first, count, part, call.op, to);
	case ncclBfloat16:
		return reduce<bfloat16>(from, first, count, part, call.op, to);
	case ncclInt32:
		return reduce<int32_t>(from, first, count, part, call.op, to);
	case ncclInt64:
		return reduce<int64_t>(from, first, count, part, call.op, to);
	default:
		return;
	}
}
} // namespace

size_t cuda_host::nccl_type_bytes(ncclDataType_t type)
{
	return type >= ncclInt8 && type <= ncclBfloat16 ? TYPES[type].bytes : 0;
}

bool cuda_host::nccl_can_reduce(ncclDataType_t type, ncclRedOp_t op)
{
	const bool has_type = type == ncclFloat32 || type == ncclFloat64 || type == ncclBfloat16 || type == ncclInt32 ||
	                      type == ncclInt64;
	return has_type && (op == ncclSum || op == ncclMax || op == ncclMin);
}

size_t cuda_host::nccl_from_bytes(const nccl_call &call, int rank, int ranks)
{
	const size_t bytes = call.count * nccl_type_bytes(call.type);
	switch (call.function) {
	case nccl_function::reduce_scatter:
		return bytes * (size_t)ranks;
	case nccl_function::receive:
		return 0;
	case nccl_function::broadcast:
		return rank == call.peer ? bytes : 0;
	default:
		return bytes;
	}
}

size_t cuda_host::nccl_to_bytes(const nccl_call &call, int, int ranks)
{
	const size_t bytes = call.count * nccl_type_bytes(call.type);
	switch (call.function) {
	case nccl_function::all_gather:
		return bytes * (size_t)ranks;
	case nccl_function::send:
		return 0;
	default:
		return bytes;
	}
}

std::string cuda_host::nccl_describe(const nccl_call &call)
{
	static const char *const NAMES[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather",
	                                    "ncclBroadcast", "ncclSend",          "ncclRecv"};
	std::string text = NAMES[(int)call.function];
	text += " of " + std::to_string(call.count) + " ";
	text += nccl_type_bytes(call.type) > 0 ? TYPES[call.type].name : "of an unknown type";
	if (call.function == nccl_function::send)
		text += " to rank " + std::to_string(call.peer);
	else if (call.function == nccl_function::receive || call.function == nccl_function::broadcast)
		text += " from rank " + std::to_string(call.peer);
	return text;
}

size_t cuda_host::nccl_sent_bytes(const nccl_call &call, int rank)
{
	return call.function == nccl_function::broadcast && rank != call.peer ? 0
	                                                                      : call.count * nccl_type_bytes(call.type);
}

void cuda_host::nccl_combine(const nccl_call &call, int rank, const std::vector<const char *> &from, char *to)
{
	const size_t ranks = from.size(), element = nccl_type_bytes(call.type), bytes = call.count * element;
	switch (call.function) {
	case nccl_function::all_gather:
		for (size_t i = 0; i < ranks; i++)
			memmove(to + i * bytes, from[i], bytes);
		break;
	case nccl_function::broadcast:
		memmove(to, from[(size_t)call.peer], bytes);
		break;
	case nccl_function::reduce_scatter:
		reduce_part(call, from, 0, call.count, (size_t)rank, to);
		break;
	default: {
		const size_t part_count = (call.count + ranks - 1) / ranks;
		for (size_t part = 0, first = 0; first < call.count; part++, first += part_count)
			reduce_part(call, from, first, std::min(part_count, call.count - first), part,
			            to + first * element);
	}
	}
}
