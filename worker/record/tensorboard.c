#include "worker/record/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/show.h"
#include "follow/event_write.h"
#include "worker/data/file_thread.h"

enum {
	WAITING_BYTES_MOST = 1 << 20, /* some 1,700 steps */
	LAST_EVENTS_S = 10,
};

struct wlb_tensorboard {
	char path[PATH_MAX];
	int fd;
	struct wlb_event_write event; /* of the training thread */
	struct wlb_file_thread thread;
	pthread_mutex_t lock; /* of the members below; no call on a file is made while it is held */
	pthread_cond_t changed;
	unsigned char *waiting; /* [WAITING_BYTES_MOST] */
	size_t waiting_bytes;
	bool is_ending, has_failed, has_left_out;
};

/* -- the thread that writes -- */

/* Waits for events and takes them. Returns their bytes; 0: there will be no more. */
static size_t take_waiting(struct wlb_tensorboard *tb, unsigned char *events)
{
	pthread_mutex_lock(&tb->lock);
	while (tb->waiting_bytes == 0 && !tb->is_ending)
		pthread_cond_wait(&tb->changed, &tb->lock);
	size_t bytes = tb->waiting_bytes;
	memcpy(events, tb->waiting, bytes);
	tb->waiting_bytes = 0;
	pthread_mutex_unlock(&tb->lock);
	return bytes;
}

/* After a failure nothing more is written: behind a part of an event no reader finds another. */
static void give_up(struct wlb_tensorboard *tb, int why)
{
	wlb_show_line(stderr, "wlb-worker: TensorBoard file %s: it cannot be written: %s: training goes on without it",
	              tb->path, strerror(why));
	pthread_mutex_lock(&tb->lock);
	tb->has_failed = true;
	pthread_mutex_unlock(&tb->lock);
}

static void write_events(void *argument)
{
	struct wlb_tensorboard *tb = argument;
	unsigned char *events = malloc(WAITING_BYTES_MOST);
	size_t bytes;
	if (events == NULL) {
		give_up(tb, ENOMEM);
		return;
	}
	while ((bytes = take_waiting(tb, events)) > 0) {
		if (wlb_write_all(tb->fd, events, bytes) < 0) {
			give_up(tb, errno);
			break;
		}
	}
	free(events);
}

/* -- the training thread -- */

/* Ends the event and leaves it to the thread. */
static void add_event(struct wlb_tensorboard *tb)
{
	size_t bytes;
	const unsigned char *record = wlb_event_end(&tb->event, &bytes);
	pthread_mutex_lock(&tb->lock);
	bool has_room = bytes <= WAITING_BYTES_MOST - tb->waiting_bytes, is_first = !has_room && !tb->has_left_out;
	if (has_room && !tb->has_failed) {
		memcpy(tb->waiting + tb->waiting_bytes, record, bytes);
		tb->waiting_bytes += bytes;
		pthread_cond_signal(&tb->changed);
	}
	tb->has_left_out |= !has_room;
	pthread_mutex_unlock(&tb->lock);
	if (is_first)
		wlb_show_line(stderr,
		              "wlb-worker: TensorBoard file %s: its file system is too slow: steps are left out there",
		              tb->path);
}

static void begin_event(struct wlb_tensorboard *tb, int64_t step)
{
	wlb_event_begin(&tb->event, wlb_clock_unix_s(), step);
}

void wlb_tensorboard_start(struct wlb_tensorboard *tb, int64_t step)
{
	begin_event(tb, step + 1);
	wlb_event_set_start(&tb->event);
	add_event(tb);
}

void wlb_tensorboard_step(struct wlb_tensorboard *tb, const struct wlb_step_facts *f)
{
	char tag[WLB_EVENT_TAG_MOST + 1];
	begin_event(tb, f->step);
	wlb_event_add(&tb->event, "lm loss", f->loss);
	wlb_event_add(&tb->event, "grad-norm", f->grad_norm);
	wlb_event_add(&tb->event, "learning-rate", f->lr);
	wlb_event_add(&tb->event, "iteration-time", f->step_time_s);
	wlb_event_add(&tb->event, "tokens", (double)f->tokens);
	wlb_event_add(&tb->event, "tokens_per_s", wlb_step_tokens_per_s(f));
	wlb_event_add(&tb->event, "imbalance", f->imbalance);
	wlb_event_add(&tb->event, "predicted_imbalance", f->predicted_imbalance);
	if (f->memory_bytes > 0)
		wlb_event_add(&tb->event, "mem-max-allocated-bytes", (double)f->memory_bytes);
	for (int i = 0; i < WLB_STEP_PARTS; i++) {
		snprintf(tag, sizeof(tag), "parts/%s", wlb_step_part_name((enum wlb_step_part)i));
		wlb_event_add(&tb->event, tag, f->time_s[i]);
	}
	add_event(tb);
}

void wlb_tensorboard_evaluation(struct wlb_tensorboard *tb, const struct wlb_evaluation_facts *f)
{
	begin_event(tb, f->step);
	wlb_event_add(&tb->event, "lm loss validation", f->loss);
	add_event(tb);
}

/* -- opening and closing -- */

/* Makes the file: TensorBoard takes files of such names in the order of the names. */
static int make_file(struct wlb_tensorboard *tb, const char *folder, struct wlb_error *error)
{
	char host[HOST_NAME_MAX + 1] = "";
	gethostname(host, sizeof(host) - 1);
	int length = snprintf(tb->path, sizeof(tb->path), "%s/events.out.tfevents.%010lld.%s.%d.0", folder,
	                      (long long)wlb_clock_unix_s(), host, (int)getpid());
	if (length >= (int)sizeof(tb->path)) {
		errno = ENAMETOOLONG;
		return wlb_fail(error, "--tensorboard-dir %.200s: the path is too long", folder);
	}
	wlb_file_report("creating", folder);
	if (wlb_dir_make(folder, 0777, error) < 0) {
		int why = errno;
		wlb_fail_in(error, "--tensorboard-dir");
		errno = why;
		return -1;
	}
	wlb_file_report("opening", tb->path);
	tb->fd = open(tb->path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (tb->fd >= 0)
		return 0;
	int why = errno;
	wlb_fail(error, "--tensorboard-dir %.500s: no file can be made there: %s", folder, strerror(why));
	errno = why;
	return -1;
}

static void release(struct wlb_tensorboard *tb)
{
	int why = errno;
	if (tb->fd >= 0)
		close(tb->fd);
	pthread_cond_destroy(&tb->changed);
	pthread_mutex_destroy(&tb->lock);
	free(tb->waiting);
	free(tb);
	errno = why;
}

struct wlb_tensorboard *wlb_tensorboard_open(const char *folder, struct wlb_error *error)
{
	struct wlb_tensorboard *tb = calloc(1, sizeof(*tb));
	if (tb == NULL || (tb->waiting = malloc(WAITING_BYTES_MOST)) == NULL) {
		free(tb);
		errno = ENOMEM;
		wlb_fail(error, "--tensorboard-dir: out of memory for its events");
		return NULL;
	}
	tb->fd = -1;
	pthread_mutex_init(&tb->lock, NULL);
	pthread_cond_init(&tb->changed, NULL);
	if (make_file(tb, folder, error) < 0 ||
	    wlb_file_thread_start(&tb->thread, "TensorBoard's file", write_events, tb, error) < 0) {
		release(tb);
		return NULL;
	}
	begin_event(tb, 0);
	wlb_event_set_version(&tb->event);
	add_event(tb);
	return tb;
}

void wlb_tensorboard_close(struct wlb_tensorboard *tb)
{
	if (tb == NULL)
		return;
	pthread_mutex_lock(&tb->lock);
	tb->is_ending = true;
	pthread_cond_signal(&tb->changed);
	pthread_mutex_unlock(&tb->lock);
	if (wlb_file_thread_join_within(&tb->thread, LAST_EVENTS_S))
		release(tb);
	else /* the thread keeps what it uses until the process ends */
		wlb_show_line(stderr,
		              "wlb-worker: TensorBoard file %s: not all is written after %d s: check its file system",
		              tb->path, LAST_EVENTS_S);
}
