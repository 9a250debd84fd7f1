/* Prints the messages of `wlb run` to its user. */
#ifndef COORDINATOR_WLB_RUN_STATE_PRINT_H
#define COORDINATOR_WLB_RUN_STATE_PRINT_H

/* Prints "wlb: ..." as one line on stderr. */
void wlb_run_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
