/*
 * What the traces are made with: one table, with the source of each number.
 *
 * "Published" are the traces that accompany Lin et al. 2025, Understanding Stragglers in Large Model Training Using
 * What-if Analysis (github.com/ByteDance-Seed/StragglerAnalysis, data/trace-AR.parquet and trace-ST.parquet: 64 ranks,
 * 44 steps, and 8 ranks, 32 steps). Of them: seconds of forward and backward computation of each reported rank and
 * step, by their logarithm, less the median of the stage and step. There ranks differ lastingly by 0.0044 and 0.0035
 * (scaled median absolute deviation), without the one rank of AR that was slowed on purpose; a rank's steps differ by
 * 0.0038 and 0.0040, with a correlation of successive steps of 0.07 and 0.10; none of 960 values is more than 5 of
 * these deviations off. Numbers here are that large or larger; the noise of steps is eight times that, and 0.13 of it
 * as published.
 */
#ifndef TESTS_BENCH_VERDICTS_CONSTANTS_H
#define TESTS_BENCH_VERDICTS_CONSTANTS_H

/* Computation of a rank in a step, work for work: standard deviations of the logarithm. */
static const double rank_spread = 0.005;     /* lasting, between ranks; published: 0.0035 to 0.0044 */
static const double step_noise = 0.025;      /* independent from step to step; with the next 0.032, published: 0.004 */
static const double slow_noise = 0.02;       /* correlated from step to step */
static const double slow_correlation = 0.5;  /* of that; of both together 0.2, published: 0.07 to 0.10 */
static const double outlier_chance = 0.0001; /* of a rank in a step: assumed; published: none of 960 */
static const double outlier_mean = 0.15;     /* exponential, the share by which it takes longer: assumed */
static const double work_spread = 0.05;      /* between replicas: assumed; greedy packing, docs/results/balance.md */
static const double prediction_error = 0.01; /* of the work of a replica: assumed */
static const double last_stage = 1.1;        /* the output head: assumed */

/* Where the prediction of work leaves out the fixed time of operations: its share, and the work of a replica that has
 * less than the others in every step: assumed. */
static const double unpredicted_share = 0.7;
static const double little_work = 0.5;

/* Messages: assumed. Their share of a step is that of the reduction of gradients in trace AR, an eighth, or less. */
static const double link_noise = 0.05;
static const double link_outlier_chance = 0.005;
static const double link_outlier_mean = 0.5;
static const double transfer_share = 0.04; /* of a step: each kind of group */

/* Waiting for the loader, share of a step: assumed. */
static const double loader_mean = 0.002;
static const double loader_outlier_chance = 0.00005;
static const double loader_outlier_mean = 0.1;

/* Clocks of nodes: assumed. NTP keeps clocks within milliseconds; quartz drifts by up to 50 parts in a million. */
static const double clock_ahead_s = 5.0;
static const double clock_drift = 50e-6;
static const double clock_set_by_s = 3600.0;
static const double clock_set_within_s = 150.0;

static const double step_s = 2.0; /* assumed */

#endif
