/*
 * Names of C++ as a person writes them: "c10d::Work::wait" of "_ZN4c10d4Work4waitE...". They are without arguments, of
 * functions and of templates, which are often thousands of bytes.
 *
 * The rules are those of libstdc++, which is loaded when the first such name is met: a process that runs C++ has it. It
 * is no dependency: where it is missing, names stay as they are. elfutils has no demangler of its own, and linking
 * libstdc++ would make a program in C need it everywhere.
 */
#ifndef COORDINATOR_STACKS_DEMANGLE_H
#define COORDINATOR_STACKS_DEMANGLE_H

#include <stddef.h>

/* Writes the name, shortened where it does not fit; any other name than one of C++ as it is. */
void wlb_demangle(const char *name, char *text, size_t size);

#endif
