#include "checks/node/pieces.h"

#include <math.h>

#include "common/seconds.h"
#include "worker/calibrate/stopwatch.h"

enum { SAMPLES_MOST = 4096, BATCH_MOST = 100000 };

/* How long a piece is at least, so that reading the clocks does not count. */
static const double PIECE_S = 1e-3;

/* Of so many pieces one is at least as fast as fast_s. */
enum { FAST = 10 };

/* The part of the time that is not counted. */
static const double WARM_UP = 0.25;

/* Returns how many operations make a piece; below 1 on failure. */
static int warm_up(struct wlb_device *device, wlb_pieces_busy_s *busy_s, void *context, double limit_s,
                   struct wlb_error *error)
{
	double until_s = wlb_now_s() + limit_s, one_s;
	do {
		one_s = busy_s(device, context, 1, error);
		if (one_s < 0.0)
			return -1;
	} while (wlb_now_s() < until_s);
	return one_s * BATCH_MOST > PIECE_S ? (int)ceil(PIECE_S / one_s) : BATCH_MOST;
}

int wlb_pieces_measure(struct wlb_device *device, wlb_pieces_busy_s *busy_s, void *context, double limit_s,
                       struct wlb_pieces *pieces, struct wlb_error *error)
{
	double samples[SAMPLES_MOST];
	int count = 0, batch = warm_up(device, busy_s, context, WARM_UP * limit_s, error);
	if (batch < 1)
		return -1;
	double from_s = wlb_now_s(), until_s = from_s + (1.0 - WARM_UP) * limit_s, now_s;
	*pieces = (struct wlb_pieces){0};
	do {
		double piece_s = busy_s(device, context, batch, error);
		if (piece_s < 0.0)
			return -1;
		/* The newest samples: of many, the first are replaced. */
		samples[count++ % SAMPLES_MOST] = piece_s / batch;
		pieces->busy_s += piece_s;
		now_s = wlb_now_s();
	} while (now_s < until_s);
	pieces->elapsed_s = now_s - from_s;
	int kept = count < SAMPLES_MOST ? count : SAMPLES_MOST;
	wlb_sort(samples, kept);
	pieces->fast_s = samples[kept / FAST];
	pieces->fastest_s = samples[0];
	return pieces->fast_s > 0.0 ? 0 : wlb_fail(error, "the clock of device %s does not advance", device->name);
}
