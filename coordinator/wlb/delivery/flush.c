/* wlb flush: delivers the records on disk. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/show.h"
#include "coordinator/client/deliver.h"
#include "coordinator/client/refused.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/folder_lock.h"
#include "coordinator/wlb/delivery/pending.h"

enum {
	FOLDERS_MAX = 256,
	ROUND_MS = 60000,       /* for one round over a folder */
	PAUSE_MIN_MS = 500,     /* between tries while the coordinator is unavailable */
	PAUSE_MAX_MS = 5000,    /* everything is stored a few seconds after the coordinator answers again */
	PAUSE_STUCK_MS = 60000, /* the same where the coordinator answers, and nothing is delivered all the same */
	OTHER_MS = 10000,       /* for another flush of the folder: longer than its pause between two rounds */
	IN_USE_MS = 3000,       /* for a spool that another process is delivering */
	IN_USE_WAIT_MS = 30000, /* for a spool whose job is about to end; the end of another job starts another flush */
	UNAVAILABLE_MS = 2000,  /* for a coordinator that was started a moment ago and connects to its database */
	HEALTH_MS = 2000,
};

struct folder {
	char path[PATH_MAX];
	struct wlb_folder_lock lock; /* --wait */
	bool done;
	bool listed;
	int64_t in_use_since_ms; /* 0: no spool is in use */
};

struct flush {
	struct wlb_client_config config;
	struct wlb_option_list dirs; /* as given */
	struct folder *folders;
	int count;
	int timeout_s;
	int wait_s; /* 0: one round */
	int64_t ended_job;
	bool refused;
	bool quiet;
	int64_t began_ms;
	int64_t began_s; /* Unix time */
	struct wlb_deliver_in_use in_use;
	int64_t left;
	bool is_unavailable;
	bool is_blocked;        /* another flush has a folder */
	struct wlb_error error; /* why something is left */
};

static struct wlb_deliver_options deliver_options(struct flush *flush, int timeout_ms)
{
	return (struct wlb_deliver_options){.timeout_ms = timeout_ms,
	                                    .ended_job = flush->ended_job,
	                                    .ended_s = flush->began_s,
	                                    .in_use = &flush->in_use};
}

static void print_notice(const struct flush *flush, const char *dir)
{
	char *notice = flush->quiet ? NULL : wlb_refused_take_notice(dir);
	char *rest;
	for (char *line = notice != NULL ? strtok_r(notice, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		wlb_show_line(stderr, "wlb flush: %s", line);
	free(notice);
}

/* A folder in which something stays is listed, so that a later command removes it. */
static void list_or_remove(const char *dir, bool stays)
{
	if (stays)
		wlb_pending_add(dir);
	else
		wlb_pending_remove(dir);
}

/* ---- one round ------------------------------------------------------------------------------------------------ */

static void print_delivered(const char *dir, const struct wlb_deliver_result *result)
{
	wlb_show_line(stdout, "everything in %s is delivered%s", dir,
	              result->busy > 0 ? " but what a running job still writes" : "");
	if (result->kept > 0)
		printf("%d spool%s may have a writer on another host: removed once nothing was added for %d minutes\n",
		       result->kept, result->kept == 1 ? "" : "s", WLB_SPOOL_IDLE_S / 60);
}

static int flush_once(struct flush *flush, struct folder *folder)
{
	struct wlb_deliver_result result;
	int64_t until_ms = flush->began_ms + flush->timeout_s * INT64_C(1000);
	int64_t in_use_until_ms = wlb_clock_ms() + IN_USE_MS, unavailable_until_ms = wlb_clock_ms() + UNAVAILABLE_MS;
	for (;;) {
		struct wlb_deliver_options options = deliver_options(flush, wlb_clock_left_ms(until_ms));
		if (wlb_deliver_folder(&flush->config, folder->path, &options, &result, &flush->error) != 0)
			return -1;
		bool again = result.left > 0 ? result.unavailable && wlb_clock_left_ms(unavailable_until_ms) > 0 &&
		                                       wlb_clock_left_ms(until_ms) > 0
		                             : result.busy > 0 && wlb_clock_left_ms(in_use_until_ms) > 0;
		if (!again)
			break;
		wlb_clock_sleep_ms(100);
	}
	print_notice(flush, folder->path);
	if (result.foreign > 0 && !flush->quiet)
		wlb_show_line(stderr, "wlb flush: %d file%s left alone in %s: %s", result.foreign,
		              result.foreign == 1 ? " is" : "s are", folder->path, result.foreign_why.message);
	if (result.left > 0)
		return wlb_fail_in(&flush->error, "%lld records are left in %s", (long long)result.left, folder->path);
	if (result.busy == 0 || result.kept > 0)
		list_or_remove(folder->path, result.kept > 0);
	if (!flush->quiet)
		print_delivered(folder->path, &result);
	return 0;
}

/* ---- --wait --------------------------------------------------------------------------------------------------- */

static void finish_folder(struct folder *folder)
{
	wlb_folder_unlock(folder->path, &folder->lock);
	folder->done = true;
}

/* Returns whether the folder is delivered now, and not by another flush. Where it cannot be written the spools would
 * stay.
 */
static bool may_deliver(struct flush *flush, struct folder *folder)
{
	if (folder->lock.fd < 0 && access(folder->path, W_OK) != 0) {
		folder->done = true;
		return false;
	}
	if (folder->lock.fd >= 0 || wlb_folder_lock(folder->path, &folder->lock))
		return true;
	flush->is_blocked = true;
	folder->done = wlb_clock_ms() - flush->began_ms > OTHER_MS;
	return false;
}

/* A flush that only waits for a spool in use ends soon, and gives up the lock: a flush that begins meanwhile must not
 * leave the folder to it. */
static void note_in_use(struct folder *folder, bool is_in_use)
{
	if (is_in_use)
		wlb_folder_unlock(folder->path, &folder->lock);
	if (is_in_use != (folder->in_use_since_ms != 0))
		folder->in_use_since_ms = is_in_use ? wlb_clock_ms() : 0;
}

/* One round over a folder. The folder is done once a round finds nothing to do, so that a flush that waits for the lock
 * may end. */
static void deliver_round(struct flush *flush, struct folder *folder)
{
	struct wlb_deliver_result result;
	struct wlb_deliver_options options = deliver_options(flush, ROUND_MS);
	if (!may_deliver(flush, folder))
		return;
	if (wlb_deliver_folder(&flush->config, folder->path, &options, &result, &flush->error) != 0) {
		finish_folder(folder);
		return;
	}
	flush->is_unavailable = flush->is_unavailable || result.unavailable;
	flush->left += result.left;
	if (result.left > 0 && !folder->listed) {
		wlb_pending_add(folder->path); /* remains listed if this process ends early */
		folder->listed = true;
	}
	note_in_use(folder, result.busy > 0 && result.left == 0);
	bool waited = folder->in_use_since_ms != 0 && wlb_clock_ms() - folder->in_use_since_ms > IN_USE_WAIT_MS;
	bool empty = result.spools == 0 && result.busy == 0;
	bool stays = result.kept > 0 || (result.busy > 0 && flush->ended_job != 0);
	if (empty || (waited && stays))
		list_or_remove(folder->path, stays);
	if (empty || waited)
		finish_folder(folder);
}

static bool all_done(const struct flush *flush)
{
	for (int i = 0; i < flush->count; i++)
		if (!flush->folders[i].done)
			return false;
	return true;
}

/* Whether the flush of another job's end leaves a folder to this one, which then goes on for as long as that would. */
static bool is_asked_to_go_on(struct flush *flush)
{
	bool is_asked = false;
	for (int i = 0; i < flush->count; i++)
		is_asked = wlb_folder_lock_is_asked(&flush->folders[i].lock) || is_asked;
	return is_asked;
}

/* Whether coordinator and database answer: a cheaper check than reading the spools for each attempt. */
static bool is_coordinator_up(struct wlb_connection *connection)
{
	struct wlb_reply reply;
	if (connection == NULL ||
	    wlb_connection_request(connection, "GET", "/healthz", NULL, HEALTH_MS, &reply, NULL) != 0)
		return false;
	free(reply.body);
	return reply.status == 200;
}

static int flush_waiting(struct flush *flush)
{
	int64_t until_ms = flush->began_ms + flush->wait_s * INT64_C(1000);
	int pause_ms = PAUSE_MIN_MS;
	int64_t left_before = 0;
	struct wlb_connection *connection = wlb_connection_new(&flush->config);
	while (!all_done(flush) && wlb_clock_left_ms(until_ms) > 0) {
		if (!flush->is_unavailable || is_coordinator_up(connection)) {
			flush->is_unavailable = flush->is_blocked = false;
			flush->left = 0;
			for (int i = 0; i < flush->count; i++)
				if (!flush->folders[i].done)
					deliver_round(flush, &flush->folders[i]);
		}
		bool waits = flush->is_unavailable || flush->is_blocked;
		/* Such as a spool that cannot be read, or refused records for which there is no space. */
		bool is_stuck = !waits && flush->left > 0 && flush->left >= left_before && left_before > 0;
		left_before = flush->left;
		if (!waits && !is_stuck)
			pause_ms = PAUSE_MIN_MS;
		if (all_done(flush))
			break;
		wlb_clock_sleep_ms(pause_ms);
		if (is_asked_to_go_on(flush))
			until_ms = wlb_clock_ms() + flush->wait_s * INT64_C(1000);
		int most_ms = is_stuck ? PAUSE_STUCK_MS : PAUSE_MAX_MS;
		if (waits || is_stuck)
			pause_ms = 2 * pause_ms < most_ms ? 2 * pause_ms : most_ms;
	}
	wlb_connection_free(connection);
	for (int i = 0; i < flush->count; i++) {
		print_notice(flush, flush->folders[i].path);
		wlb_folder_unlock(flush->folders[i].path, &flush->folders[i].lock);
	}
	return flush->left == 0 ? 0 : wlb_fail_in(&flush->error, "%lld records are left", (long long)flush->left);
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static int add_folder(struct flush *flush, const char *path, struct wlb_error *error)
{
	struct folder *folder = &flush->folders[flush->count];
	*folder = (struct folder){.lock = WLB_FOLDER_UNLOCKED(flush->ended_job != 0)};
	if (realpath(path, folder->path) == NULL || access(folder->path, R_OK | X_OK) != 0)
		return wlb_fail(error, "directory %s: cannot be read", path);
	flush->count++;
	return 0;
}

/* Adds the folders of the user's list; one that does not exist any more is removed from the list. */
static int add_listed(struct flush *flush)
{
	int count;
	char **list = wlb_pending_list(&count);
	for (int i = 0; i < count && flush->count < FOLDERS_MAX; i++)
		if (add_folder(flush, list[i], NULL) != 0 && errno == ENOENT)
			wlb_pending_remove(list[i]);
	wlb_strings_free(list, count);
	return 0;
}

static int find_folders(struct flush *flush, struct wlb_error *error)
{
	const struct wlb_option_list *dirs = &flush->dirs;
	if (dirs->count > FOLDERS_MAX)
		return wlb_fail(error, "%d directories: at most %d can be given", dirs->count, FOLDERS_MAX);
	flush->folders = calloc(FOLDERS_MAX, sizeof(*flush->folders));
	if (flush->folders == NULL)
		return wlb_fail(error, "out of memory for %d directories", FOLDERS_MAX);
	if (dirs->count == 0)
		return add_listed(flush);
	for (int i = 0; i < dirs->count; i++)
		if (add_folder(flush, dirs->texts[i], error) != 0 && flush->wait_s == 0)
			return -1;
	return 0;
}

static int restore_refused(struct flush *flush)
{
	for (int i = 0; flush->refused && i < flush->count; i++)
		if (wlb_deliver_restore(&flush->config, flush->folders[i].path, flush->timeout_s * 1000,
		                        &flush->error) < 0)
			return -1;
	return 0;
}

static int deliver(struct flush *flush)
{
	int rc = 0;
	if (wlb_client_config_load(&flush->config, &flush->error) != 0 || restore_refused(flush) != 0)
		return -1;
	if (flush->wait_s > 0)
		return flush_waiting(flush);
	for (int i = 0; i < flush->count && rc == 0; i++)
		rc = flush_once(flush, &flush->folders[i]);
	return rc;
}

/* spank_wlb.so sets the variable where root starts this process as a user, outside of all jobs. */
static void refuse_tracing(void)
{
	if (getenv("WLB_UNTRACEABLE") != NULL)
		prctl(PR_SET_DUMPABLE, 0);
}

static int flush_folders(void *values, struct wlb_error *error)
{
	struct flush *flush = values;
	refuse_tracing();
	flush->began_ms = wlb_clock_ms();
	flush->began_s = time(NULL);
	int rc = find_folders(flush, &flush->error);
	if (rc == 0 && flush->count == 0 && !flush->quiet)
		puts("no directory is known where records of this cluster wait");
	else if (rc == 0 && flush->count > 0)
		rc = deliver(flush);
	free(flush->folders);
	wlb_deliver_in_use_free(&flush->in_use);
	if (rc != 0 && !flush->quiet)
		*error = flush->error;
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct flush, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(dirs), "DIR...",
                    "a job's directory .wlb or .wlb-UID (default: the directories where records of yours on this "
                    "cluster are known to wait)")},
	{WLB_OPTION(INT, "timeout", FIELD(timeout_s), "SECONDS", "stop after this long"), .min = 1, .max = 86400,
         .initial = "60"},
	{WLB_OPTION(
		 INT, "wait", FIELD(wait_s), "SECONDS",
		 "while the coordinator is unavailable, try again for this long, in pauses of 0.5 to 5 seconds; "
		 "only one such process delivers a directory, and ends when the directory is empty; another ends "
		 "after 10 seconds. One process with --ended-job may deliver the directory beside it: its time begins "
		 "again whenever another process with --ended-job ends and leaves the directory to it"),
         .min = 1, .max = 7 * 86400},
	{WLB_OPTION(INT64, "ended-job", FIELD(ended_job), "JOBID",
                    "this job has ended, as its epilog knows: its spools that nobody has written since are removed as "
                    "soon as they are delivered"),
         .min = 1, .max = UINT32_MAX},
	{WLB_OPTION(FLAG, "refused", FIELD(refused), NULL,
                    "send the records in refused/, which the coordinator refused before, again")},
	{WLB_OPTION(FLAG, "quiet", FIELD(quiet), NULL, "print nothing; the next command prints what was refused")},
};

static const struct wlb_option_table table = {
	.command = "wlb flush",
	.about = "Delivers the records that wait in DIR to the coordinator. Records it has already are ignored there, "
		 "so this may be repeated. Spools that a running job writes are not removed.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_flush = {
	.name = "flush",
	.summary = "Deliver records that wait on disk",
	.options = &table,
	.values_bytes = sizeof(struct flush),
	.run = flush_folders,
};
