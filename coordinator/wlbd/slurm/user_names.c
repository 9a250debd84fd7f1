#include "coordinator/wlbd/slurm/user_names.h"

#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "libwlb/wlb.h"

enum {
	ENTRIES_MAX = 256,
	NAME_SIZE = 256,
	WAIT_MAX_MS = 500,
	FRESH_MS = 60000,
	RECORD_BYTES = 16 << 10, /* of an account's entry in the directory */
};

struct entry {
	uid_t uid;
	bool is_asked; /* it is to be looked up, or is being looked up */
	bool is_known;
	int64_t asked_ms;
	int64_t found_ms;
	char name[NAME_SIZE];
};

struct wlbd_user_names {
	pthread_mutex_t lock;
	pthread_cond_t asked; /* for the thread */
	pthread_cond_t found; /* for those that wait */
	pthread_t thread;
	bool stopping;
	bool is_abandoned;     /* the thread frees this */
	int64_t busy_since_ms; /* of the look-up under way; 0: there is none */
	int count;
	struct entry entries[ENTRIES_MAX];
};

static void free_names(struct wlbd_user_names *names)
{
	pthread_cond_destroy(&names->asked);
	pthread_cond_destroy(&names->found);
	pthread_mutex_destroy(&names->lock);
	free(names);
}

static void write_number(uid_t uid, char *name, size_t size)
{
	snprintf(name, size, "%u", uid);
}

static struct entry *find(struct wlbd_user_names *names, uid_t uid)
{
	for (int i = 0; i < names->count; i++)
		if (names->entries[i].uid == uid)
			return &names->entries[i];
	return NULL;
}

/* ---- the thread ------------------------------------------------------------------------------------------ */

static void look_up(uid_t uid, char name[NAME_SIZE])
{
	struct passwd entry;
	struct passwd *found = NULL;
	char text[RECORD_BYTES];
	if (getpwuid_r(uid, &entry, text, sizeof(text), &found) == 0 && found != NULL)
		wlb_text_store(name, NAME_SIZE, entry.pw_name);
	else
		write_number(uid, name, NAME_SIZE);
}

static struct entry *longest_asked(struct wlbd_user_names *names)
{
	struct entry *longest = NULL;
	for (int i = 0; i < names->count; i++) {
		struct entry *entry = &names->entries[i];
		if (entry->is_asked && (longest == NULL || entry->asked_ms < longest->asked_ms))
			longest = entry;
	}
	return longest;
}

/* Called with the lock, which is released meanwhile. An entry that is asked for stays in its place. */
static void answer(struct wlbd_user_names *names, struct entry *entry)
{
	char name[NAME_SIZE];
	uid_t uid = entry->uid;
	names->busy_since_ms = wlb_clock_ms();
	pthread_mutex_unlock(&names->lock);
	look_up(uid, name);
	pthread_mutex_lock(&names->lock);
	names->busy_since_ms = 0;
	memcpy(entry->name, name, sizeof(entry->name));
	entry->is_known = true;
	entry->is_asked = false;
	entry->found_ms = wlb_clock_ms();
	pthread_cond_broadcast(&names->found);
}

static void *thread_main(void *context)
{
	struct wlbd_user_names *names = context;
	pthread_mutex_lock(&names->lock);
	while (!names->stopping) {
		struct entry *entry = longest_asked(names);
		if (entry != NULL)
			answer(names, entry);
		else
			pthread_cond_wait(&names->asked, &names->lock);
	}
	bool is_abandoned = names->is_abandoned;
	pthread_mutex_unlock(&names->lock);
	if (is_abandoned)
		free_names(names);
	return NULL;
}

/* The thread starts with all signals blocked: the event loop handles signals. */
static int start_thread(struct wlbd_user_names *names)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&names->thread, NULL, thread_main, names);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* ---- public ---------------------------------------------------------------------------------------------- */

struct wlbd_user_names *wlbd_user_names_new(struct wlb_error *error)
{
	struct wlbd_user_names *names = calloc(1, sizeof(*names));
	pthread_condattr_t monotonic;
	if (names == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&names->lock, NULL);
	pthread_cond_init(&names->asked, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&names->found, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int rc = start_thread(names);
	if (rc != 0) {
		wlb_fail(error, "threads cannot be started: %s", strerror(rc));
		free_names(names);
		return NULL;
	}
	return names;
}

void wlbd_user_names_free(struct wlbd_user_names *names)
{
	if (names == NULL)
		return;
	pthread_t thread = names->thread;
	pthread_mutex_lock(&names->lock);
	names->stopping = true;
	names->is_abandoned = names->busy_since_ms != 0;
	bool is_abandoned = names->is_abandoned;
	pthread_cond_signal(&names->asked);
	pthread_mutex_unlock(&names->lock);
	if (is_abandoned) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	free_names(names);
}

/* Returns a place for the account; NULL where all names are being looked up. */
static struct entry *add(struct wlbd_user_names *names, uid_t uid)
{
	struct entry *oldest = names->count < ENTRIES_MAX ? &names->entries[names->count] : NULL;
	for (int i = 0; names->count == ENTRIES_MAX && i < ENTRIES_MAX; i++) {
		struct entry *entry = &names->entries[i];
		if (!entry->is_asked && (oldest == NULL || entry->found_ms < oldest->found_ms))
			oldest = entry;
	}
	names->count += names->count < ENTRIES_MAX;
	if (oldest != NULL)
		*oldest = (struct entry){.uid = uid};
	return oldest;
}

static void ask(struct wlbd_user_names *names, struct entry *entry)
{
	int64_t now_ms = wlb_clock_ms();
	if (entry->is_asked || (entry->is_known && now_ms - entry->found_ms < FRESH_MS))
		return;
	entry->is_asked = true;
	entry->asked_ms = now_ms;
	pthread_cond_signal(&names->asked);
}

/* Returns until when the name is worth waiting for, as a time of the monotonic clock. */
static int64_t wait_until_ms(const struct wlbd_user_names *names, const struct entry *entry)
{
	int64_t since_ms = entry->asked_ms;
	if (names->busy_since_ms != 0 && names->busy_since_ms < since_ms)
		since_ms = names->busy_since_ms;
	return since_ms + WAIT_MAX_MS;
}

void wlbd_user_name(struct wlbd_user_names *names, uid_t uid, char *name, size_t size)
{
	write_number(uid, name, size);
	pthread_mutex_lock(&names->lock);
	struct entry *entry = find(names, uid);
	if (entry == NULL)
		entry = add(names, uid);
	if (entry != NULL)
		ask(names, entry);
	/* Once it is known, another account may take its place. */
	while ((entry = find(names, uid)) != NULL && !entry->is_known) {
		int64_t until_ms = wait_until_ms(names, entry);
		struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
		if (wlb_clock_ms() >= until_ms)
			break;
		pthread_cond_timedwait(&names->found, &names->lock, &until);
	}
	if (entry != NULL && entry->is_known)
		snprintf(name, size, "%s", entry->name);
	pthread_mutex_unlock(&names->lock);
}
