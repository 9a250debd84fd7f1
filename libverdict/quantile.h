/* Order statistics in linear time; internal. */
#ifndef LIBVERDICT_QUANTILE_H
#define LIBVERDICT_QUANTILE_H

#include <stdint.h>

/* Returns the value below which a share of values[0 .. count - 1] lies (0: the least, 0.5: the median), and changes
 * their order. Finite values, count at least 1. Hoare (1961), Algorithm 65: Find. */
double verdict_quantile(double *values, int32_t count, double share);

#endif
