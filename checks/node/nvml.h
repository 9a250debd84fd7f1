/* The functions of NVML, NVIDIA's management library, that are used here; it is loaded, not linked. */
#ifndef CHECKS_NODE_NVML_H
#define CHECKS_NODE_NVML_H

#include "libwlb/wlb.h"

/* Results. Of the others, these say that a GPU or driver lacks what is asked for. */
enum {
	WLB_NVML_DONE = 0,
	WLB_NVML_INVALID_ARGUMENT = 2,
	WLB_NVML_NOT_SUPPORTED = 3,
	WLB_NVML_NO_PERMISSION = 4,
	WLB_NVML_FUNCTION_NOT_FOUND = 13,
	WLB_NVML_UNKNOWN = 999,
};

/* GPUs of a node, at most. */
enum { WLB_NVML_GPUS_MOST = 64 };

enum { WLB_NVML_UNCORRECTED = 1, WLB_NVML_SINCE_DRIVER_LOAD = 0 };

/* Reasons for which a clock is held back: those that are not the power limit or an idle GPU. */
enum {
	WLB_NVML_HARDWARE_SLOWDOWN = 0x08,
	WLB_NVML_HEAT = 0x20,
	WLB_NVML_HARDWARE_HEAT = 0x40,
	WLB_NVML_POWER_BRAKE = 0x80,
};

/* How far a GPU has been registered with the switches of NVLink, and parts of its health: 2 bits each. */
enum {
	WLB_NVML_FABRIC_NONE = 0,
	WLB_NVML_FABRIC_NOT_STARTED = 1,
	WLB_NVML_FABRIC_IN_PROGRESS = 2,
	WLB_NVML_FABRIC_COMPLETED = 3,
};
enum { WLB_NVML_BANDWIDTH_SHIFT = 0, WLB_NVML_ROUTE_SHIFT = 4, WLB_NVML_HEALTH_MASK = 3, WLB_NVML_HEALTH_BAD = 1 };

/* The kind of event that is an Xid error. */
enum { WLB_NVML_XID = 0x08 };

struct wlb_nvml_gpu;    /* nvmlDevice_t points to one */
struct wlb_nvml_events; /* nvmlEventSet_t points to one */

/* nvmlEventData_t */
struct wlb_nvml_event {
	struct wlb_nvml_gpu *gpu;
	unsigned long long kind, xid;
	unsigned gpu_instance, compute_instance;
};

/* The field that has what is to be done with a GPU, 0 for nothing, from driver 570 on; and the type of its value. */
enum { WLB_NVML_RECOVERY_ACTION = 230, WLB_NVML_UNSIGNED = 1 };

/* nvmlFieldValue_t */
struct wlb_nvml_field {
	unsigned id, scope;
	long long at_us, took_us;
	int type, result;
	union {
		unsigned number;
		unsigned long long widest;
	} value;
};

/* nvmlGpuFabricInfo_v2_t; `version` is its size and 2 << 24. */
struct wlb_nvml_fabric {
	unsigned version;
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
	unsigned health;
};

/* nvmlPciInfo_t */
struct wlb_nvml_pci {
	char legacy_name[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char name[32];
};

/* result, name, arguments */
#define WLB_NVML_FUNCTIONS(_)                                                                                          \
	_(int, nvmlInit_v2, (void))                                                                                    \
	_(const char *, nvmlErrorString, (int result))                                                                 \
	_(int, nvmlDeviceGetCount_v2, (unsigned *count))                                                               \
	_(int, nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct wlb_nvml_gpu **gpu))                             \
	_(int, nvmlDeviceGetTotalEccErrors,                                                                            \
	  (struct wlb_nvml_gpu * gpu, int kind, int since, unsigned long long *count))                                 \
	_(int, nvmlDeviceGetRemappedRows,                                                                              \
	  (struct wlb_nvml_gpu * gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending,                   \
	   unsigned *failed))                                                                                          \
	_(int, nvmlDeviceGetCurrentClocksThrottleReasons, (struct wlb_nvml_gpu * gpu, unsigned long long *reasons))    \
	_(int, nvmlDeviceGetNvLinkState, (struct wlb_nvml_gpu * gpu, unsigned link, int *active))                      \
	_(int, nvmlDeviceGetFieldValues, (struct wlb_nvml_gpu * gpu, int count, struct wlb_nvml_field *fields))        \
	_(int, nvmlDeviceGetPciInfo_v3, (struct wlb_nvml_gpu * gpu, struct wlb_nvml_pci * pci))                        \
	_(int, nvmlEventSetCreate, (struct wlb_nvml_events * *set))                                                    \
	_(int, nvmlDeviceRegisterEvents,                                                                               \
	  (struct wlb_nvml_gpu * gpu, unsigned long long kinds, struct wlb_nvml_events *set))                          \
	_(int, nvmlEventSetWait_v2, (struct wlb_nvml_events * set, struct wlb_nvml_event * event, unsigned wait_ms))

struct wlb_nvml {
#define WLB_NVML_MEMBER(result, name, arguments) result(*name) arguments;
	WLB_NVML_FUNCTIONS(WLB_NVML_MEMBER)
#undef WLB_NVML_MEMBER
	/* NULL where the driver is older than it (545). */
	int (*nvmlDeviceGetGpuFabricInfoV)(struct wlb_nvml_gpu *gpu, struct wlb_nvml_fabric *fabric);
};

/* Loads the library. Returns -1 with the reason where there is none. */
int wlb_nvml_load(struct wlb_nvml *nvml, struct wlb_error *error);

#endif
