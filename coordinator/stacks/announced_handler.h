/*
 * Stacks of Python from a process that has announced a handler which writes them, as Python's faulthandler does. A
 * process announces it by an open memfd named "wlb-stacks-N": the signal N makes its handler append the stacks to that
 * file. docs/trainers.md has the lines of Python.
 *
 * A signal that a process does not expect would end it, and one that it uses otherwise would mislead it. So the signal
 * is sent only where the process has such a file, and the kernel says that it catches the signal and does not block it.
 * The file needs no folder, and is gone with the process; exec closes it, with the handler.
 */
#ifndef COORDINATOR_STACKS_ANNOUNCED_HANDLER_H
#define COORDINATOR_STACKS_ANNOUNCED_HANDLER_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#define WLB_ANNOUNCED_HANDLER_FILE "wlb-stacks-"

/* Returns the stack of the main thread in the form of wlb_py_spy_dump, which the caller releases. NULL where nothing
 * was announced, the process is stopped, or it has written nothing at until_ms of wlb_clock_ms(). */
json_t *wlb_announced_handler_dump(pid_t pid, int64_t until_ms);

/* The same from what the handler has written. */
json_t *wlb_announced_handler_read(const char *text, pid_t pid);

#endif
