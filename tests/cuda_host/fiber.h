/*
 * Fibers: functions with a stack of their own, between which one thread of the system switches. Boost.Context saves and
 * loads the registers (some 10 ns, without a system call). The sanitizers are told of every switch.
 */
#ifndef CUDA_HOST_FIBER_H
#define CUDA_HOST_FIBER_H

#include <stddef.h>

namespace cuda_host
{
/* A fiber calls body() each time that it is started; it can be started again after body has returned. */
class fiber
{
      public:
	fiber(void (*body)());
	fiber(const fiber &) = delete;
	~fiber();
	/* Runs the fiber until it calls leave() or body returns. Returns whether body has returned. */
	bool run();
	/* Returns from run() of the fiber that calls it; the next run() continues there. */
	void leave();

      private:
	static void enter(void *self);
	void (*const body)();
	char *mapping; /* the stack, above a page that cannot be accessed */
	void *context;
	void *fake_stack; /* AddressSanitizer's, while the fiber does not run */
	bool returned;
	/* of who called run() */
	void *caller_context;
	const void *caller_stack;
	size_t caller_stack_bytes;
};
} // namespace cuda_host

#endif
