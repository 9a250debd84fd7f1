#include "coordinator/client/backoff.h"

#include <sys/random.h>

#include "common/clock.h"

enum {
	FIRST_MS = 1000,
	MAX_MS = 5000,
	DOUBLINGS = 3,
};

int64_t wlb_random_upto(int64_t max)
{
	uint32_t chance = 0;
	(void)!getrandom(&chance, sizeof(chance), GRND_NONBLOCK);
	return chance % (max + 1);
}

void wlb_backoff_note(struct wlb_backoff *backoff, bool failed)
{
	if (!failed) {
		*backoff = (struct wlb_backoff){0};
		return;
	}
	int64_t pause_ms = (int64_t)FIRST_MS << (backoff->failures < DOUBLINGS ? backoff->failures : DOUBLINGS);
	if (pause_ms > MAX_MS)
		pause_ms = MAX_MS;
	/* Thousands of nodes must not send again in the same millisecond. */
	pause_ms = pause_ms / 2 + wlb_random_upto(pause_ms / 2);
	backoff->failures++;
	backoff->until_ms = wlb_clock_ms() + pause_ms;
}
