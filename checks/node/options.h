/* The options of `wlb check-node`. */
#ifndef CHECKS_NODE_OPTIONS_H
#define CHECKS_NODE_OPTIONS_H

#include <stdbool.h>

#include "common/options.h"

enum wlb_check {
	WLB_CHECK_PRODUCTS = 1,
	WLB_CHECK_SPEED = 2,
	WLB_CHECK_MEMORY = 4,
	WLB_CHECK_DISK = 8,
	WLB_CHECK_LINKS = 16,
};

/* Folders and peers of one call, at most. */
enum { WLB_CHECK_LIST_MOST = 16 };

/* Texts point into argv; NULL where an option was not given. */
struct wlb_check_options {
	const char *only; /* "products,disk"; NULL: all */
	const char *machine;
	const char *serve; /* a port */
	struct wlb_option_list dirs, peers;
	int device;                   /* enum wlb_device_kind */
	int dtype;                    /* enum wlb_dtype; WLB_DTYPE_AUTO until it is chosen */
	double answer_s;              /* that a GPU may take to be counted, to be opened, and to answer NVML */
	int gpus;                     /* that the node must have; 0: any number */
	int nvlinks;                  /* of a GPU that must be active; 0: as many as of the GPU that has most */
	int threads;                  /* of a rank in the calibration; 0: the CPUs divided by the machine's ranks */
	double seconds;               /* that products, speed and memory take together */
	double slower_than;           /* of products and processor time */
	double bandwidth_slower_than; /* of additions and copies in memory */
	int seed;
	int memory_mib;
	int disk_mib;
	double disk_mib_per_s;
	double link_gbit_per_s; /* 0: no limit */
	bool json;
	bool report;       /* to the coordinator */
	bool if_suspected; /* by the coordinator; else nothing is checked */
	unsigned checks;   /* of enum wlb_check; set by wlb_check_options_complete */
};

extern const struct wlb_option_table wlb_check_option_table;

/* Checks the values together, and sets `checks` and `dtype`. Returns -1 with the value, the rule and the remedy. */
int wlb_check_options_complete(struct wlb_check_options *options, struct wlb_error *error);

/* Whether the node is a virtual machine, whose memory bandwidth other guests of its host use as well. Reads the flags
 * of the first processor of `cpuinfo`, which is /proc/cpuinfo but in tests: on x86 a hypervisor sets the flag of that
 * name. Returns false on other processors, and where the file cannot be read. */
bool wlb_is_virtual_machine(const char *cpuinfo);

#endif
