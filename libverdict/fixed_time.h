/*
 * The part of the time of computation that does not grow with the work, as far as predicted work leaves it out;
 * internal.
 *
 * An operation takes some time however small it is. Where the prediction of work leaves that out, a rank that has less
 * work than its peers takes longer for each unit of it, in every step, without being slow. Computation of work w is
 * therefore taken to last in proportion to f W + (1 - f) w, where W is the median work of the set of peers in the step,
 * and f, the share of its time that is fixed, is found by least squares from all ranks and steps of the set that are
 * not suspected of being slow. It is between 0 and 1: no rank with less work is expected to take longer than its peers.
 * Where all ranks have about the same work, f is not known and changes nothing.
 */
#ifndef LIBVERDICT_FIXED_TIME_H
#define LIBVERDICT_FIXED_TIME_H

#include "libverdict/detector_state.h"

/* Returns -1 if out of memory; verdict_fixed_time_free frees it in either case. */
int verdict_fixed_time_init(struct verdict_fixed_time *fixed, int32_t ranks, int32_t sets);
void verdict_fixed_time_free(struct verdict_fixed_time *fixed);

/* Learns from a step, and sets values[r], [ranks], to the logarithm of what the computation of a rank took over what it
 * is expected to take; NaN where that is not known. `test` is the test of these values. */
void verdict_fixed_time_step(struct verdict_fixed_time *fixed, const struct verdict_shift *test,
                             const struct verdict_slot *slot, double *values);

#endif
