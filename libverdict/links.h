/* Verdicts of slow messages: slow NICs (nics.h), and links where no NIC explains them. Internal. */
#ifndef LIBVERDICT_LINKS_H
#define LIBVERDICT_LINKS_H

#include "libverdict/parts.h"

/* Memberships are compared with those of groups of the same kind, apart where a group is inside a node and where it is
 * not. set_of: [memberships]; returns the number of sets. */
int32_t verdict_links_sets(const struct verdict_world *world, int32_t *set_of);

void verdict_links_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);
void verdict_links_find(struct wlb_verdict_detector *detector);

#endif
