/* Makes the machines, models and steps on which simulator and search are tested. */
#ifndef TESTS_UNIT_LIBWLB_SIM_CASES_H
#define TESTS_UNIT_LIBWLB_SIM_CASES_H

#include "libwlb/wlb.h"

/* As libwlb/machines/H100.json. */
struct wlb_machine h100(void);

/* Llama-2-7B and Llama-2-70B. */
struct wlb_model llama_7b(void);
struct wlb_model llama_70b(void);

struct wlb_plan plan_of(int tp, int cp, int pp, int dp, int interleave, int micro_batches);

/* A step of `micro_batches`, each of the same `count` documents of tokens[] tokens; free with free_step. */
struct wlb_step equal_step(int32_t micro_batches, const int64_t *tokens, size_t count);

/* A step of documents of random lengths, none in a few micro-batches. */
struct wlb_step random_step(int32_t micro_batches, int64_t max_tokens, uint64_t *state);
void free_step(struct wlb_step *step);

/* Returns the next number of SplitMix64. */
uint64_t random_bits(uint64_t *state);

/* Simulates; fails the test on an error. */
struct wlb_sim_result simulate(const struct wlb_model *model, const struct wlb_machine *machine,
                               const struct wlb_sim_options *options, const struct wlb_step *step);

/* Returns the sum of the parts of the time. */
double sum_of_parts(const struct wlb_sim_time *time);

#endif
