/* The list of verdicts: what a judgement finds, and what is open. Internal. */
#ifndef LIBVERDICT_VERDICTS_H
#define LIBVERDICT_VERDICTS_H

#include "libverdict/detector_state.h"

/* A verdict without node, ranks and group, found in this judgement; `evidence` is to be written. */
struct wlb_verdict verdict_blank(enum wlb_verdict_kind kind, enum wlb_verdict_stage stage);

/* Adds a rank; those beyond WLB_VERDICT_RANKS are counted only. */
void verdict_add_rank(struct wlb_verdict *verdict, int32_t rank);

/* 1 where a verdict of that kind on that rank alone was open after the last judgement. */
int verdict_is_open(const struct wlb_verdict_detector *detector, enum wlb_verdict_kind kind, int32_t rank);

/* Adds what was found to this judgement, unless it has been found already or there is no space. */
void verdict_add(struct wlb_verdict_detector *detector, const struct wlb_verdict *verdict);

/* Matches what was found with what is open, and writes both and what has ended; see wlb_verdict_judge. */
int32_t verdict_settle(struct wlb_verdict_detector *detector, struct wlb_verdict *verdicts, int32_t most);

/* 1 for verdicts of a run in which nothing moves. */
int verdict_is_standstill(enum wlb_verdict_kind kind);

#endif
