/* Ranks as a short text. */
#ifndef COORDINATOR_WLB_OUTPUT_RANK_TEXT_H
#define COORDINATOR_WLB_OUTPUT_RANK_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* "8-13,15" of ascending ranks, in at most `columns` columns, with ",..." where that is not all. */
void wlb_ranks_format(const int *ranks, int count, int columns, char *text, size_t size);

#endif
