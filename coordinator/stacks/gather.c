#include "coordinator/stacks/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "coordinator/stacks/capture.h"
#include "coordinator/stacks/python_stacks.h"
#include "coordinator/stacks/refusal.h"
#include "coordinator/stacks/thread_state.h"
#include "coordinator/stacks/unwind.h"

enum { ASLEEP_AGAIN_MS = 20 };

/* The mapped files of the process whose thread was looked at last. */
struct reader {
	struct wlb_frame_names *names;
	struct wlb_modules *modules;
	pid_t modules_of; /* 0: none yet */
	json_t *python;   /* of the process that trains; NULL: not known */
	struct wlb_capture capture;
	char note[WLB_REFUSAL_SIZE]; /* why a stack is missing; "": none is */
};

/* They are read before the thread is stopped. */
static void open_modules(struct reader *reader, pid_t pid)
{
	if (reader->modules_of == pid)
		return;
	wlb_modules_close(reader->modules);
	reader->modules = wlb_modules_open(pid);
	reader->modules_of = pid;
}

/* Whether it sleeps where no signal wakes it, and not for a moment only. */
static int is_asleep(struct wlb_thread *thread)
{
	if (thread->state != 'D')
		return 0;
	wlb_clock_sleep_ms(ASLEEP_AGAIN_MS);
	wlb_thread_look(thread);
	return thread->state == 'D';
}

static void note(struct reader *reader, const char *text)
{
	if (reader->note[0] == '\0')
		snprintf(reader->note, sizeof(reader->note), "%s", text);
}

/* Returns the number of frames. */
static int read_frames(struct reader *reader, struct wlb_thread *thread, const char *frames[WLB_FRAMES_MAX])
{
	char refusal[WLB_REFUSAL_SIZE];
	if (thread->state == '?' || thread->state == 'Z' || thread->state == 'X')
		return 0;
	if (is_asleep(thread)) {
		note(reader, "a thread is in uninterruptible sleep (D) in the kernel and cannot be stopped");
		return 0;
	}
	open_modules(reader, thread->pid);
	switch (wlb_capture_thread(thread->pid, thread->tid, &reader->capture)) {
	case WLB_CAPTURE_DONE:
		break;
	case WLB_CAPTURE_REFUSED:
		wlb_refusal_explain(thread->pid, errno, refusal);
		note(reader, refusal);
		return 0;
	case WLB_CAPTURE_ASLEEP:
		wlb_thread_look(thread);
		note(reader, "a thread did not stop within 200 ms");
		return 0;
	default:
		return 0;
	}
	if (reader->modules == NULL) {
		note(reader, "the files that the process has mapped cannot be read");
		return 0;
	}
	return wlb_modules_unwind(reader->modules, &reader->capture, reader->names, frames);
}

static json_t *thread_json(struct reader *reader, struct wlb_thread *thread)
{
	const char *frames[WLB_FRAMES_MAX];
	char state[2] = "";
	wlb_thread_look(thread);
	int count = read_frames(reader, thread, frames);
	json_t *list = wlb_python_stacks_frames(reader->python, thread->tid, frames, count, WLB_FRAMES_MAX);
	state[0] = thread->state;
	return json_pack("{s:i, s:i, s:s, s:s, s:s, s:o}", "pid", (int)thread->pid, "tid", (int)thread->tid, "name",
	                 thread->name, "state", state, "waits_in", thread->waits_in, "frames", list);
}

static json_t *gather_threads(struct reader *reader, struct wlb_thread *threads, int count, int64_t until_ms,
                              int *omitted)
{
	json_t *list = json_array();
	for (int i = 0; i < count; i++) {
		if (wlb_clock_left_ms(until_ms) == 0) {
			*omitted += count - i;
			note(reader, "the time for gathering was over");
			break;
		}
		json_array_append_new(list, thread_json(reader, &threads[i]));
		wlb_capture_release_late();
	}
	return list;
}

json_t *wlb_stacks_gather(const struct wlb_process_list *all, pid_t pid, struct wlb_frame_names *names,
                          int64_t until_ms)
{
	pid_t pids[WLB_STACKS_PROCESSES_MAX];
	struct wlb_thread threads[WLB_THREADS_MAX], first = {.pid = pid, .tid = pid};
	int omitted = 0;
	struct reader *reader = calloc(1, sizeof(*reader));
	if (reader == NULL)
		return NULL;
	reader->names = names;
	int count = wlb_process_list_of_rank(all, pid, pids);
	reader->python = count > 0 ? wlb_python_stacks_read(pids[0], until_ms) : NULL;
	int listed = wlb_threads_list(pids, count, threads, &omitted);
	wlb_thread_look(&first);
	json_t *list = gather_threads(reader, threads, listed, until_ms, &omitted);
	json_t *rank = json_pack("{s:i, s:s%, s:s, s:o, s:i}", "pid", (int)pid, "state", &first.state, (size_t)1,
	                         "note", reader->note, "threads", list, "left_out", omitted);
	wlb_modules_close(reader->modules);
	json_decref(reader->python);
	free(reader);
	return rank;
}
