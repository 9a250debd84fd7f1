#include "coordinator/stacks/capture.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "common/clock.h"

enum { PAGE_BYTES = 4096, PAGES = WLB_CAPTURE_STACK_BYTES / PAGE_BYTES };

/* ---- registers --------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static uint64_t stack_pointer(const struct user_regs_struct *r)
{
	return r->rsp;
}

uint64_t wlb_capture_counter(const struct wlb_capture *capture)
{
	return capture->registers.rip;
}

int wlb_capture_registers(const struct wlb_capture *capture, uint64_t numbered[WLB_CAPTURE_REGISTERS])
{
	const struct user_regs_struct *r = &capture->registers;
	const uint64_t values[] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
	                           r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
	int count = sizeof(values) / sizeof(values[0]);
	for (int i = 0; i < count; i++)
		numbered[i] = values[i];
	return count;
}
#elif defined(__aarch64__)
static uint64_t stack_pointer(const struct user_regs_struct *r)
{
	return r->sp;
}

uint64_t wlb_capture_counter(const struct wlb_capture *capture)
{
	return capture->registers.pc;
}

int wlb_capture_registers(const struct wlb_capture *capture, uint64_t numbered[WLB_CAPTURE_REGISTERS])
{
	for (int i = 0; i < 31; i++)
		numbered[i] = capture->registers.regs[i];
	numbered[31] = capture->registers.sp;
	return 32;
}
#else
#error "wlb-stacks knows the registers of x86_64 and aarch64; add those of this processor to capture.c"
#endif

/* ---- the copy ---------------------------------------------------------------------------------------------------- */

/* Page by page, because a call copies whole entries only and the stack ends somewhere. */
static void copy_stack(struct wlb_capture *capture)
{
	struct iovec to = {capture->stack, WLB_CAPTURE_STACK_BYTES}, from[PAGES + 1];
	uint64_t address = stack_pointer(&capture->registers), end = address + WLB_CAPTURE_STACK_BYTES;
	int count = 0;
	capture->stack_at = address;
	while (address < end) {
		uint64_t next = (address | (PAGE_BYTES - 1)) + 1;
		next = next < end ? next : end;
		from[count++] = (struct iovec){(void *)(uintptr_t)address, next - address};
		address = next;
	}
	ssize_t copied = process_vm_readv(capture->pid, &to, 1, from, (unsigned long)count, 0);
	capture->stack_bytes = copied > 0 ? (size_t)copied : 0;
}

static bool copy(struct wlb_capture *capture)
{
	struct iovec registers = {&capture->registers, sizeof(capture->registers)};
	if (ptrace(PTRACE_GETREGSET, capture->tid, (void *)NT_PRSTATUS, &registers) != 0)
		return false;
	copy_stack(capture);
	return true;
}

/* ---- stop and release -------------------------------------------------------------------------------------------- */

/* A signal that was about to be delivered when the thread stopped is delivered now. */
static void release(pid_t tid, int status)
{
	bool is_signal = WIFSTOPPED(status) && status >> 16 == 0;
	long signal = is_signal ? WSTOPSIG(status) : 0;
	ptrace(PTRACE_DETACH, tid, NULL, (void *)signal);
}

static pid_t wait_for_stop(pid_t tid, int *status)
{
	int64_t until_ms = wlb_clock_ms() + WLB_CAPTURE_WAIT_MS;
	for (;;) {
		pid_t found = waitpid(tid, status, __WALL | WNOHANG);
		if (found != 0 || wlb_clock_left_ms(until_ms) == 0)
			return found;
		wlb_clock_sleep_ms(1);
	}
}

enum wlb_capture_result wlb_capture_thread(pid_t pid, pid_t tid, struct wlb_capture *capture)
{
	int status = 0;
	capture->pid = pid;
	capture->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return errno == ESRCH ? WLB_CAPTURE_GONE : WLB_CAPTURE_REFUSED;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	pid_t found = wait_for_stop(tid, &status);
	if (found == 0)
		return WLB_CAPTURE_ASLEEP;
	if (found < 0 || !WIFSTOPPED(status))
		return WLB_CAPTURE_GONE;
	bool is_copied = copy(capture);
	release(tid, status);
	return is_copied ? WLB_CAPTURE_DONE : WLB_CAPTURE_GONE;
}

void wlb_capture_release_late(void)
{
	int status;
	pid_t tid;
	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		if (WIFSTOPPED(status))
			release(tid, status);
}
