/* The words of the command that `wlb run` starts, and of --srun-args. */
#ifndef COORDINATOR_WLB_RUN_COMMAND_COMMAND_WORDS_H
#define COORDINATOR_WLB_RUN_COMMAND_COMMAND_WORDS_H

#include "coordinator/wlb/run/state/state.h"

/* Returns the index of the word `train` after `wlb-worker` in a command, or -1: it is another trainer's. */
int wlb_run_train_word(char *const *words);
/* Returns the value of "--name VALUE" or "--name=VALUE"; NULL where the command has no such option. */
const char *wlb_run_word_value(char *const *words, const char *name);
/* Returns whether the command has that word. */
bool wlb_run_has_word(char *const *words, const char *word);

/* Returns the value that --srun-args has of an option of srun, the last one: "--name=VALUE", "--name VALUE", "-lVALUE"
 * or
 * "-l VALUE"; NULL where it has none. */
const char *wlb_run_srun_value(const struct wlb_run_options *options, char letter, const char *name);

#endif
