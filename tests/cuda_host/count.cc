#include "tests/cuda_host/count.h"
#include "tests/cuda_host/runtime.h"

static struct cuda_host_counts counts;

void cuda_host::count(long cuda_host_counts::*what)
{
	const guard locked(lock);
	counts.*what += 1;
}

struct cuda_host_counts cuda_host_get_counts(void)
{
	const cuda_host::guard locked(cuda_host::lock);
	return counts;
}
