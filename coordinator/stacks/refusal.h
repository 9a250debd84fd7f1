/* Why the kernel does not let a process be traced, and what an administrator may set. */
#ifndef COORDINATOR_STACKS_REFUSAL_H
#define COORDINATOR_STACKS_REFUSAL_H

#include <stddef.h>
#include <sys/types.h>

enum { WLB_REFUSAL_SIZE = 256 };

/* `error` is the errno of ptrace(). */
void wlb_refusal_explain(pid_t pid, int error, char text[WLB_REFUSAL_SIZE]);

/* The same, from facts: the process that traces it (0: none), and kernel.yama.ptrace_scope (-1: there is none). */
void wlb_refusal_text(pid_t tracer, int scope, int error, char text[WLB_REFUSAL_SIZE]);

#endif
