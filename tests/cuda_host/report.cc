#include "tests/cuda_host/report.h"

#include <cuda_runtime.h>

#include <sanitizer/common_interface_defs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const void *running;

namespace cuda_host
{
void report_set_kernel(const void *kernel)
{
	running = kernel;
}

/* The symbolizer looks at the instruction before the address, as is right for a return address. */
std::string report_kernel_name(const void *kernel)
{
	char name[256] = "";
	__sanitizer_symbolize_pc(const_cast<char *>(static_cast<const char *>(kernel)) + 1, "%f", name, sizeof(name));
	return name[0] != '\0' ? name : "unknown";
}
} // namespace cuda_host

static void print_place()
{
	if (running == nullptr)
		return;
	fprintf(stderr, "cuda_host: in kernel %s, block (%u,%u,%u), thread (%u,%u,%u)\n",
	        cuda_host::report_kernel_name(running).c_str(), blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
	        threadIdx.y, threadIdx.z);
}

void cuda_host::report(const char *format, ...)
{
	fprintf(stderr, "cuda_host: ");
	va_list values;
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fprintf(stderr, "\n");
	print_place();
	abort();
}

/* The two sanitizers call these at an error of theirs. */
extern "C" void __asan_on_error()
{
	print_place();
}

extern "C" void __ubsan_on_report()
{
	print_place();
}
