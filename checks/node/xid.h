/* The Xid errors of NVIDIA's driver: its lines in the kernel's log, and which errors say that a GPU is faulty. */
#ifndef CHECKS_NODE_XID_H
#define CHECKS_NODE_XID_H

#include <stdbool.h>

struct wlb_pci_address {
	unsigned domain, bus, device;
};

enum wlb_xid_meaning {
	WLB_XID_NO_FAULT,
	WLB_XID_FAULT,     /* of the GPU or its links: see wlb_xid_fault */
	WLB_XID_RECOVERED, /* the driver says that nothing has to be done with the GPU any more */
};

struct wlb_xid {
	struct wlb_pci_address gpu;
	int number;
	enum wlb_xid_meaning meaning;
};

/* Parses a line "NVRM: Xid (PCI:0000:3b:00): 79, ...", also with " GPU-I:NN" or " GPU-I:NN GPU-CI:NN" after the
 * address. Returns 1 with the error, 0 where it is another line. */
int wlb_xid_parse(const char *line, struct wlb_xid *xid);

/* Returns whether the line says that the driver was loaded: what was logged before is over. */
bool wlb_xid_is_driver_start(const char *line);

/* Returns in words what is wrong with a GPU that has had this error; NULL where the error does not say that it is
 * faulty.
 *
 * The numbers are those of NVIDIA's Xid Catalog, https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html.
 * An error is a fault of the GPU where the catalog has the GPU reset, the node restarted or its parts inspected (46,
 * 54, 62, 64, 79, 110, 119, 120, 136, 140, 143, 155, 156, 158), or has steps of its own for memory and NVLink (48, 74).
 * So are memory errors that were not corrected but kept from other programs (94), for which the catalog only restarts
 * the program: NVML counts them as well. 154 announces what has to be done with the GPU; wlb_xid_parse reads whether
 * that is nothing.
 *
 * No faults are errors that a program may have caused (13, 31, 43, 45, 68 ...), that were corrected or are for
 * information (63, 92, 121), and those of NVLink 5 whose meaning depends on their registers (144 to 150). Nor is 109, a
 * context that could not be switched, although the catalog has the GPU reset: a program may have caused it. Where the
 * GPU has to be reset after one of these, 154 follows (from driver 570 on). */
const char *wlb_xid_fault(int number);

#endif
