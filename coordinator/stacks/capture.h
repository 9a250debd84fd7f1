/*
 * Copies the registers and the stack of a thread of another process. The thread is stopped for the time of the copy
 * alone, and no file is read meanwhile, so that no file system can prolong it. It is seized and not attached to
 * (ptrace(2), PTRACE_SEIZE): no signal is sent, and a thread that a signal had stopped stays stopped.
 */
#ifndef COORDINATOR_STACKS_CAPTURE_H
#define COORDINATOR_STACKS_CAPTURE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

enum {
	WLB_CAPTURE_STACK_BYTES = 256 * 1024,
	WLB_CAPTURE_WAIT_MS = 200, /* for one thread to stop */
};

struct wlb_capture {
	pid_t pid, tid;
	struct user_regs_struct registers;
	uint64_t stack_at; /* the address of the first byte that was copied */
	size_t stack_bytes;
	unsigned char stack[WLB_CAPTURE_STACK_BYTES];
};

enum wlb_capture_result {
	WLB_CAPTURE_DONE,
	WLB_CAPTURE_REFUSED, /* the kernel does not let this process trace that one: refusal.h */
	WLB_CAPTURE_GONE,
	WLB_CAPTURE_ASLEEP, /* the thread did not stop in time: it sleeps where nothing can wake it */
};

enum wlb_capture_result wlb_capture_thread(pid_t pid, pid_t tid, struct wlb_capture *capture);

/* Releases threads that stopped after WLB_CAPTURE_ASLEEP was returned for them. The kernel releases the threads that
 * have not stopped yet when this process ends. */
void wlb_capture_release_late(void);

/* The registers by their DWARF numbers from 0, as far as unwinding needs them, and the program counter. */
enum { WLB_CAPTURE_REGISTERS = 32 };
int wlb_capture_registers(const struct wlb_capture *capture, uint64_t numbered[WLB_CAPTURE_REGISTERS]);
uint64_t wlb_capture_counter(const struct wlb_capture *capture);

#endif
