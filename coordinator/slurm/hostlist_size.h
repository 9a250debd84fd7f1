/* How many names a node list has that somebody else wrote, found before Slurm expands it; no I/O. */
#ifndef COORDINATOR_SLURM_HOSTLIST_SIZE_H
#define COORDINATOR_SLURM_HOSTLIST_SIZE_H

#include "libwlb/wlb.h"

/* The most names of a list, which is also the most that Slurm takes of one range, and the most bytes of a name. */
enum { WLB_HOSTLIST_NAMES_MOST = 65536, WLB_HOSTLIST_NAME_BYTES_MOST = 255 };

/* Returns the number of names in an expression such as "n[1-3,5],login" or "rack[1-2]n[01-16]", in a time that depends
 * on the length of the text alone. Returns -1 with the place, the rule and the remedy where there are more than `most`
 * names (WLB_HOSTLIST_NAMES_MOST at most), a name can have more than 255 bytes, or the text is none that Slurm writes:
 * names of printable ASCII with ranges of numbers in brackets, where text after the last bracket is not allowed. */
int wlb_hostlist_size(const char *expression, int most, struct wlb_error *error);

#endif
