/* Seeded random numbers: uniform, normal, exponential. */
#ifndef TESTS_BENCH_VERDICTS_CHANCE_H
#define TESTS_BENCH_VERDICTS_CHANCE_H

#include <stdint.h>

struct chance {
	uint64_t state;
};

/* Equal seeds and numbers give equal sequences. */
struct chance chance_of(uint64_t seed, uint64_t number);

double chance_uniform(struct chance *chance); /* 0 to 1, without 1 */
double chance_between(struct chance *chance, double low, double high);
int32_t chance_below(struct chance *chance, int32_t below); /* 0 to below - 1 */
double chance_normal(struct chance *chance);                /* mean 0, standard deviation 1 */

#endif
