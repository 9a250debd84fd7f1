/*
 * The sequential test for a lasting shift: which of many ranks, or links, take longer than the others by a share that
 * lasts. Internal.
 *
 * Each step has one value for each entity, the logarithm of what it took over what was predicted. From it are
 * subtracted what all have in common in this step (a low quantile of all, so that up to two thirds may be slow) and
 * what distinguishes its set of peers (a constant that is learnt: a stage of a pipeline with other layers). The rest is
 * noise with a scale that is measured in the run by the median absolute deviation, and with a correlation of
 * successive steps that is measured too, by the scale of means of eight. Page's cumulative sum (Page 1954, Continuous
 * inspection schemes) of the log-likelihood ratio of "slow" against "as usual" then raises an alarm. The mean time
 * between false alarms of such a sum is at least exp(alarm) steps (Lorden 1971, Procedures for reacting to a change in
 * distribution), from which the alarm is set.
 */
#ifndef LIBVERDICT_SHIFT_H
#define LIBVERDICT_SHIFT_H

#include "libverdict/world.h"

struct verdict_shift_limits {
	int common;    /* 1: subtract what all entities have in common in a step */
	double usual;  /* a lasting shift up to this is no fault: GPUs of one type differ */
	double slow;   /* the shift that is looked for, greater ones too */
	double floor;  /* of the noise's scale */
	double alarms; /* false ones that are accepted in a run, over all entities */
	double steps;  /* of a run */
};

struct verdict_shift {
	struct verdict_shift_limits limits;
	int32_t count;
	int32_t sets;
	struct verdict_lists of_set; /* entities of a set of peers */
	int32_t *set_of;
	double alarm;        /* threshold of the sum */
	double noise;        /* scale of one step's value, the standard deviation where it is normal */
	double stretch;      /* of the variance of a mean of successive steps, by their correlation */
	double common;       /* to all entities in the newest step */
	int64_t steps;       /* that were taken */
	double *constant;    /* [sets] */
	int64_t *learnt;     /* [sets] steps that its constant was learnt from */
	double *rest;        /* [count] values of the step, less what was subtracted; NaN: none */
	double *block;       /* [count] sums over the block of steps under way */
	int32_t *length;     /* [count] steps that the mean is of, up to 50 */
	double *mean;        /* [count] since since_step, of the last steps; NaN: none yet */
	double *sum;         /* [count] Page's sum */
	double *back;        /* [count] the same for the way back, of entities that are slow */
	int64_t *since_step; /* [count] the first step of what the sum has summed up */
	int64_t *slow_at;    /* [count] how many steps were taken when the sum reached the threshold */
	unsigned char *slow; /* [count] 1: above the threshold, and not yet back */
	int32_t slow_count;
	double *scratch; /* [count] */
};

/* Returns -1 if out of memory; verdict_shift_free frees it in either case. */
int verdict_shift_init(struct verdict_shift *shift, const struct verdict_shift_limits *limits, int32_t count,
                       const int32_t *set_of, int32_t sets);
void verdict_shift_free(struct verdict_shift *shift);

/* Takes the values of a step, [count], NaN where there is none. Returns 0 where none has a value. */
int verdict_shift_step(struct verdict_shift *shift, const double *values, int64_t step);

/* 1 where an entity is slow, or so likely to be that its values say nothing of what is healthy. */
int verdict_shift_is_suspect(const struct verdict_shift *shift, int32_t entity);

/* 1 where an entity is slow, or is likely to be, given that others of its node are. */
int verdict_shift_is_likely(const struct verdict_shift *shift, int32_t entity);

/* 1 where it may become likely in the next steps. */
int verdict_shift_is_undecided(const struct verdict_shift *shift, int32_t entity);

/* How sure it is that a slow entity is slow: 1 less the probability that any entity of the run has reached its sum by
 * noise. */
double verdict_shift_certainty(const struct verdict_shift *shift, int32_t entity);

#endif
