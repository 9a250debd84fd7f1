/* Branches of a run: what comes after a part that several runs have in common is run in a copy of this process, once
 * for each of them. */
#ifndef TESTS_BENCH_VERDICTS_BRANCH_H
#define TESTS_BENCH_VERDICTS_BRANCH_H

#include <stddef.h>

/* Memory of zeros that this process shares with its branches; branch_memory_free gives it back. Both, and branch_run,
 * end the program with a message where that cannot be. */
void *branch_memory(size_t bytes);
void branch_memory_free(void *memory, size_t bytes);

/* Calls `run` in a copy of this process, which ends with it, and waits for it. Of what it writes, that to
 * branch_memory stays. */
void branch_run(void (*run)(void *of), void *of);

#endif
