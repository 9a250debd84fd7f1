#include "tests/bench/verdicts/branch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "wlb-verdicts-bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

void *branch_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("memory that processes share");
	return memory;
}

void branch_memory_free(void *memory, size_t bytes)
{
	if (munmap(memory, bytes) < 0)
		fail("munmap");
}

void branch_run(void (*run)(void *of), void *of)
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		run(of);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "wlb-verdicts-bench: a branch of a run ended with status %#x\n", (unsigned)status);
		exit(1);
	}
}
