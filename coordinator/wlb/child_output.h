/* What a program, or a function that a library may not return from, prints in a process of its own. */
#ifndef COORDINATOR_WLB_CHILD_OUTPUT_H
#define COORDINATOR_WLB_CHILD_OUTPUT_H

#include <stddef.h>

/* Runs a program for at most 10 s and keeps the beginning of what it prints (both streams). Returns its exit code, or
 * -1 if it could not be run, was killed or took too long. */
int wlb_output_of_program(char *const argv[], char *output, size_t size);

/* The same for a function that returns its exit code. libslurm ends the process that calls it where it cannot read its
 * configuration. */
int wlb_output_of_function(int (*function)(void), char *output, size_t size);

#endif
