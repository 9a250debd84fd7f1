/* Of an output that srun has labelled (`srun --label`, "03: text"), the lines of one rank, as they are. Pure, no I/O.
 */
#ifndef COORDINATOR_WLB_LOGS_RANK_LINES_H
#define COORDINATOR_WLB_LOGS_RANK_LINES_H

#include <stddef.h>

enum { WLB_LABEL_BYTES = 16 };

struct wlb_rank_lines {
	int rank;
	enum { WLB_LINE_LABEL, WLB_LINE_PASS, WLB_LINE_SKIP } state;
	char label[WLB_LABEL_BYTES]; /* of the line that begins, as far as it has come */
	size_t label_bytes;
};

/* Takes the next `count` bytes and writes those that are the rank's to `to`, which has room for `count` +
 * WLB_LABEL_BYTES. Returns how many. A line without a label is of no rank. */
size_t wlb_rank_lines_pass(struct wlb_rank_lines *lines, const char *bytes, size_t count, char *to);

#endif
