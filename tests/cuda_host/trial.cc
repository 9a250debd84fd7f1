#include "tests/cuda_host/trial.h"
#include "tests/cuda_host/order.h"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct cuda_host_orders ORDERS[] = {
	{CUDA_HOST_ASCENDING, 0, 0},  {CUDA_HOST_DESCENDING, 0, 0}, {CUDA_HOST_ASCENDING, 0, 1},
	{CUDA_HOST_DESCENDING, 0, 1}, {CUDA_HOST_RANDOM, 1, 1},     {CUDA_HOST_RANDOM, 2, 1},
	{CUDA_HOST_RANDOM, 3, 1},
};

static void expect(cudaError_t status, const char *call)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
	abort();
}

std::vector<std::vector<int>> cuda_host::trial_results(const program &run)
{
	std::vector<std::vector<int>> results;
	for (const struct cuda_host_orders &order : ORDERS) {
		cuda_host_set_orders(&order);
		const std::vector<int> result = run();
		if (std::find(results.begin(), results.end(), result) == results.end())
			results.push_back(result);
	}
	cuda_host_set_orders(&ORDERS[0]);
	return results;
}

cuda_host::trial_end cuda_host::trial_in_process(const program &run)
{
	FILE *text = tmpfile();
	const pid_t child = text == NULL ? -1 : fork();
	if (child < 0) {
		perror("trial_in_process");
		abort();
	}
	if (child == 0) {
		dup2(fileno(text), STDERR_FILENO);
		alarm(30);
		run();
		_exit(0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	trial_end end = {WIFEXITED(status) && WEXITSTATUS(status) == 0, ""};
	rewind(text);
	for (int c = getc(text); c != EOF; c = getc(text))
		end.text += (char)c;
	fclose(text);
	return end;
}

int *cuda_host::trial_memory(size_t count, const std::vector<int> &from)
{
	void *memory;
	expect(cudaMalloc(&memory, count * sizeof(int)), "cudaMalloc");
	expect(cudaMemcpyAsync(memory, from.data(), from.size() * sizeof(int), cudaMemcpyHostToDevice, trial_stream()),
	       "cudaMemcpyAsync");
	return static_cast<int *>(memory);
}

std::vector<int> cuda_host::trial_take(int *memory, size_t count)
{
	std::vector<int> values(count);
	expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	expect(cudaMemcpyAsync(values.data(), memory, count * sizeof(int), cudaMemcpyDeviceToHost, trial_stream()),
	       "cudaMemcpyAsync");
	expect(cudaFree(memory), "cudaFree");
	return values;
}

cudaStream_t cuda_host::trial_stream(size_t index)
{
	static struct streams {
		std::vector<cudaStream_t> all;
		~streams()
		{
			std::for_each(all.begin(), all.end(), cudaStreamDestroy);
		}
	} streams;
	while (streams.all.size() <= index) {
		streams.all.push_back(nullptr);
		expect(cudaStreamCreateWithFlags(&streams.all.back(), cudaStreamNonBlocking),
		       "cudaStreamCreateWithFlags");
	}
	return streams.all[index];
}
