/*
 * What is done about the faults of a run: the syntax of --wlb-on-fault, of `wlb set RUN on-fault=...` and of on_fault
 * in wlbd.conf.
 *
 * A text is a list of items with commas between them; a later item wins over an earlier one. `report` and `evict` are
 * for all kinds of faults, KIND=report and KIND=evict for one (crash, hang, slow, corrupt, outliers); hang-after=90,
 * 90s or 5m is the time after which a hang is confirmed, and slow-by=10 or 10% how much longer than its peers a slow
 * rank takes. What a text does not name keeps the value that it has.
 *
 * From the weakest to the strongest: the built-in defaults, wlbd.conf, the job's option, `wlb set`. The last two are
 * stored as items KEY=VALUE, so that SQL can merge them by key without knowing the keys. A trigger keeps the items of
 * `wlb set` above those of the job when the job is requeued.
 */
#ifndef COMMON_ON_FAULT_H
#define COMMON_ON_FAULT_H

#include <stddef.h>

#include "libwlb/wlb.h"

enum wlb_fault_action {
	WLB_FAULT_REPORT, /* the fault is reported, and the run continues */
	WLB_FAULT_EVICT,  /* the attempt ends, and the next one excludes the node */
};

struct wlb_on_fault {
	enum wlb_fault_action crash;
	enum wlb_fault_action hang;
	enum wlb_fault_action slow;
	enum wlb_fault_action corrupt;
	enum wlb_fault_action outliers; /* ranks whose stacks differ from most, where nobody else is named */
	double hang_after_s;            /* 2 to 3,600 */
	double slow_by_percent;         /* 1 to 1,000 */
};

enum { WLB_ON_FAULT_SIZE = 256 }; /* of a text, with its NUL */

/* Crashes and hangs evict, slow and corrupt ranks and outliers are reported; a hang is confirmed after 8 s, and a slow
 * rank takes 10 % longer than its peers. */
void wlb_on_fault_init(struct wlb_on_fault *on_fault);

/* Changes what the text names. Returns -1 with the item that is wrong and the rule; *on_fault is unchanged then. */
int wlb_on_fault_parse(const char *text, struct wlb_on_fault *on_fault, struct wlb_error *error);

/* Writes all values as items KEY=VALUE, which wlb_on_fault_parse reads as the same values. WLB_ON_FAULT_SIZE is enough
 * for any. */
void wlb_on_fault_text(const struct wlb_on_fault *on_fault, char *text, size_t size);

/* Writes what `text` names in the same form: items KEY=VALUE, each key once. Returns -1 as wlb_on_fault_parse does. */
int wlb_on_fault_items(const char *text, char *items, size_t size, struct wlb_error *error);

#endif
