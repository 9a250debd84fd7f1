/* What finds the verdicts of each kind. A function *_step learns from a step that all ranks have reported; a function
 * *_find adds the verdicts that hold now. Internal. */
#ifndef LIBVERDICT_KINDS_H
#define LIBVERDICT_KINDS_H

#include "libverdict/detector_state.h"

/* -- crash.c: processes that are gone, and nodes that report no more -- */
/* Returns the number of ranks and nodes that are gone, also where the first of them is not known yet. */
int32_t verdict_crash_find(struct wlb_verdict_detector *detector);

/* -- hang.c: a rank outside communication for which the others wait, and ranks that wait for each other -- */
/* verdict_waits_find must have run. */
void verdict_hang_find(struct wlb_verdict_detector *detector);

/* -- hang_collective.c: calls that all members have entered and that some or all members do not leave -- */
/* verdict_waits_find must have run. */
void verdict_hang_collective_find(struct wlb_verdict_detector *detector);

/* -- loss.c: ranks whose loss or gradient is not finite, or far off that of their peers -- */
void verdict_loss_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);
void verdict_loss_find(struct wlb_verdict_detector *detector);

/* -- corruption.c: ranks that computed other bits than their peers, or than themselves -- */
void verdict_corruption_find(struct wlb_verdict_detector *detector);

/* -- compute.c: ranks and nodes that compute longer than their predicted work explains -- */
void verdict_compute_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);
void verdict_compute_find(struct wlb_verdict_detector *detector);

/* -- links.c: slow NICs, and slow links where no NIC explains the slow messages -- */
/* Memberships are compared with those of groups of the same kind, apart where a group is inside a node and where it is
 * not. set_of: [memberships]; returns the number of sets. */
int32_t verdict_links_sets(const struct verdict_world *world, int32_t *set_of);
void verdict_links_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);
void verdict_links_find(struct wlb_verdict_detector *detector);

/* -- nics.c: which NICs the slow streams of messages show as slow -- */
/* Sets `nic` of all nodes from the streams that are slow at the moment. */
void verdict_nics_find(struct wlb_verdict_detector *detector);

/* -- loader.c: ranks that wait for their loader, and whether the loader waits for the file system -- */
void verdict_loader_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);
void verdict_loader_find(struct wlb_verdict_detector *detector);

#endif
