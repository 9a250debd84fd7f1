/* The line of source that an address was compiled from, where the program or library itself has debug information. Of
 * an inlined function it is the line in that function. */
#ifndef COORDINATOR_STACKS_SOURCE_LINE_H
#define COORDINATOR_STACKS_SOURCE_LINE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes "train.c:101". Returns false, with text "", where it is not known, or where the debug information is larger
 * than 64 MiB: reading it would take seconds. */
bool wlb_source_line(Dwfl_Module *module, Dwarf_Addr address, char *text, size_t size);

#endif
