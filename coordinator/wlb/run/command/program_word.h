/* The program that a command runs behind wrappers: `env NAME=VALUE numactl -m 0 PROGRAM`, `apptainer exec IMAGE.sif
 * PROGRAM`. A text for a shell is not read. */
#ifndef COORDINATOR_WLB_RUN_COMMAND_PROGRAM_WORD_H
#define COORDINATOR_WLB_RUN_COMMAND_PROGRAM_WORD_H

/* Returns the index of its word; that of the NULL at the end: there is none. */
int wlb_run_program_word(char *const *words);

/* Returns the word without the folders before the last '/'. */
const char *wlb_run_base_of(const char *word);

#endif
