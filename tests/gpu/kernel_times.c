/*
 * A library that the CUDA driver loads into any program (CUDA_INJECTION64_PATH; CUPTI's documentation, "Injection"),
 * and that adds up the time of each kernel, copy and memset of the GPU by name. At the program's end $WLB_KERNEL_TIMES
 * receives a line for each: the name as compiled, a tab, the calls, a tab, the seconds; and at last `elapsed`, the
 * number of all, and the seconds from the begin of the first to the end of the last. Where a call of CUPTI fails it
 * says so, and the program runs on.
 */
#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAMES = 1024, /* a step has some 60 */
	NAME_BYTES = 512,
	RECORDS_BYTES = 4 << 20,
};

static struct {
	char name[NAME_BYTES];
	uint64_t calls, ns;
} kinds[NAMES];
static size_t kind_count;
static uint64_t calls, first_ns = UINT64_MAX, last_ns;

/* CUPTI calls completed() from one thread of its own at a time. */
static void add(const char *name, uint64_t start_ns, uint64_t end_ns)
{
	size_t i = 0;
	while (i < kind_count && strncmp(kinds[i].name, name, NAME_BYTES - 1) != 0)
		i++;
	if (i == NAMES)
		return;
	if (i == kind_count)
		snprintf(kinds[kind_count++].name, NAME_BYTES, "%s", name);
	kinds[i].calls++;
	kinds[i].ns += end_ns - start_ns;
	calls++;
	first_ns = start_ns < first_ns ? start_ns : first_ns;
	last_ns = end_ns > last_ns ? end_ns : last_ns;
}

static void add_record(const CUpti_Activity *record)
{
	if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
		const CUpti_ActivityKernel10 *kernel = (const CUpti_ActivityKernel10 *)record;
		add(kernel->name, kernel->start, kernel->end);
	} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
		const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)record;
		add("copy", copy->start, copy->end);
	} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
		const CUpti_ActivityMemset4 *set = (const CUpti_ActivityMemset4 *)record;
		add("memset", set->start, set->end);
	}
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	*buffer = aligned_alloc(8, RECORDS_BYTES);
	*bytes = *buffer != NULL ? RECORDS_BYTES : 0;
	*most_records = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t used_bytes)
{
	(void)context, (void)stream, (void)bytes;
	CUpti_Activity *record = NULL;
	while (cuptiActivityGetNextRecord(buffer, used_bytes, &record) == CUPTI_SUCCESS)
		add_record(record);
	free(buffer);
}

static void report(void)
{
	const char *path = getenv("WLB_KERNEL_TIMES");
	cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	FILE *file = path != NULL ? fopen(path, "we") : NULL;
	if (file == NULL) {
		perror("kernel_times: cannot write the file that WLB_KERNEL_TIMES names");
		return;
	}
	for (size_t i = 0; i < kind_count; i++)
		fprintf(file, "%s\t%llu\t%.9f\n", kinds[i].name, (unsigned long long)kinds[i].calls,
		        1e-9 * (double)kinds[i].ns);
	if (calls > 0)
		fprintf(file, "elapsed\t%llu\t%.9f\n", (unsigned long long)calls, 1e-9 * (double)(last_ns - first_ns));
	fclose(file);
}

/* The driver calls it before the program's first call is done. */
int InitializeInjection(void)
{
	static const CUpti_ActivityKind observed[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
	                                              CUPTI_ACTIVITY_KIND_MEMSET};
	CUptiResult result = cuptiActivityRegisterCallbacks(requested, completed);
	for (size_t i = 0; result == CUPTI_SUCCESS && i < sizeof(observed) / sizeof(observed[0]); i++)
		result = cuptiActivityEnable(observed[i]);
	const char *reason = "?";
	if (result != CUPTI_SUCCESS && cuptiGetResultString(result, &reason) == CUPTI_SUCCESS)
		fprintf(stderr, "kernel_times: CUPTI: %s\n", reason);
	atexit(report);
	return 1;
}
