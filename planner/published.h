/* How far predictions of step times near a question were off: the published steps of share/wlb/published/steps.json,
 * each with what was predicted for it, which `scripts/bench planner` writes. */
#ifndef PLANNER_PUBLISHED_H
#define PLANNER_PUBLISHED_H

#include <stddef.h>

#include "libwlb/wlb.h"

struct wlb_published_step {
	char machine[64], trainer[32];
	int32_t source; /* its number in the file */
	int sets_constants;
	int experts; /* of a model with experts */
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
	int experts;     /* 1: the model has some */
	int32_t without; /* the source whose steps do not count; -1: all do */
};

/* What is known of a prediction. */
enum wlb_published_kind {
	WLB_PUBLISHED_UNKNOWN,    /* fewer steps than a few are near */
	WLB_PUBLISHED_CALIBRATED, /* those that are near set constants of the model */
	WLB_PUBLISHED_PREDICTED,  /* `within` is of steps that set none */
};

struct wlb_published_near {
	enum wlb_published_kind kind;
	int32_t steps, sources; /* that are near */
	int any_trainer;        /* 1: of other trainers too, since too few steps are of this one */
	double within;          /* share of the published time within which 9 of 10 predictions are */
};

/* Finds the steps on the same machine, of models with experts or of others, with a window of half to twice the length,
 * on an eighth to 8 times the GPUs, of the same trainer; where these are too few, of any trainer. `within` is the
 * quantile that a further step of the same kind exceeds once in ten (split conformal prediction, Vovk et al. 2005), of
 * fewer than 9 steps the largest error. */
struct wlb_published_near wlb_published_near(const struct wlb_published *published,
                                             const struct wlb_published_question *question);

#endif
