#include "tests/cuda_host/fiber.h"

#include <boost/context/detail/fcontext.hpp>
#include <sanitizer/common_interface_defs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

namespace
{
const size_t STACK_BYTES = 256 * 1024; /* pages that are not used take no memory */
const size_t GUARD_BYTES = 4096;
} // namespace

namespace cuda_host
{
fiber::fiber(void (*function)()) : body(function), fake_stack(nullptr), returned(false)
{
	void *memory = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0) {
		perror("cuda_host: no memory for the stack of a thread");
		abort();
	}
	mapping = static_cast<char *>(memory);
	context = boost::context::detail::make_fcontext(mapping + GUARD_BYTES + STACK_BYTES, STACK_BYTES,
	                                                [](boost::context::detail::transfer_t from) {
								auto *self = static_cast<fiber *>(from.data);
								self->caller_context = from.fctx;
								enter(self);
							});
}

fiber::~fiber()
{
	munmap(mapping, GUARD_BYTES + STACK_BYTES);
}

void fiber::enter(void *pointer)
{
	auto *self = static_cast<fiber *>(pointer);
	__sanitizer_finish_switch_fiber(nullptr, &self->caller_stack, &self->caller_stack_bytes);
	for (;;) {
		self->body();
		self->returned = true;
		self->leave();
	}
}

bool fiber::run()
{
	void *own_fake_stack;
	returned = false;
	__sanitizer_start_switch_fiber(&own_fake_stack, mapping + GUARD_BYTES, STACK_BYTES);
	context = boost::context::detail::jump_fcontext(context, this).fctx;
	__sanitizer_finish_switch_fiber(own_fake_stack, nullptr, nullptr);
	return returned;
}

void fiber::leave()
{
	__sanitizer_start_switch_fiber(&fake_stack, caller_stack, caller_stack_bytes);
	caller_context = boost::context::detail::jump_fcontext(caller_context, nullptr).fctx;
	__sanitizer_finish_switch_fiber(fake_stack, &caller_stack, &caller_stack_bytes);
}
} // namespace cuda_host
