#include "coordinator/client/deliver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "common/clock.h"
#include "coordinator/client/refused.h"
#include "coordinator/client/reply.h"

enum {
	BATCH_RECORDS = 1000,
	BATCH_REQUESTS = 64, /* to find the refused records of a batch */
	REQUEST_MS = 5000,
	ENTRIES_MAX = 20000, /* of a folder, with the name of a spool, that are looked at */
	SPOOLS_MAX = 4096,
	SCAN_MS = 1000, /* for the names of a folder, which may be many; the file system may be slow */
};

/* ---- one batch ------------------------------------------------------------------------------------------------ */

/* acked_seq of a reply; -1 if it has none. */
static int64_t reply_acked(const struct wlb_reply *reply)
{
	json_int_t acked = -1;
	json_t *root = json_loadb(reply->body, reply->length, 0, NULL);
	json_unpack(root, "{s:I}", "acked_seq", &acked);
	json_decref(root);
	return acked;
}

enum outcome { OUTCOME_STORED, OUTCOME_UNAVAILABLE, OUTCOME_REFUSED_RECORD, OUTCOME_REFUSED_ALL, OUTCOME_FAILED };

/* 400, 413 and 422 concern the records, 403, 404, 409 and 410 the run and the attempt. Any other status may be
 * temporary, as may 401, which concerns a credential. */
static enum outcome outcome_of_status(int status)
{
	switch (status) {
	case 400:
	case 413:
	case 422:
		return OUTCOME_REFUSED_RECORD;
	case 403:
	case 404:
	case 409:
	case 410:
		return OUTCOME_REFUSED_ALL;
	default:
		return OUTCOME_UNAVAILABLE;
	}
}

static enum outcome accept_reply(struct wlb_spool *spool, const struct wlb_reply *reply, struct wlb_error *error)
{
	int64_t before = wlb_spool_acked(spool);
	int64_t acked = reply->status == 200 || reply->status == 409 ? reply_acked(reply) : -1;
	/* A reply without a message of wlbd is from another program on that port, and is not a refusal. */
	bool has_message = wlb_reply_failure(reply, error);
	if (acked < 0)
		return has_message ? outcome_of_status(reply->status) : OUTCOME_UNAVAILABLE;
	if (wlb_spool_acknowledge(spool, acked, error) != 0)
		return OUTCOME_FAILED;
	return wlb_spool_acked(spool) != before || wlb_spool_pending(spool) == 0 ? OUTCOME_STORED : OUTCOME_REFUSED_ALL;
}

static void leave_notice(const struct wlb_spool *spool, long long records, const char *why)
{
	char line[1000];
	wlb_text_format(line, sizeof(line),
	                "%lld record%s of %s refused and moved into refused/ beside it ('wlb flush --refused' tries "
	                "again): %.*s",
	                records, records == 1 ? "" : "s", wlb_spool_path(spool), (int)wlb_text_cut(why, 400), why);
	wlb_refused_leave_notice(wlb_spool_path(spool), line);
}

/* Sends one request of at most `records`. */
static enum outcome send_batch(struct wlb_connection *connection, struct wlb_spool *spool, int records, int timeout_ms,
                               struct wlb_error *error)
{
	char path[128];
	struct wlb_reply reply;
	snprintf(path, sizeof(path), "/v1/runs/%s/records", wlb_spool_identity(spool)->run_id);
	char *body = wlb_spool_batch(spool, records, error);
	if (body == NULL)
		return OUTCOME_FAILED; /* out of memory, or a disk error */
	int rc = wlb_connection_request(connection, "POST", path, body, timeout_ms, &reply, error);
	free(body);
	if (rc != 0)
		return OUTCOME_UNAVAILABLE;
	enum outcome outcome = accept_reply(spool, &reply, error);
	free(reply.body);
	return outcome;
}

enum wlb_delivery wlb_deliver_batch(struct wlb_connection *connection, struct wlb_spool *spool, int timeout_ms,
                                    struct wlb_error *caller_error)
{
	struct wlb_error unseen, *error = caller_error != NULL ? caller_error : &unseen;
	int64_t deadline_ms = wlb_clock_ms() + timeout_ms;
	int records = BATCH_RECORDS;
	for (int i = 0; i < BATCH_REQUESTS; i++) {
		int64_t pending = wlb_spool_pending(spool);
		if (pending == 0)
			return WLB_DELIVERY_DONE;
		if (i > 0 && wlb_clock_left_ms(deadline_ms) == 0)
			return WLB_DELIVERY_MORE;
		if (records > pending)
			records = (int)pending;
		switch (send_batch(connection, spool, records, wlb_clock_left_ms(deadline_ms), error)) {
		case OUTCOME_STORED:
			return wlb_spool_pending(spool) == 0 ? WLB_DELIVERY_DONE : WLB_DELIVERY_MORE;
		case OUTCOME_UNAVAILABLE:
			return WLB_DELIVERY_UNAVAILABLE;
		case OUTCOME_REFUSED_ALL:
			return WLB_DELIVERY_REFUSED;
		case OUTCOME_FAILED:
			return WLB_DELIVERY_FAILED;
		case OUTCOME_REFUSED_RECORD:
			break;
		}
		if (records > 1) {
			records /= 2;
			continue;
		}
		struct wlb_error why = *error;
		int rc = wlb_spool_refuse(spool, why.message, error);
		if (rc != 0)
			return rc > 0 ? WLB_DELIVERY_REFUSED : WLB_DELIVERY_FAILED;
		leave_notice(spool, 1, why.message);
	}
	return WLB_DELIVERY_MORE;
}

/* ---- what earlier processes left ------------------------------------------------------------------------------ */

struct leftover {
	char *path;
	time_t written;
};

struct leftovers {
	struct leftover *list;
	int count;
};

static int by_age(const void *a, const void *b)
{
	const struct leftover *x = a, *y = b;
	return (x->written > y->written) - (x->written < y->written);
}

/* ATTEMPT.SOURCE.jsonl; a temporary file of refused records has another end. */
static bool has_spool_name(const char *name)
{
	size_t length = strlen(name);
	const char *dot = strchr(name, '.');
	return name[0] != '.' && length > 6 && dot < name + length - 6 && strcmp(name + length - 6, ".jsonl") == 0;
}

/* Whether it is a regular file of this account; other accounts deliver their own. */
static bool is_own_file(int folder, const char *name, struct stat *about)
{
	return fstatat(folder, name, about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about->st_mode) &&
	       about->st_uid == geteuid();
}

/* The own files of a folder that have the name of a spool. Each job leaves other files there, which do not count. */
struct scan {
	DIR *folder;
	int entries;
	int64_t until_ms;
};

static bool scan_open(struct scan *scan, const char *dir, int limit_ms)
{
	*scan = (struct scan){.folder = opendir(dir), .until_ms = wlb_clock_ms() + limit_ms};
	return scan->folder != NULL;
}

/* Returns the next name; NULL after the last, and where the bounds are reached. */
static const char *scan_next(struct scan *scan, struct stat *about)
{
	struct dirent *entry;
	while (scan->entries < ENTRIES_MAX && wlb_clock_left_ms(scan->until_ms) > 0 &&
	       (entry = readdir(scan->folder)) != NULL) {
		if (!has_spool_name(entry->d_name))
			continue;
		scan->entries++;
		if (is_own_file(dirfd(scan->folder), entry->d_name, about))
			return entry->d_name;
	}
	return NULL;
}

static void leftovers_free(struct leftovers *all)
{
	for (int i = 0; i < all->count; i++)
		free(all->list[i].path);
	free(all->list);
}

static int leftovers_add(struct leftovers *all, const char *dir, const char *name, time_t written)
{
	struct leftover item = {.written = written};
	if (asprintf(&item.path, "%s/%s", dir, name) < 0)
		return -1;
	struct leftover *more = realloc(all->list, sizeof(item) * (size_t)(all->count + 1));
	if (more == NULL) {
		free(item.path);
		return -1;
	}
	all->list = more;
	more[all->count++] = item;
	return 0;
}

/* Lists the spools in `dir`, oldest first; a missing folder has none. Spools over the bounds are delivered after the
 * others. */
static int list_leftovers(const char *dir, int timeout_ms, struct leftovers *all, struct wlb_error *error)
{
	struct scan scan;
	struct stat about;
	const char *name;
	*all = (struct leftovers){0};
	if (!scan_open(&scan, dir, timeout_ms / 2 > SCAN_MS ? timeout_ms / 2 : SCAN_MS))
		return errno == ENOENT
		               ? 0
		               : wlb_fail(error, "spool directory %s: cannot be read: %s", dir, strerror(errno));
	while (all->count < SPOOLS_MAX && (name = scan_next(&scan, &about)) != NULL)
		if (leftovers_add(all, dir, name, about.st_mtime) != 0)
			break;
	closedir(scan.folder);
	if (all->count > 0)
		qsort(all->list, (size_t)all->count, sizeof(*all->list), by_age);
	return 0;
}

struct round {
	struct wlb_connection *connection;
	const struct wlb_deliver_options *options;
	int64_t deadline_ms;
	struct wlb_deliver_result *result;
	struct wlb_error *error;
};

/* A spool that cannot be read may be of the run. */
static bool is_of_run(const struct round *round, const char *path)
{
	struct wlb_spool_identity identity;
	int64_t first_seq;
	if (round->options->run_id == NULL)
		return true;
	enum wlb_spool_beginning beginning = wlb_spool_peek(path, &identity, &first_seq, NULL);
	return beginning == WLB_SPOOL_UNREADABLE ||
	       (beginning == WLB_SPOOL_BEGINS && strcmp(identity.run_id, round->options->run_id) == 0);
}

/* The number after the last record that the coordinator has of a source: its reply to records far ahead states it. */
static int64_t ask_next_seq(struct wlb_connection *connection, const struct wlb_spool_identity *identity,
                            int timeout_ms, struct wlb_error *error)
{
	char path[128], body[256];
	struct wlb_reply reply;
	snprintf(path, sizeof(path), "/v1/runs/%s/records", identity->run_id);
	snprintf(body, sizeof(body), "{\"attempt_id\":\"%s\",\"source\":\"%s\",\"first_seq\":%lld,\"records\":[]}",
	         identity->attempt_id, identity->source, (long long)INT64_MAX / 4);
	if (wlb_connection_request(connection, "POST", path, body, timeout_ms, &reply, error) != 0)
		return -1;
	int64_t acked = reply.status == 409 ? reply_acked(&reply) : -1;
	if (acked < 0)
		wlb_reply_failure(&reply, error);
	free(reply.body);
	return acked >= 0 ? acked + 1 : -1;
}

static void refuse_rest(const struct round *round, struct wlb_spool *spool, struct wlb_error *error)
{
	struct wlb_error why = *error;
	int64_t refused = wlb_spool_refuse_rest(spool, why.message, error);
	if (refused <= 0)
		return;
	leave_notice(spool, (long long)refused, why.message);
	round->result->refused += refused;
}

/* Once the coordinator is unavailable, `why` says nothing of the spools that are not tried any more. */
static void note_left(const struct round *round, int64_t records, const struct wlb_error *why)
{
	round->result->left += records;
	if (why->message[0] != '\0')
		*round->error = *why;
}

static void count_not_adopted(const struct round *round, enum wlb_spool_adoption adoption, const struct wlb_error *why)
{
	struct wlb_deliver_result *result = round->result;
	if (adoption == WLB_SPOOL_FOREIGN && result->foreign++ == 0)
		result->foreign_why = *why;
	result->busy += adoption == WLB_SPOOL_BUSY;
	result->spools += adoption == WLB_SPOOL_FAILED;
	if (adoption == WLB_SPOOL_FAILED)
		note_left(round, 1, why);
}

/* A spool that may have a writer is delivered again and again while it grows: what is stored is not sent again. */
static void skip_stored(const struct round *round, struct wlb_spool *spool, int timeout_ms)
{
	int64_t next_seq = ask_next_seq(round->connection, wlb_spool_identity(spool), timeout_ms, NULL);
	if (next_seq > 0)
		wlb_spool_acknowledge(spool, next_seq - 1, NULL);
}

static bool was_in_use(const struct round *round, const char *path)
{
	const struct wlb_deliver_in_use *in_use = round->options->in_use;
	for (int i = 0; in_use != NULL && i < in_use->count; i++)
		if (strcmp(in_use->paths[i], path) == 0)
			return true;
	return false;
}

/* A spool that cannot be listed for lack of memory is removed later, as one that may have a writer. */
static void note_in_use(const struct round *round, const char *path)
{
	struct wlb_deliver_in_use *in_use = round->options->in_use;
	if (in_use == NULL || in_use->count == SPOOLS_MAX || was_in_use(round, path))
		return;
	char *copy = strdup(path);
	char **more = copy != NULL ? realloc(in_use->paths, sizeof(*more) * (size_t)(in_use->count + 1)) : NULL;
	if (more == NULL) {
		free(copy);
		return;
	}
	more[in_use->count++] = copy;
	in_use->paths = more;
}

void wlb_deliver_in_use_free(struct wlb_deliver_in_use *in_use)
{
	for (int i = 0; i < in_use->count; i++)
		free(in_use->paths[i]);
	free(in_use->paths);
	*in_use = (struct wlb_deliver_in_use){0};
}

/* Whether the spool has no writer any more; -1 if it cannot be read. */
static int has_ended(const struct round *round, struct wlb_spool *spool, struct wlb_error *error)
{
	const struct wlb_deliver_options *options = round->options;
	if (options->run_id != NULL)
		return 1;
	/* What is written later is of a job that was requeued, or of a process that ended after the job did: a process
	 * that was frozen with its node, and held its spool. */
	if (options->ended_job != 0 && options->ended_job == wlb_spool_identity(spool)->job_id &&
	    (wlb_spool_written_s(spool) <= options->ended_s || was_in_use(round, wlb_spool_path(spool))))
		return 1;
	return wlb_spool_has_ended(spool, error);
}

static int request_ms_left(const struct round *round)
{
	int left_ms = wlb_clock_left_ms(round->deadline_ms);
	int max_ms = round->options->request_ms > 0 ? round->options->request_ms : REQUEST_MS;
	return left_ms < max_ms ? left_ms : max_ms;
}

static enum wlb_delivery deliver_adopted(const struct round *round, struct wlb_spool *spool, struct wlb_error *error)
{
	enum wlb_delivery outcome = WLB_DELIVERY_MORE;
	int timeout_ms;
	while (!round->result->unavailable && outcome == WLB_DELIVERY_MORE && (timeout_ms = request_ms_left(round)) > 0)
		outcome = wlb_deliver_batch(round->connection, spool, timeout_ms, error);
	round->result->unavailable = round->result->unavailable || outcome == WLB_DELIVERY_UNAVAILABLE;
	return outcome;
}

static void deliver_leftover(const struct round *round, const char *path)
{
	enum wlb_spool_adoption adoption;
	struct wlb_error why = {0};
	struct wlb_deliver_result *result = round->result;
	struct wlb_spool *spool = wlb_spool_adopt(path, &adoption, &why);
	int ended = spool != NULL ? has_ended(round, spool, &why) : -1;
	if (ended < 0) {
		if (spool == NULL && adoption == WLB_SPOOL_BUSY)
			note_in_use(round, path);
		count_not_adopted(round, spool != NULL ? WLB_SPOOL_FAILED : adoption, &why);
		wlb_spool_close(spool, false);
		return;
	}
	if (ended == 0 && wlb_spool_pending(spool) > 0 && !result->unavailable && request_ms_left(round) > 0)
		skip_stored(round, spool, request_ms_left(round));
	enum wlb_delivery outcome = deliver_adopted(round, spool, &why);
	bool refused = outcome == WLB_DELIVERY_REFUSED;
	if (refused && ended == 1)
		refuse_rest(round, spool, &why);
	int64_t left = refused && ended == 0 ? 0 : wlb_spool_pending(spool);
	bool removed = wlb_spool_close(spool, ended == 1);
	if (left > 0)
		note_left(round, left, &why);
	result->kept += left == 0 && !removed;
	result->spools += left > 0 || removed;
}

int wlb_deliver_folder(const struct wlb_client_config *config, const char *spool_dir,
                       const struct wlb_deliver_options *options, struct wlb_deliver_result *result,
                       struct wlb_error *caller_error)
{
	struct wlb_error unseen, *error = caller_error != NULL ? caller_error : &unseen;
	struct leftovers all;
	*result = (struct wlb_deliver_result){0};
	if (list_leftovers(spool_dir, options->timeout_ms, &all, error) != 0)
		return -1;
	struct round round = {.connection = all.count > 0 ? wlb_connection_new(config) : NULL,
	                      .options = options,
	                      .deadline_ms = wlb_clock_ms() + options->timeout_ms,
	                      .result = result,
	                      .error = error};
	for (int i = 0; round.connection != NULL && i < all.count; i++)
		if (is_of_run(&round, all.list[i].path))
			deliver_leftover(&round, all.list[i].path);
	int rc = all.count > 0 && round.connection == NULL ? wlb_fail(error, "out of memory for a connection") : 0;
	wlb_connection_free(round.connection);
	leftovers_free(&all);
	return rc;
}

/* Files of other programs may have such names. */
static bool may_have_records(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct wlb_spool_identity identity;
	int64_t first_seq;
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	enum wlb_spool_beginning beginning = wlb_spool_peek(path, &identity, &first_seq, NULL);
	return beginning == WLB_SPOOL_BEGINS || beginning == WLB_SPOOL_UNREADABLE;
}

bool wlb_deliver_pending(const char *spool_dir)
{
	struct scan scan;
	struct stat about;
	const char *name;
	if (!scan_open(&scan, spool_dir, SCAN_MS))
		return false;
	bool pending = false;
	while (!pending && (name = scan_next(&scan, &about)) != NULL)
		pending = may_have_records(spool_dir, name);
	closedir(scan.folder);
	return pending;
}

/* ---- refused records, again ----------------------------------------------------------------------------------- */

/* Nobody writes to a spool that was refused records: it is removed as soon as it is delivered. */
static void mark_idle(const char *dir, const char *name)
{
	char path[PATH_MAX];
	const struct timespec idle_since = {.tv_sec = time(NULL) - WLB_SPOOL_IDLE_S};
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, idle_since};
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

static int restore_file(struct wlb_connection *connection, const char *dir, const char *path, int timeout_ms,
                        struct wlb_error *error)
{
	struct wlb_spool_identity identity;
	int64_t first_seq;
	if (wlb_spool_peek(path, &identity, &first_seq, error) != 0)
		return -1;
	if (first_seq == WLB_SPOOL_UNNUMBERED)
		first_seq = ask_next_seq(connection, &identity, timeout_ms, error);
	const char *name = strrchr(path, '/') + 1;
	int restored = first_seq > 0 ? wlb_refused_restore(dir, name, first_seq, error) : -1;
	if (restored == 1)
		mark_idle(dir, name);
	return restored;
}

int wlb_deliver_restore(const struct wlb_client_config *config, const char *spool_dir, int timeout_ms,
                        struct wlb_error *error)
{
	char refused[PATH_MAX];
	struct leftovers all;
	if (snprintf(refused, sizeof(refused), "%s/refused", spool_dir) >= (int)sizeof(refused))
		return wlb_fail(error, "directory %.100s...: the path is too long", spool_dir);
	if (list_leftovers(refused, timeout_ms, &all, error) != 0)
		return -1;
	int64_t deadline_ms = wlb_clock_ms() + timeout_ms;
	struct wlb_connection *connection = wlb_connection_new(config);
	int restored = connection != NULL ? 0 : wlb_fail(error, "out of memory for a connection");
	for (int i = 0; restored >= 0 && i < all.count; i++) {
		int rc = restore_file(connection, spool_dir, all.list[i].path, wlb_clock_left_ms(deadline_ms), error);
		restored = rc >= 0 ? restored + rc : -1;
	}
	wlb_connection_free(connection);
	leftovers_free(&all);
	return restored;
}
