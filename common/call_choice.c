#include "common/call_choice.h"

enum { THIN_MAX = 32 };

/* 2^64 divided by the golden ratio. */
static const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);

static void begin_window(struct wlb_call_choice *choice, double now_s)
{
	choice->began_s = now_s;
	choice->count = 0;
}

int wlb_call_choice_has(struct wlb_call_choice *choice, uint64_t seq, double now_s, double window_s)
{
	if (choice->thin > 0 && seq * golden >> (64 - choice->thin) != 0)
		return 0;
	if (now_s - choice->began_s >= window_s) {
		/* Twice as many are not too many either. */
		if (choice->count < WLB_CALLS_CHOSEN_MAX / 2 && choice->thin > 0)
			choice->thin--;
		begin_window(choice, now_s);
	}
	if (++choice->count > WLB_CALLS_CHOSEN_MAX && choice->thin < THIN_MAX) {
		choice->thin++;
		begin_window(choice, now_s);
	}
	return 1;
}
