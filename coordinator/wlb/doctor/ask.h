/* Programs that the checks of `wlb doctor` run. */
#ifndef COORDINATOR_WLB_DOCTOR_ASK_H
#define COORDINATOR_WLB_DOCTOR_ASK_H

#include <stddef.h>

/* Runs a program for at most 10 s and keeps the beginning of what it prints (both streams). Returns its exit code, or
 * -1 if it could not be run, was killed or took too long. */
int wlb_doctor_ask(char *const argv[], char *output, size_t size);

#endif
