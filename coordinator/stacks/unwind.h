/*
 * The functions of a thread, from a copy of its stack: elfutils' libdw reads the call frame information and the symbols
 * of the files that the process has mapped. It needs no debug information and looks for none.
 */
#ifndef COORDINATOR_STACKS_UNWIND_H
#define COORDINATOR_STACKS_UNWIND_H

#include <sys/types.h>

#include "coordinator/stacks/capture.h"
#include "coordinator/stacks/frame_names.h"

enum { WLB_FRAMES_MAX = 64 };

/* The files that a process has mapped. */
struct wlb_modules;

/* Returns NULL where they cannot be read. */
struct wlb_modules *wlb_modules_open(pid_t pid);
void wlb_modules_close(struct wlb_modules *modules); /* NULL allowed */

/* Writes the frames, the innermost first, as texts such as "fn+0x12 (libmpi.so.40)", which belong to `names`. Returns
 * their number. */
int wlb_modules_unwind(struct wlb_modules *modules, const struct wlb_capture *capture, struct wlb_frame_names *names,
                       const char *frames[WLB_FRAMES_MAX]);

#endif
