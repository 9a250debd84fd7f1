/* The environment that a process of our user was started with, from /proc. */
#ifndef COMMON_PROCESS_VARIABLE_H
#define COMMON_PROCESS_VARIABLE_H

#include <stddef.h>
#include <sys/types.h>

/* Returns its variables, each with its NUL, which are *length bytes together; the caller frees. NULL where they cannot
 * be read. */
char *wlb_process_environment(pid_t pid, size_t *length);

/* Copies the value of a variable of the environment that the process was started with. Returns 0, or -1 where it has
 * none of that name, it does not fit, or it cannot be read. */
int wlb_process_variable(pid_t pid, const char *name, char *value, size_t size);

#endif
