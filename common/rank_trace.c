#include "common/rank_trace.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/call_choice.h"
#include "common/shared_words.h"

enum {
	WORDS = 7,
	AWAITED_EVENTS = 64, /* so many events after one that is not whole, that one is lost */
};

struct slot {
	_Atomic uint64_t version;
	_Atomic uint64_t words[WORDS];
};

struct group {
	char name[WLB_TRACE_NAME_SIZE]; /* written before `ranks` */
	_Atomic int32_t ranks;          /* 0: the number is free */
	_Atomic uint64_t entered, left;
	struct wlb_call_choice choice; /* of the thread whose calls block it */
};

/* Shared by programs of one release: its size is part of the memory's header (coordinator/client/node_page.h). */
struct wlb_rank_trace {
	_Atomic int32_t rank;  /* 1 more; 0: not taken */
	_Atomic int32_t count; /* one more than the greatest number of a group so far */
	/* Versions count the changes. */
	struct slot step;        /* the one in progress and its work */
	struct slot activity;    /* the activity and since when */
	struct slot blocked;     /* the newest call that blocked the rank: it does while left_s is 0 */
	struct slot device_wait; /* the same of the newest call that waited for the device */
	struct slot corruption;  /* what the newest check that suspects the rank has found */
	double choice_window_s;  /* 0: a second */
	struct group groups[WLB_TRACE_GROUPS];
	/* Number n is in slot n % their count, its version is n + 1. */
	_Atomic uint64_t next, next_chosen; /* the numbers of the next event and of the next that is chosen */
	struct slot events[WLB_TRACE_EVENTS];
	struct slot chosen[WLB_TRACE_CHOSEN];
	struct wlb_step_ring steps;
};

const char *wlb_comm_kind_name(enum wlb_comm_kind kind)
{
	static const char *const names[WLB_COMM_KINDS] = {
		[WLB_COMM_ALL_REDUCE] = "all_reduce",
		[WLB_COMM_ALL_REDUCE_DOUBLE] = "all_reduce_double",
		[WLB_COMM_REDUCE_SCATTER] = "reduce_scatter",
		[WLB_COMM_ALL_GATHER] = "all_gather",
		[WLB_COMM_SEND] = "send",
		[WLB_COMM_RECV] = "recv",
	};
	return names[kind];
}

const char *wlb_activity_name(enum wlb_activity activity)
{
	static const char *const names[WLB_ACTIVITIES] = {
		[WLB_ACTIVITY_STARTING] = "starting",     [WLB_ACTIVITY_LOADING] = "loading",
		[WLB_ACTIVITY_COMPUTING] = "computing",   [WLB_ACTIVITY_SAVING] = "saving",
		[WLB_ACTIVITY_EVALUATING] = "evaluating", [WLB_ACTIVITY_ENDING] = "ending",
	};
	return names[activity];
}

size_t wlb_rank_trace_bytes(void)
{
	return sizeof(struct wlb_rank_trace);
}

static int group_count(const struct wlb_rank_trace *trace)
{
	int count = atomic_load_explicit(&trace->count, memory_order_acquire);
	return count < 0 ? 0 : count > WLB_TRACE_GROUPS ? WLB_TRACE_GROUPS : count;
}

/* ---- a slot ----------------------------------------------------------------------------------------------------- */

static void write_slot(struct slot *slot, const uint64_t *words, int count, uint64_t version)
{
	wlb_shared_words_write(&slot->version, slot->words, words, count, version);
}

/* Of a slot that one thread writes. */
static void change_slot(struct slot *slot, const uint64_t *words, int count)
{
	write_slot(slot, words, count, atomic_load_explicit(&slot->version, memory_order_relaxed) + 1);
}

static uint64_t read_slot(const struct slot *slot, uint64_t *words, int count)
{
	return wlb_shared_words_read(&slot->version, slot->words, words, count);
}

struct event_words {
	uint64_t values[WORDS];
};

static struct event_words words_of(const struct wlb_trace_event *event)
{
	return (struct event_words){{(uint64_t)event->kind, (uint64_t)event->group, event->seq, event->bytes,
	                             wlb_word_of(event->entered_s), wlb_word_of(event->blocked_s),
	                             wlb_word_of(event->left_s)}};
}

/* Returns the version of the event, 0 where there is none that a rank can have. */
static uint64_t read_event(const struct wlb_rank_trace *trace, const struct slot *slot, struct wlb_trace_event *event)
{
	struct event_words words;
	uint64_t version = read_slot(slot, words.values, WORDS);
	if (version == 0 || words.values[0] >= WLB_COMM_KINDS || words.values[1] >= (uint64_t)group_count(trace))
		return 0;
	*event = (struct wlb_trace_event){
		.kind = (enum wlb_comm_kind)words.values[0],
		.group = (int)words.values[1],
		.seq = words.values[2],
		.bytes = words.values[3],
		.entered_s = wlb_value_of(words.values[4]),
		.blocked_s = wlb_value_of(words.values[5]),
		.left_s = wlb_value_of(words.values[6]),
	};
	return version;
}

/* ---- the rank --------------------------------------------------------------------------------------------------- */

int wlb_rank_trace_take(struct wlb_rank_trace *trace, int rank)
{
	int32_t none = 0;
	return atomic_compare_exchange_strong(&trace->rank, &none, rank + 1) ? 0 : -1;
}

void wlb_rank_trace_clear(struct wlb_rank_trace *trace)
{
	size_t kept = offsetof(struct wlb_rank_trace, count);
	memset((char *)trace + kept, 0, sizeof(*trace) - kept);
}

int wlb_rank_trace_add_group(struct wlb_rank_trace *trace, const char *name, int ranks)
{
	int number = 0, last = WLB_TRACE_GROUPS - 1;
	while (number < last && atomic_load_explicit(&trace->groups[number].ranks, memory_order_relaxed) != 0)
		number++;
	struct group *group = &trace->groups[number];
	snprintf(group->name, sizeof(group->name), "%s", number < last ? name : "others");
	group->choice = (struct wlb_call_choice){0};
	atomic_store_explicit(&group->left, 0, memory_order_relaxed);
	atomic_store_explicit(&group->entered, 0, memory_order_relaxed);
	atomic_store_explicit(&group->ranks, ranks, memory_order_release);
	if (number >= group_count(trace))
		atomic_store_explicit(&trace->count, number + 1, memory_order_release);
	return number;
}

void wlb_rank_trace_remove_group(struct wlb_rank_trace *trace, int group)
{
	if (group < WLB_TRACE_GROUPS - 1)
		atomic_store_explicit(&trace->groups[group].ranks, 0, memory_order_relaxed);
}

void wlb_rank_trace_set_activity(struct wlb_rank_trace *trace, enum wlb_activity activity, double since_s)
{
	change_slot(&trace->activity, (uint64_t[]){(uint64_t)activity, wlb_word_of(since_s)}, 2);
}

void wlb_rank_trace_set_step(struct wlb_rank_trace *trace, int64_t step, double work)
{
	change_slot(&trace->step, (uint64_t[]){(uint64_t)step, wlb_word_of(work)}, 2);
}

void wlb_rank_trace_set_corruption(struct wlb_rank_trace *trace, const struct wlb_trace_corruption *c)
{
	change_slot(&trace->corruption,
	            (uint64_t[]){(uint64_t)c->step, (uint64_t)c->suspects, (uint64_t)c->first, (uint64_t)c->other}, 4);
}

void wlb_rank_trace_add_step(struct wlb_rank_trace *trace, const struct wlb_trace_step *step)
{
	wlb_step_ring_add(&trace->steps, step);
}

/* The calls of a communicator end in order, but the threads that see it may be late. */
static void raise_to(_Atomic uint64_t *number, uint64_t seq)
{
	uint64_t now = atomic_load_explicit(number, memory_order_relaxed);
	while (now < seq &&
	       !atomic_compare_exchange_weak_explicit(number, &now, seq, memory_order_release, memory_order_relaxed))
		;
}

void wlb_rank_trace_enter(struct wlb_rank_trace *trace, const struct wlb_trace_event *event)
{
	struct event_words words = words_of(event);
	raise_to(&trace->groups[event->group].entered, event->seq);
	change_slot(&trace->blocked, words.values, WORDS);
}

/* Adds the event to a ring of so many slots. Where another thread was stopped while it wrote the slot, and others have
 * filled the ring meanwhile, the event is lost: two threads that wrote the slot at once would mix their events. */
static void add_event(struct slot *slots, uint64_t count, _Atomic uint64_t *next, const struct wlb_trace_event *event)
{
	struct event_words words = words_of(event);
	uint64_t number = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
	struct slot *slot = &slots[number % count];
	if (wlb_shared_words_claim(&slot->version, number + 1))
		write_slot(slot, words.values, WORDS, number + 1);
}

void wlb_rank_trace_leave(struct wlb_rank_trace *trace, const struct wlb_trace_event *event)
{
	struct event_words words = words_of(event);
	double window_s = trace->choice_window_s > 0.0 ? trace->choice_window_s : 1.0;
	wlb_rank_trace_ended(trace, event);
	if (wlb_call_choice_has(&trace->groups[event->group].choice, event->seq, event->left_s, window_s))
		add_event(trace->chosen, WLB_TRACE_CHOSEN, &trace->next_chosen, event);
	change_slot(&trace->blocked, words.values, WORDS);
}

void wlb_rank_trace_set_choice(struct wlb_rank_trace *trace, double window_s)
{
	trace->choice_window_s = window_s;
}

void wlb_rank_trace_wait_device(struct wlb_rank_trace *trace, const struct wlb_trace_event *event)
{
	static const struct wlb_trace_event none = {.left_s = 1.0};
	struct event_words words = words_of(event != NULL ? event : &none);
	change_slot(&trace->device_wait, words.values, WORDS);
}

void wlb_rank_trace_started(struct wlb_rank_trace *trace, int group, uint64_t seq)
{
	raise_to(&trace->groups[group].entered, seq);
}

void wlb_rank_trace_ended(struct wlb_rank_trace *trace, const struct wlb_trace_event *event)
{
	add_event(trace->events, WLB_TRACE_EVENTS, &trace->next, event);
	raise_to(&trace->groups[event->group].left, event->seq);
}

/* ---- readers ---------------------------------------------------------------------------------------------------- */

int wlb_rank_trace_rank(const struct wlb_rank_trace *trace)
{
	int32_t rank = atomic_load_explicit(&trace->rank, memory_order_acquire);
	return rank > 0 ? rank - 1 : -1;
}

int64_t wlb_rank_trace_step(const struct wlb_rank_trace *trace, double *work)
{
	uint64_t words[2];
	*work = 0.0;
	if (read_slot(&trace->step, words, 2) == 0 || words[0] > INT64_MAX)
		return 0;
	*work = wlb_value_of(words[1]);
	return (int64_t)words[0];
}

enum wlb_activity wlb_rank_trace_activity(const struct wlb_rank_trace *trace, double *since_s)
{
	uint64_t words[2];
	*since_s = 0.0;
	if (read_slot(&trace->activity, words, 2) == 0 || words[0] >= WLB_ACTIVITIES)
		return WLB_ACTIVITY_STARTING;
	*since_s = wlb_value_of(words[1]);
	return (enum wlb_activity)words[0];
}

int wlb_rank_trace_corruption(const struct wlb_rank_trace *trace, struct wlb_trace_corruption *corruption)
{
	uint64_t words[4];
	if (read_slot(&trace->corruption, words, 4) == 0 || words[0] > INT64_MAX || words[1] == 0 ||
	    words[1] > INT32_MAX || words[2] > INT32_MAX || words[3] > INT32_MAX)
		return 0;
	*corruption = (struct wlb_trace_corruption){(int64_t)words[0], (int)words[1], (int)words[2], (int)words[3]};
	return 1;
}

int wlb_rank_trace_groups(const struct wlb_rank_trace *trace, struct wlb_trace_group groups[WLB_TRACE_GROUPS])
{
	int count = group_count(trace);
	for (int i = 0; i < count; i++) {
		const struct group *from = &trace->groups[i];
		/* `left` first: a call that ends meanwhile has entered. */
		uint64_t left = atomic_load_explicit(&from->left, memory_order_acquire);
		uint64_t entered = atomic_load_explicit(&from->entered, memory_order_acquire);
		groups[i] = (struct wlb_trace_group){
			.ranks = atomic_load_explicit(&from->ranks, memory_order_acquire),
			.entered = entered,
			.left = left < entered ? left : entered,
		};
		memcpy(groups[i].name, from->name, sizeof(groups[i].name) - 1);
	}
	return count;
}

int wlb_rank_trace_blocked(const struct wlb_rank_trace *trace, struct wlb_trace_event *event)
{
	if (read_event(trace, &trace->blocked, event) > 0 && event->left_s == 0.0)
		return 1;
	return read_event(trace, &trace->device_wait, event) > 0 && event->left_s == 0.0;
}

/* Copies events of a ring whose next number is `end`. */
static size_t read_events(const struct wlb_rank_trace *trace, const struct slot *slots, uint64_t slot_count,
                          uint64_t end, uint64_t *next, struct wlb_trace_event *events, size_t max)
{
	uint64_t oldest = end > slot_count ? end - slot_count : 0;
	size_t count = 0;
	if (*next < oldest)
		*next = oldest;
	while (count < max && *next < end) {
		uint64_t version = read_event(trace, &slots[*next % slot_count], &events[count]);
		if (version < *next + 1 && end - *next <= AWAITED_EVENTS)
			break; /* it is being written */
		count += version == *next + 1;
		(*next)++; /* also where the ring has gone on over it */
	}
	return count;
}

size_t wlb_rank_trace_read(const struct wlb_rank_trace *trace, uint64_t *next, struct wlb_trace_event *events,
                           size_t max)
{
	uint64_t end = atomic_load_explicit(&trace->next, memory_order_acquire);
	return read_events(trace, trace->events, WLB_TRACE_EVENTS, end, next, events, max);
}

size_t wlb_rank_trace_read_chosen(const struct wlb_rank_trace *trace, uint64_t *next, struct wlb_trace_event *events,
                                  size_t max)
{
	uint64_t end = atomic_load_explicit(&trace->next_chosen, memory_order_acquire);
	if (*next > end)
		*next = 0;
	return read_events(trace, trace->chosen, WLB_TRACE_CHOSEN, end, next, events, max);
}

size_t wlb_rank_trace_read_steps(const struct wlb_rank_trace *trace, uint64_t *next, struct wlb_trace_step *steps,
                                 size_t max)
{
	return wlb_step_ring_read(&trace->steps, next, steps, max);
}
