#include "coordinator/wlbd/main/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS = 40000, BLOCK_BYTES = 1000, MIB = 1 << 20 };

static long resident_mib(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE) / MIB;
}

/* Allocates, and frees all but the last block, which keeps malloc from giving the others back by itself. Returns the
 * last. */
static char *allocate_and_free(void)
{
	static char *blocks[BLOCKS];
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK_BYTES);
		assert_non_null(blocks[i]);
		memset(blocks[i], 1, BLOCK_BYTES);
	}
	for (int i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
	return blocks[BLOCKS - 1];
}

/* Also what was allocated again from memory that had gone back, and was freed before anybody looked. */
static void test_freed_memory_goes_back(void **state)
{
	(void)state;
	wlbd_memory_configure();
	wlbd_memory_return_freed();
	long before_mib = resident_mib();
	char *last[3];
	for (int i = 0; i < 3; i++) {
		last[i] = allocate_and_free();
		assert_in_range(resident_mib() - before_mib, 30, 100);
		wlbd_memory_return_freed();
		assert_in_range(resident_mib() - before_mib + 1, 0, 6);
	}
	for (int i = 0; i < 3; i++)
		free(last[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_freed_memory_goes_back)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
