/* Programs, and functions of libraries, that the checks of `wlb doctor` run in a process of their own. */
#ifndef COORDINATOR_WLB_DOCTOR_RUN_PROGRAM_H
#define COORDINATOR_WLB_DOCTOR_RUN_PROGRAM_H

#include <stddef.h>

/* Runs a program for at most 10 s and keeps the beginning of what it prints (both streams). Returns its exit code, or
 * -1 if it could not be run, was killed or took too long. */
int wlb_doctor_run_program(char *const argv[], char *output, size_t size);

/* The same for a function that returns its exit code; a library may end the process that calls it. */
int wlb_doctor_run_apart(int (*function)(void), char *output, size_t size);

#endif
