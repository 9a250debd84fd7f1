/* Makes the plan that the command of a trainer has, so that it can be compared with the best one. */
#ifndef PLANNER_CLI_PLAN_MINE_H
#define PLANNER_CLI_PLAN_MINE_H

#include "planner/cli/plan/input.h"
#include "planner/trainer_words.h"

struct wlb_mine {
	struct wlb_trainer_words words;
	struct wlb_search_fixed fixed; /* all of the layout */
	struct wlb_cost_options cost;  /* the trainer's, with what the command sets */
	int zero_stage;
	int window_given, batch_given; /* by the command or the options of wlb plan; 0: the trainer's default */
};

/* Reads the words of the command, which must outlive *mine. Window, batch and model are those of the command where it
 * has them, also of the best plan: sets them in *request and *input, and the type of gradients. Where the command
 * shards more than ZeRO stage request->zero_stage, so does the best plan. Returns -1 with the value, the rule and the
 * remedy: what wlb_trainer_words_read refuses, what `held` or the options have otherwise, what does not divide. */
int wlb_mine_read(char *const *words, const struct wlb_search_fixed *held, struct wlb_plan_request *request,
                  struct wlb_plan_input *input, struct wlb_mine *mine, struct wlb_error *error);

#endif
