#include "coordinator/stacks/refusal.h"

#include <stdio.h>
#include <string.h>

/* Returns the number behind `key` in a file of lines, -1 where there is none. */
static int read_number(const char *path, const char *key)
{
	char line[256];
	int number = -1;
	FILE *file = fopen(path, "re");
	while (file != NULL && number < 0 && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%d", &number) != 1)
			number = -1;
	if (file != NULL)
		fclose(file);
	return number;
}

void wlb_refusal_text(pid_t tracer, int scope, int error, char text[WLB_REFUSAL_SIZE])
{
	if (tracer > 0)
		snprintf(text, WLB_REFUSAL_SIZE,
		         "process %d traces it already, and Linux allows one tracer; end that debugger", (int)tracer);
	else if (scope == 1)
		snprintf(
			text, WLB_REFUSAL_SIZE,
			"kernel.yama.ptrace_scope is 1: only a parent may trace a process; an administrator may set it "
			"to 0 on this node");
	else if (scope == 2)
		snprintf(
			text, WLB_REFUSAL_SIZE,
			"kernel.yama.ptrace_scope is 2: only processes with CAP_SYS_PTRACE may trace; an administrator "
			"may set it to 0 on this node");
	else if (scope > 2)
		snprintf(
			text, WLB_REFUSAL_SIZE,
			"kernel.yama.ptrace_scope is %d: nobody may trace until the node is started again with a lower "
			"value",
			scope);
	else
		snprintf(text, WLB_REFUSAL_SIZE,
		         "ptrace: %s; the process must be of the same user, with no more privileges and not protected "
		         "by prctl(PR_SET_DUMPABLE)",
		         strerror(error));
}

void wlb_refusal_explain(pid_t pid, int error, char text[WLB_REFUSAL_SIZE])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	wlb_refusal_text(read_number(path, "TracerPid:"), read_number("/proc/sys/kernel/yama/ptrace_scope", ""), error,
	                 text);
}
