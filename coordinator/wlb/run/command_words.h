/* The words of the command that `wlb run` starts. */
#ifndef COORDINATOR_WLB_RUN_COMMAND_WORDS_H
#define COORDINATOR_WLB_RUN_COMMAND_WORDS_H

/* Returns the index of the word `train` after `wlb-worker` in a command, or -1: it is another trainer's. */
int wlb_run_train_word(char *const *words);
/* Returns the value of "--name VALUE" or "--name=VALUE"; NULL where the command has no such option. */
const char *wlb_run_word_value(char *const *words, const char *name);

#endif
