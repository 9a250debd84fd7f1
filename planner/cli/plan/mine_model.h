/* Takes the shape of the model from the command of a trainer. */
#ifndef PLANNER_CLI_PLAN_MINE_MODEL_H
#define PLANNER_CLI_PLAN_MINE_MODEL_H

#include "planner/cli/plan/input.h"
#include "planner/trainer_words.h"

/* Without --model (the 7B class) sets *model to the shape of a command of Megatron-LM, with the defaults of its
 * arguments.py and the vocabulary rounded up as there, and request->model to what it is called; request->seq_length is
 * set. With --model compares what the command has with *model. Returns -1 with the value, the rule and the remedy. */
int wlb_mine_model(const struct wlb_trainer_words *words, struct wlb_plan_request *request, struct wlb_model *model,
                   struct wlb_error *error);

#endif
