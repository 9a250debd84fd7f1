#include "tests/cuda_host/nccl_messages.h"
#include "tests/cuda_host/report.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <list>
#include <stdlib.h>
#include <string.h>

namespace
{
const int TAG = 0x4e43434c; /* "NCCL" */

/* The part of a message that is sent before its data. */
struct header {
	uint64_t communicator, kind, from, sequence, call[5], bytes;
};

struct sending {
	std::vector<char> bytes;
	MPI_Request request;
};

std::list<sending> under_way;
bool is_started, is_ours, is_kept;

void finalize()
{
	int is_finalized = 0;
	MPI_Finalized(&is_finalized);
	if (is_ours && !is_kept && !is_finalized)
		MPI_Finalize();
}

void check(int status, const char *call)
{
	if (status != MPI_SUCCESS)
		cuda_host::report("%s: error %d", call, status);
}
} // namespace

void cuda_host::messages_start()
{
	int is_initialized = 0, provided = 0;
	if (is_started)
		return;
	is_started = true;
	MPI_Initialized(&is_initialized);
	if (!is_initialized) {
		check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
		is_ours = true;
		atexit(finalize);
	}
}

void cuda_host::messages_keep_mpi()
{
	is_kept = true;
}

int cuda_host::messages_processes()
{
	int count;
	check(MPI_Comm_size(MPI_COMM_WORLD, &count), "MPI_Comm_size");
	return count;
}

int cuda_host::messages_process()
{
	int number;
	check(MPI_Comm_rank(MPI_COMM_WORLD, &number), "MPI_Comm_rank");
	return number;
}

void cuda_host::messages_send(int process, const message &m, const void *data)
{
	header h = {m.communicator, m.kind, m.from, m.sequence, {}, m.bytes};
	memcpy(h.call, m.call, sizeof(h.call));
	under_way.emplace_back();
	sending &s = under_way.back();
	s.bytes.resize(sizeof(h) + m.bytes);
	memcpy(s.bytes.data(), &h, sizeof(h));
	if (m.bytes > 0)
		memcpy(s.bytes.data() + sizeof(h), data, m.bytes);
	if (s.bytes.size() > INT32_MAX)
		report("a message of %zu bytes: more than MPI takes", s.bytes.size());
	check(MPI_Isend(s.bytes.data(), (int)s.bytes.size(), MPI_BYTE, process, TAG, MPI_COMM_WORLD, &s.request),
	      "MPI_Isend");
}

bool cuda_host::messages_are_sent()
{
	for (auto s = under_way.begin(); s != under_way.end();) {
		int is_done = 0;
		check(MPI_Test(&s->request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
		s = is_done ? under_way.erase(s) : std::next(s);
	}
	return under_way.empty();
}

void cuda_host::messages_receive(const std::function<void(message &&)> &take)
{
	messages_are_sent();
	for (;;) {
		int is_there = 0, bytes = 0;
		MPI_Message arrived;
		MPI_Status status;
		check(MPI_Improbe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &is_there, &arrived, &status), "MPI_Improbe");
		if (!is_there)
			return;
		check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
		std::vector<char> buffer((size_t)bytes);
		check(MPI_Mrecv(buffer.data(), bytes, MPI_BYTE, &arrived, MPI_STATUS_IGNORE), "MPI_Mrecv");
		header h;
		memcpy(&h, buffer.data(), sizeof(h));
		message m = {h.communicator, h.kind, h.from, h.sequence, {}, h.bytes, status.MPI_SOURCE, {}};
		memcpy(m.call, h.call, sizeof(m.call));
		m.data.assign(buffer.begin() + sizeof(h), buffer.end());
		take(std::move(m));
	}
}
