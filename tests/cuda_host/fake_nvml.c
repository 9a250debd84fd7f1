/* A libnvidia-ml.so.1 of two GPUs, or the first alone where NVML_GPUS is 1, and not that whose number is NVML_HIDDEN,
 * with 18 links of NVLink each, of which NVML_FAULT says what is wrong with the second: ecc, pending, failed, heat,
 * power, link, lost, fabric_status, fabric_bandwidth, fabric_route, reset; of both: links, as of cards without a
 * bridge, fabric_progress, no_fabric, fabric_version; of the driver: hang, it does not answer; or "xid N": it has this
 * Xid error 0.15 s after NVML was asked to tell of such errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/seconds.h"

static const double XID_AFTER_S = 0.15;

struct gpu {
	unsigned index;
};

static struct gpu gpus[] = {{0}, {1}};

static int is(const struct gpu *gpu, const char *fault)
{
	const char *named = getenv("NVML_FAULT");
	return gpu->index == 1 && named != NULL && strcmp(named, fault) == 0;
}

static int of_both(const char *fault)
{
	return is(&gpus[1], fault);
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	while (of_both("hang"))
		pause();
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
	*count = getenv("NVML_GPUS") != NULL ? (unsigned)atoi(getenv("NVML_GPUS")) : 2;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu)
{
	const char *hidden = getenv("NVML_HIDDEN");
	*gpu = &gpus[index];
	return hidden != NULL && (unsigned)atoi(hidden) == index ? 4 : 0;
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
	*active = link < 18 && !(is(gpu, "link") && link == 7) && !of_both("links");
	return link < 18 ? 0 : 2;
}

/* nvmlGpuFabricInfo_v2_t */
struct fabric {
	unsigned version;
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
	unsigned health;
};

_Static_assert(sizeof(struct fabric) == 36, "as in nvml.h of CUDA 13");

/* Of a health, 1 is a fault and 2 none. */
int nvmlDeviceGetGpuFabricInfoV(struct gpu *gpu, struct fabric *fabric);
int nvmlDeviceGetGpuFabricInfoV(struct gpu *gpu, struct fabric *fabric)
{
	if (fabric->version != 0x2000024 || of_both("fabric_version"))
		return 25;
	fabric->state = of_both("no_fabric") || of_both("links") ? 0 : of_both("fabric_progress") ? 2 : 3;
	fabric->status = is(gpu, "fabric_status") || fabric->state != 3 ? 999 : 0;
	fabric->health = (is(gpu, "fabric_bandwidth") ? 1 : 2) | (is(gpu, "fabric_route") ? 1 : 2) << 4;
	return 0;
}

/* nvmlFieldValue_t */
struct field {
	unsigned id, scope;
	long long at_us, took_us;
	int type, result;
	unsigned long long value;
};

_Static_assert(sizeof(struct field) == 40, "as in nvml.h of CUDA 13");

/* The first GPU has no recovery action. */
int nvmlDeviceGetFieldValues(struct gpu *gpu, int count, struct field *fields);
int nvmlDeviceGetFieldValues(struct gpu *gpu, int count, struct field *fields)
{
	if (count != 1 || fields->id != 230)
		return 2;
	fields->type = 1;
	fields->result = gpu->index == 0 ? 3 : 0;
	fields->value = gpu->index == 0 || is(gpu, "reset");
	return 0;
}

/* nvmlPciInfo_t */
struct pci {
	char legacy_name[16];
	unsigned domain, bus, device, ids[2];
	char name[32];
};

int nvmlDeviceGetPciInfo_v3(struct gpu *gpu, struct pci *pci);
int nvmlDeviceGetPciInfo_v3(struct gpu *gpu, struct pci *pci)
{
	*pci = (struct pci){.bus = gpu->index == 0 ? 0x3b : 0x5e};
	return 0;
}

/* nvmlEventSet_t points to one. */
struct set {
	struct gpu *gpu;
	double from_s;
	int told;
};

static struct set the_set;

int nvmlEventSetCreate(struct set **set);
int nvmlEventSetCreate(struct set **set)
{
	*set = &the_set;
	return 0;
}

/* The first GPU tells of no errors. */
int nvmlDeviceRegisterEvents(struct gpu *gpu, unsigned long long kinds, struct set *set);
int nvmlDeviceRegisterEvents(struct gpu *gpu, unsigned long long kinds, struct set *set)
{
	if (gpu->index == 0 || kinds != 8)
		return 3;
	set->gpu = gpu;
	set->from_s = wlb_now_s();
	return 0;
}

/* nvmlEventData_t */
struct event {
	struct gpu *gpu;
	unsigned long long kind, xid;
	unsigned instances[2];
};

int nvmlEventSetWait_v2(struct set *set, struct event *event, unsigned wait_ms);
int nvmlEventSetWait_v2(struct set *set, struct event *event, unsigned wait_ms)
{
	const char *fault = getenv("NVML_FAULT");
	unsigned xid;
	if (wait_ms > 100 || set->told || fault == NULL || sscanf(fault, "xid %u", &xid) != 1 ||
	    wlb_now_s() - set->from_s < XID_AFTER_S)
		return 10;
	*event = (struct event){.gpu = set->gpu, .kind = 8, .xid = xid};
	set->told = 1;
	return 0;
}
