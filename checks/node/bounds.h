/* How long the parts of `wlb check-node` may take before a device or folder counts as hung, and all of them together.
 */
#ifndef CHECKS_NODE_BOUNDS_H
#define CHECKS_NODE_BOUNDS_H

enum {
	/* A driver without a persistent daemon starts all GPUs for the first program that asks. */
	WLB_CHECK_GPU_ANSWER_S = 60, /* where --answer-seconds is not given */
	WLB_CHECK_OPEN_CPU_S = 10,
	WLB_CHECK_LATE = 4,            /* how many times as long as on a healthy node the work may take */
	WLB_CHECK_MEASUREMENTS = 4,    /* of speed, at most */
	WLB_CHECK_PAUSES_S = 13,       /* between them, all together */
	WLB_CHECK_FOLDER_ANSWER_S = 2, /* for a folder, beside the time of its bytes at the lowest rate */
	/* What `wlb run` has a node write that it excludes: its run may be saving to the same file system meanwhile. */
	WLB_CHECK_SUSPECT_DISK_MIB = 4,
	WLB_CHECK_SUSPECT_DISK_MIB_PER_S = 1
};

/* With the default options, and a disk as above, where no device hangs and each takes almost as long as it may: GPUs
 * are counted, and NVML watches them; products and memory have a device opened once each, speed for each measurement,
 * and have 2, 4 and 2 s of work; between measurements there are pauses; NVML answers; a folder is written to; a second
 * or two in which processes start and end. A check with a device that hangs ends there.
 */
enum {
	WLB_CHECK_NODE_MOST_S = (3 + 2 + WLB_CHECK_MEASUREMENTS) * WLB_CHECK_GPU_ANSWER_S +
	                        WLB_CHECK_LATE * (2 + 4 + 2 * WLB_CHECK_MEASUREMENTS) + WLB_CHECK_PAUSES_S +
	                        WLB_CHECK_FOLDER_ANSWER_S +
	                        2 * WLB_CHECK_SUSPECT_DISK_MIB / WLB_CHECK_SUSPECT_DISK_MIB_PER_S + 2
};

#endif
