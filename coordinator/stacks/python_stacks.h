/* The functions of Python that the threads of a process are in, with file and line: by py-spy (py_spy.h), else from a
 * handler that the process has announced (announced_handler.h). */
#ifndef COORDINATOR_STACKS_PYTHON_STACKS_H
#define COORDINATOR_STACKS_PYTHON_STACKS_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the threads, in the form of wlb_py_spy_dump, which the caller releases; NULL: nothing is known. Takes half of
 * the time until then at most, and 1.5 s. */
json_t *wlb_python_stacks_read(pid_t pid, int64_t until_ms);

/* Returns the frames of a thread, at most `max`, which the caller releases: the innermost functions that are not the
 * interpreter's, then those of Python, as "step (train.py:12)". `native` are the texts of frame_names.h; where nothing
 * is known of the thread's Python they are all returned. `python` may be NULL. */
json_t *wlb_python_stacks_frames(const json_t *python, pid_t tid, const char *const *native, int count, int max);

#endif
