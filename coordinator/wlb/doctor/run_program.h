/* Programs that the checks of `wlb doctor` run. */
#ifndef COORDINATOR_WLB_DOCTOR_RUN_PROGRAM_H
#define COORDINATOR_WLB_DOCTOR_RUN_PROGRAM_H

#include <stddef.h>

/* Runs a program for at most 10 s and keeps the beginning of what it prints (both streams). Returns its exit code, or
 * -1 if it could not be run, was killed or took too long. */
int wlb_doctor_run_program(char *const argv[], char *output, size_t size);

#endif
