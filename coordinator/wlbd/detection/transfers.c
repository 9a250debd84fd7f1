#include "coordinator/wlbd/detection/transfers.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Of a group: about those of a second, in which a report of some steps arrives. */
enum { KEPT_MAX = 8 };

/* How long shorter messages take is a matter of processors, and not of links. */
static const double bytes_min = 4096;

/* The first short messages of a group tell how long processors take; they are known once one group has reported ENOUGH.
 */
enum { SHORT_MIN = 8, SHORT_ENOUGH = 32 };
/* Where processors are shared, the time of a message changes by several times what a short one takes in the mean. */
static const double times_short = 10.0;
/* What is added where a run reports no short messages, once it has reported so many others. */
static const double added_without_s = 0.02;
enum { OTHERS_ENOUGH = 256 };

/* The sizes of a group's messages that are judged, and how many messages of a size tell what is usual. */
enum { SIZES_MAX = 16, SIZE_LEARN = 8 };
/* Messages whose bytes differ by less than a fifth are of one size. */
static const double sizes_of_octave = 4.0;

struct size {
	int32_t number;   /* log2 of the bytes, in quarters */
	int32_t messages; /* of which mean_s is the mean, up to SIZE_LEARN */
	double mean_s;
};

struct kept {
	double byte_s[KEPT_MAX]; /* the oldest first */
	int count;
	int64_t step;        /* for which the last was taken */
	double short_s;      /* mean of the first short messages, */
	int shorts;          /* of which there are so many */
	double usual_byte_s; /* of the size that was known first; 0: none is known yet */
	int sizes;
	struct size size[SIZES_MAX];
};

struct wlbd_transfers {
	int32_t groups;
	int32_t others; /* longer messages, up to OTHERS_ENOUGH */
	bool has_short;
	double added_s; /* NaN: not known yet */
	struct kept *of_group;
};

/* ---- calls ------------------------------------------------------------------------------------------------------- */

double wlbd_collective_transfer_s(const struct wlbd_seen_call *call, int32_t count)
{
	double min_s = INFINITY;
	for (int32_t m = 0; m < count; m++) {
		double blocked_s = call->left_s[m] - call->blocked_s[m];
		if (isnan(blocked_s))
			return NAN;
		min_s = fmin(min_s, blocked_s);
	}
	return min_s;
}

/* Clocks are aligned by when ranks leave calls, which processors delay by some milliseconds: shorter messages tell
 * nothing. */
static const double message_min_s = 0.02;

double wlbd_message_transfer_s(const struct wlbd_call_times ends[2], double sender_ahead_s, double receiver_ahead_s)
{
	const struct wlbd_call_times *sent = &ends[0], *received = &ends[1];
	double started_s = sent->entered_s - sender_ahead_s, sent_s = sent->left_s - sender_ahead_s;
	double awaited_s = received->blocked_s - receiver_ahead_s, arrived_s = received->left_s - receiver_ahead_s;
	double began_s = fmax(started_s, awaited_s);
	if (!wlbd_call_is_awaited_at_once(sent->entered_s, sent->blocked_s) || !(sent_s > awaited_s) ||
	    !(arrived_s - began_s >= message_min_s))
		return NAN;
	return arrived_s - began_s;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

struct wlbd_transfers *wlbd_transfers_new(int32_t groups)
{
	struct wlbd_transfers *transfers = calloc(1, sizeof(*transfers));
	if (transfers == NULL)
		return NULL;
	*transfers = (struct wlbd_transfers){.groups = groups, .added_s = NAN};
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

/* Returns the greatest time of the groups that have reported short messages, since groups of few ranks do not show how
 * long other groups wait. */
static double short_of_groups_s(const struct wlbd_transfers *transfers)
{
	double max_s = 0.0;
	for (int32_t g = 0; g < transfers->groups; g++)
		if (transfers->of_group[g].shorts >= SHORT_MIN)
			max_s = fmax(max_s, transfers->of_group[g].short_s);
	return max_s;
}

static void add_short(struct wlbd_transfers *transfers, struct kept *kept, double seconds)
{
	if (kept->shorts == SHORT_ENOUGH || !isnan(transfers->added_s))
		return;
	transfers->has_short = true;
	kept->shorts++;
	kept->short_s += (seconds - kept->short_s) / kept->shorts;
	if (kept->shorts == SHORT_ENOUGH)
		transfers->added_s = times_short * short_of_groups_s(transfers);
}

/* Returns the size of messages of so many bytes; NULL: the group has too many. */
static struct size *find_size(struct kept *kept, double bytes)
{
	int32_t number = (int32_t)lround(sizes_of_octave * log2(bytes));
	for (int i = 0; i < kept->sizes; i++)
		if (kept->size[i].number == number)
			return &kept->size[i];
	if (kept->sizes == SIZES_MAX)
		return NULL;
	kept->size[kept->sizes] = (struct size){.number = number};
	return &kept->size[kept->sizes++];
}

static void learn_size(struct kept *kept, struct size *size, double seconds, double bytes)
{
	size->messages++;
	size->mean_s += (seconds - size->mean_s) / size->messages;
	if (size->messages == SIZE_LEARN && !(kept->usual_byte_s > 0.0))
		kept->usual_byte_s = size->mean_s / bytes;
}

static void remove_oldest(struct kept *kept)
{
	kept->count--;
	memmove(kept->byte_s, kept->byte_s + 1, (size_t)kept->count * sizeof(kept->byte_s[0]));
}

/* Adds a message that is not short, once it is known what is added. */
static void add_long(struct kept *kept, double seconds, double bytes)
{
	struct size *size = find_size(kept, bytes);
	if (size == NULL)
		return;
	if (size->messages < SIZE_LEARN) {
		learn_size(kept, size, seconds, bytes);
		return;
	}
	if (kept->count == KEPT_MAX)
		remove_oldest(kept);
	kept->byte_s[kept->count++] = seconds / size->mean_s * kept->usual_byte_s;
}

void wlbd_transfers_add(struct wlbd_transfers *transfers, int32_t group, double transfer_s, double bytes)
{
	struct kept *kept = &transfers->of_group[group];
	if (!(transfer_s > 0.0) || !isfinite(transfer_s))
		return;
	if (bytes < bytes_min) {
		add_short(transfers, kept, transfer_s);
		return;
	}
	if (!isnan(transfers->added_s)) {
		add_long(kept, transfer_s + transfers->added_s, bytes);
		return;
	}
	transfers->others += transfers->others < OTHERS_ENOUGH;
	if (transfers->others == OTHERS_ENOUGH && !transfers->has_short)
		transfers->added_s = added_without_s;
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
