#include "coordinator/wlbd/detection/transfers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a group: about those of a second, in which a report of some steps arrives. */
enum { KEPT_MOST = 8 };

/* How long shorter messages take is a matter of processors, and not of links. */
static const double bytes_least = 4096;

struct kept {
	double byte_s[KEPT_MOST]; /* the oldest first */
	int count;
	int64_t step; /* for which the last was taken */
};

struct wlbd_transfers {
	struct kept *of_group;
};

/* ---- calls ------------------------------------------------------------------------------------------------------- */

double wlbd_collective_transfer_s(const struct wlbd_seen_call *call, int32_t count)
{
	double least_s = INFINITY;
	for (int32_t m = 0; m < count; m++) {
		double blocked_s = call->left_s[m] - call->blocked_s[m];
		if (isnan(blocked_s))
			return NAN;
		least_s = fmin(least_s, blocked_s);
	}
	return least_s;
}

/* Clocks are aligned by when ranks leave calls, which processors delay by some milliseconds: shorter messages tell
 * nothing. */
static const double message_least_s = 0.02;

double wlbd_message_transfer_s(const struct wlbd_call_times ends[2], double sender_ahead_s, double receiver_ahead_s)
{
	const struct wlbd_call_times *sent = &ends[0], *received = &ends[1];
	double started_s = sent->entered_s - sender_ahead_s, sent_s = sent->left_s - sender_ahead_s;
	double awaited_s = received->blocked_s - receiver_ahead_s, arrived_s = received->left_s - receiver_ahead_s;
	double began_s = fmax(started_s, awaited_s);
	if (!wlbd_call_is_awaited_at_once(sent->entered_s, sent->blocked_s) || !(sent_s > awaited_s) ||
	    !(arrived_s - began_s >= message_least_s))
		return NAN;
	return arrived_s - began_s;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

struct wlbd_transfers *wlbd_transfers_new(int32_t groups)
{
	struct wlbd_transfers *transfers = calloc(1, sizeof(*transfers));
	if (transfers == NULL)
		return NULL;
	transfers->of_group = calloc((size_t)groups + 1, sizeof(*transfers->of_group));
	if (transfers->of_group != NULL)
		return transfers;
	free(transfers);
	return NULL;
}

size_t wlbd_transfers_bytes(int32_t groups)
{
	return (size_t)groups * sizeof(struct kept);
}

void wlbd_transfers_free(struct wlbd_transfers *transfers)
{
	if (transfers == NULL)
		return;
	free(transfers->of_group);
	free(transfers);
}

static void remove_oldest(struct kept *kept)
{
	kept->count--;
	memmove(kept->byte_s, kept->byte_s + 1, (size_t)kept->count * sizeof(kept->byte_s[0]));
}

void wlbd_transfers_add(struct wlbd_transfers *transfers, int32_t group, double transfer_s, double bytes)
{
	struct kept *kept = &transfers->of_group[group];
	if (!(transfer_s > 0.0) || !isfinite(transfer_s) || bytes < bytes_least)
		return;
	if (kept->count == KEPT_MOST)
		remove_oldest(kept);
	kept->byte_s[kept->count++] = transfer_s / bytes;
}

double wlbd_transfers_take(struct wlbd_transfers *transfers, int32_t group, int64_t step)
{
	struct kept *kept = &transfers->of_group[group];
	if (kept->count == 0 || step <= kept->step)
		return NAN;
	double byte_s = kept->byte_s[0];
	kept->step = step;
	remove_oldest(kept);
	return byte_s;
}
