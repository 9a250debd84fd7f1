/* The packers that people would use instead, over the same documents. */
#ifndef TESTS_BENCH_PACK_OTHERS_H
#define TESTS_BENCH_PACK_OTHERS_H

#include "tests/bench/pack/corpus.h"

/* Prints their table: a row for each packer and number of micro-batches. Ends the program if out of memory. */
void others_print(const struct workload *workload);

#endif
