/*
 * pmix_fences COUNT [BEGIN_S]: is PMIx_Fence a barrier that all data passes? All ranks enter COUNT fences one after the
 * other, each with a value that the other ranks then read. With BEGIN_S, a time of the clock (date +%s), no rank enters
 * its first fence before: the first messages of two nodes then cross each other. Rank 0 prints how long the fences
 * took; 1 where one failed or a value is missing.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check(pmix_status_t status, const char *what, int number)
{
	if (status == PMIX_SUCCESS)
		return;
	fprintf(stderr, "pmix_fences: %s %d: %s\n", what, number, PMIx_Error_string(status));
	exit(1);
}

/* The value of this rank, a fence, and that of the last rank, which is on another node where there are several. */
static void pass_fence(const pmix_proc_t *me, uint32_t last, int number)
{
	char key[32];
	bool yes = true;
	pmix_info_t collect, local;
	pmix_value_t mine = {.type = PMIX_UINT32, .data.uint32 = me->rank}, *other = NULL;
	pmix_proc_t from = *me;
	from.rank = me->rank == last ? 0 : last;
	snprintf(key, sizeof(key), "fence.%d", number);
	check(PMIx_Put(PMIX_GLOBAL, key, &mine), "put", number);
	check(PMIx_Commit(), "commit", number);
	PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
	check(PMIx_Fence(NULL, 0, &collect, 1), "fence", number);
	PMIX_INFO_LOAD(&local, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
	check(PMIx_Get(&from, key, &local, 1, &other), "value of fence", number);
	PMIX_VALUE_RELEASE(other);
}

int main(int argc, char **argv)
{
	pmix_proc_t me, all;
	pmix_value_t *size = NULL;
	const int count = argc > 1 ? atoi(argv[1]) : 1;
	check(PMIx_Init(&me, NULL, 0), "PMIx_Init", 0);
	PMIX_PROC_LOAD(&all, me.nspace, PMIX_RANK_WILDCARD);
	check(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &size), "size", 0);
	while (argc > 2 && seconds(CLOCK_REALTIME) < atof(argv[2]))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	const double began_s = seconds(CLOCK_MONOTONIC);
	for (int i = 1; i <= count; i++)
		pass_fence(&me, size->data.uint32 - 1, i);
	if (me.rank == 0)
		printf("%d fences in %.4f s\n", count, seconds(CLOCK_MONOTONIC) - began_s);
	PMIX_VALUE_RELEASE(size);
	PMIx_Finalize(NULL, 0);
	return 0;
}
