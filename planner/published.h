/* How far predictions of step times near a question were off: the published steps of share/wlb/published/steps.json,
 * each with what was predicted for it, which `scripts/bench planner` writes. */
#ifndef PLANNER_PUBLISHED_H
#define PLANNER_PUBLISHED_H

#include <stddef.h>

#include "libwlb/wlb.h"

/* What the steps of a list are of. Those of one list tell nothing of the others. */
enum wlb_published_list {
	WLB_PUBLISHED_STEPS,
	WLB_PUBLISHED_FP8_STEPS,    /* products in 8 bits */
	WLB_PUBLISHED_EXPERT_STEPS, /* models with experts, in any number of bits */
	WLB_PUBLISHED_LISTS
};

/* The list of steps like those of a model with such products. */
enum wlb_published_list wlb_published_list_of(const struct wlb_model *model, enum wlb_fp8 fp8);

struct wlb_published_step {
	char machine[64], trainer[32];
	int32_t source; /* its number in the file */
	int sets_constants;
	enum wlb_published_list list;
	double window_tokens, gpus;
	double ratio; /* predicted over published time */
};

/* Starts zeroed; free it in any case. */
struct wlb_published {
	struct wlb_published_step *steps;
	size_t count;
};

/* Reads the file `steps` of the folder that WLB_PUBLISHED names, else of ../share/wlb/published from the program's own
 * folder. Returns -1 with the file, the step and the rule. */
int wlb_published_read(struct wlb_published *published, struct wlb_error *error);
void wlb_published_free(struct wlb_published *published);

/* Parses the text of such a file. */
int wlb_published_parse(const char *text, size_t bytes, struct wlb_published *published, struct wlb_error *error);

struct wlb_published_question {
	const char *machine, *trainer; /* names in their files */
	double window_tokens, gpus;
	enum wlb_published_list list;
	int32_t without; /* the source whose steps do not count; -1: all do */
};

/* What is known of a prediction. */
enum wlb_published_kind {
	WLB_PUBLISHED_UNKNOWN,    /* fewer than four steps, or those of one source alone, are near */
	WLB_PUBLISHED_CALIBRATED, /* those that are near set constants of the model */
	WLB_PUBLISHED_PREDICTED,  /* some of them set none */
};

struct wlb_published_near {
	enum wlb_published_kind kind;
	int32_t steps, sources; /* that are near */
	int any_trainer;        /* 1: some are of other trainers */
	double lower, upper;    /* between which times a prediction 9 of 10 published steps took */
};

/* Finds the steps of the list on the same machine, with a window of half to twice the length,
 * on a 64th to 64 times the GPUs: those of the same trainer, else of any, else with those that set constants; the first
 * of these that are four steps of two sources at least, since one source does not tell how far another is off. Each
 * source has the same weight, since its steps are off by alike shares (a random effect of the source). Nine tenths of
 * the weight are off by no more than the bounds, which are the same factor in both directions: a further source is as
 * likely to be off in one as in the other. */
struct wlb_published_near wlb_published_near(const struct wlb_published *published,
                                             const struct wlb_published_question *question);

#endif
