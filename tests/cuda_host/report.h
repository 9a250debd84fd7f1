/*
 * Ends the test with what is wrong and where: the kernel, the block and the thread that run.
 */
#ifndef CUDA_HOST_REPORT_H
#define CUDA_HOST_REPORT_H

#include <string>

namespace cuda_host
{
/* The kernel that runs, for reports; NULL: none does. */
void report_set_kernel(const void *kernel);

/* The name of a kernel as its source has it. */
std::string report_kernel_name(const void *kernel);

/* Prints the message, with kernel, block and thread if a kernel runs, and aborts. */
[[noreturn]] void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
} // namespace cuda_host

#endif
