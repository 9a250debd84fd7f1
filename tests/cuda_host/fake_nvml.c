/* A libnvidia-ml.so.1 of two GPUs with 18 links of NVLink each, of which NVML_FAULT says what is wrong with the second:
 * ecc, pending, failed, heat, power, link, lost. */
#include <stdlib.h>
#include <string.h>

struct gpu {
	unsigned index;
};

static struct gpu gpus[] = {{0}, {1}};

static int is(const struct gpu *gpu, const char *fault)
{
	const char *named = getenv("NVML_FAULT");
	return gpu->index == 1 && named != NULL && strcmp(named, fault) == 0;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	return 0;
}

const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
	return result == 15 ? "GPU is lost" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = 2;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu)
{
	*gpu = &gpus[index];
	return 0;
}

int nvmlDeviceGetTotalEccErrors(struct gpu *gpu, int kind, int since, unsigned long long *count);
int nvmlDeviceGetTotalEccErrors(struct gpu *gpu, int kind, int since, unsigned long long *count)
{
	*count = is(gpu, "ecc") && kind == 1 && since == 0 ? 3 : 0;
	return is(gpu, "lost") ? 15 : 0;
}

int nvmlDeviceGetRemappedRows(struct gpu *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed);
int nvmlDeviceGetRemappedRows(struct gpu *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed)
{
	*corrected = *uncorrected = 0;
	*pending = is(gpu, "pending") || is(gpu, "failed");
	*failed = is(gpu, "failed");
	return gpu->index == 0 ? 3 : 0; /* the first GPU has no such count */
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct gpu *gpu, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct gpu *gpu, unsigned long long *reasons)
{
	*reasons = is(gpu, "heat") ? 0x60 : is(gpu, "power") ? 0x80 : 0x5; /* idle, limit of power */
	return 0;
}

int nvmlDeviceGetNvLinkState(struct gpu *gpu, unsigned link, int *active);
int nvmlDeviceGetNvLinkState(struct gpu *gpu, unsigned link, int *active)
{
	*active = link < 18 && !(is(gpu, "link") && link == 7);
	return link < 18 ? 0 : 2;
}
