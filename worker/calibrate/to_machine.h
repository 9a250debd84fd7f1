/* A calibration as the machine that plans are made for. */
#ifndef WORKER_CALIBRATE_TO_MACHINE_H
#define WORKER_CALIBRATE_TO_MACHINE_H

#include "worker/calibrate/calibration.h"

/* The facts about a node that are not measured. */
struct wlb_node_facts {
	char type[64]; /* the processor and how many cores or GPUs of it the node has */
	int ranks;     /* of the node */
	int threads;   /* of a rank */
	int32_t element_bytes;
	int32_t blocking_messages; /* as in struct wlb_machine */
};

/* Sets the machine to the calibration where a value was measured; other values of *machine stay. The peak is the
 * highest rate of any product; efficiencies are shares of it, of the largest product and of the longest attention.
 * Returns -1 with value, rule and remedy where rates are not plausible or the result does not pass
 * wlb_machine_check. */
int wlb_calibration_to_machine(const struct wlb_calibration *calibration, const struct wlb_node_facts *facts,
                               struct wlb_machine *machine, struct wlb_error *error);

#endif
