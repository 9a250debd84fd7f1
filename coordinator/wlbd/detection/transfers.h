/*
 * How long messages were in transit, from calls of which all members have reported the times: without the wait for
 * members that came later. No I/O.
 */
#ifndef COORDINATOR_WLBD_DETECTION_TRANSFERS_H
#define COORDINATOR_WLBD_DETECTION_TRANSFERS_H

#include "coordinator/wlbd/detection/calls.h"

/* Returns the transfer of a call of a collective: the least of how long it blocked its `count` members, since the last
 * to enter waits for the messages alone. NaN where a member has not reported it or began to wait later than it started
 * it: what went on beside the computation is not known then. */
double wlbd_collective_transfer_s(const struct wlbd_seen_call *call, int32_t count);

/* Returns how long a message of an edge was under way while both ends waited for it, `ends` being the sender's times
 * and the receiver's; NaN where the message does not show how fast the link is. Until the later of both has begun to
 * wait, the time is that rank's and not the link's. A sender that computes before its message has gone may let it wait,
 * since messages advance only inside calls. A message for which the sender does not wait any more when the receiver
 * begins may have arrived before. `ahead` are the clocks of both against one, which are known to some milliseconds: a
 * message of less than 20 ms shows nothing either; NaN: not known. */
double wlbd_message_transfer_s(const struct wlbd_call_times ends[2], double sender_ahead_s, double receiver_ahead_s);

/* The newest transfers of each group, until they are taken. */
struct wlbd_transfers;

struct wlbd_transfers *wlbd_transfers_new(int32_t groups);  /* NULL if out of memory */
size_t wlbd_transfers_bytes(int32_t groups);                /* of memory that it holds */
void wlbd_transfers_free(struct wlbd_transfers *transfers); /* NULL allowed */

/* Adds a transfer of so many bytes. A transfer that is NaN changes nothing. The first messages shorter than 4 KiB show
 * how long processors take for a message, whatever the link; other messages count from when that is known. The first
 * eight of each size, for the first 16 sizes of a group, show what is usual: a longer message takes less time for a
 * byte, and which ones are reported differs from time to time. Messages of further sizes are not judged. */
void wlbd_transfers_add(struct wlbd_transfers *transfers, int32_t group, double transfer_s, double bytes);
/* Returns the seconds for a byte of the oldest transfer, once for each step, whichever member ends the step first; NaN
 * where there is no transfer. The result is the usual time of the size that was known first, times the time of this
 * transfer divided by the usual time of its own size. Ten times the time of a short message, the greatest of the
 * groups, is added: shared processors delay messages by a few milliseconds, and at times by more, and a transfer that
 * is not much longer than such a delay does not show that a link has become slow. */
double wlbd_transfers_take(struct wlbd_transfers *transfers, int32_t group, int64_t step);

#endif
