/* Faults and verdicts of the coordinator's replies as short texts. */
#ifndef COORDINATOR_WLB_OUTPUT_FAULT_TEXT_H
#define COORDINATOR_WLB_OUTPUT_FAULT_TEXT_H

#include <stddef.h>

#include <jansson.h>

/* Writes where the fault is: "rank 3 on n2", "link 3>5", "node n2", "16 ranks on n[1-2]"; "-": it is not known. */
void wlb_fault_where(const json_t *entry, char *text, size_t size);

/* Writes its kind in words: "hang in communication". The text of step_failed says which Slurm step failed: beside a
 * column of training steps it would be taken for a training step. */
void wlb_fault_kind(const json_t *entry, char *text, size_t size);

#endif
