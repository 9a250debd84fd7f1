/*
 * Stacks of Python by py-spy, where it is installed beside the interpreter of a process or on the process's own PATH.
 * It reads memory alone (--nonblocking): the process is not stopped, attached to or signalled, and may be in a
 * debugger.
 */
#ifndef COORDINATOR_STACKS_PY_SPY_H
#define COORDINATOR_STACKS_PY_SPY_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns what `py-spy dump --json` prints, which the caller releases: an array of threads, each with "os_thread_id"
 * and "frames". NULL where the process runs no Python or is another user's, py-spy is not installed, or it has not
 * ended at until_ms of wlb_clock_ms(), when it is killed. */
json_t *wlb_py_spy_dump(pid_t pid, int64_t until_ms);

#endif
