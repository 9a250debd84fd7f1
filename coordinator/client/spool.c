#include "coordinator/client/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json_text.h"
#include "common/own_file.h"
#include "coordinator/client/refused.h"

enum {
	BUSY_WAIT_MS = 2000, /* wait for a process that is delivering it */
	TOUCH_MS = 60000,
	BATCH_BYTES = 4 * 1024 * 1024,
	LINE_BYTES_MAX = 64 * 1024 * 1024,
	DETAIL_MAX = 512,  /* of an event that replaces a record */
	REFUSALS_MAX = 64, /* a spool with more is refused as a whole */
};

/* Instead of the length of a line. */
enum { LINE_NONE = -1, LINE_UNREADABLE = -2 };

/* A record that is replaced by an event. */
struct refusal {
	int64_t seq;
	char why[256];
};

struct wlb_spool {
	struct wlb_spool_identity identity;
	char path[PATH_MAX];
	int fd;
	off_t first; /* offset of the first record, after the header */
	int64_t first_seq;
	pthread_mutex_t lock; /* guards end, last_seq, dirty */
	off_t end;
	int64_t last_seq;
	bool dirty;
	off_t rest;         /* bytes after `end` when the file was opened: an incomplete line */
	time_t written_s;   /* when somebody wrote to it last, then */
	bool is_new;        /* its folder is not synced yet */
	int64_t touched_ms; /* when wlb_spool_touch last set the file's time */
	off_t cursor;       /* offset of the record after the acknowledged ones; only the reader uses it and acked */
	int64_t acked;
	struct refusal refusals[REFUSALS_MAX]; /* likewise */
	int refusal_count;
};

static int fail_io(const struct wlb_spool *spool, const char *what, struct wlb_error *error)
{
	return wlb_fail(error, "spool %s: cannot be %s: %s", spool->path, what, strerror(errno));
}

/* A read that fails says nothing about what the file has: nothing may be cut or removed then. */
static int fail_read(const struct wlb_spool *spool, struct wlb_error *error)
{
	return wlb_fail(error, "spool %s: cannot be read: %s; it is left unchanged: check its file system", spool->path,
	                strerror(errno));
}

/* ---- reading lines ---------------------------------------------------------------------------------------- */

/* Length of the line at `offset` without its newline; LINE_NONE when there is no newline before `end`, LINE_UNREADABLE
 * with errno set when the file cannot be read. */
static ssize_t line_length(int fd, off_t offset, off_t end)
{
	char chunk[8192];
	for (off_t position = offset; position < end;) {
		size_t want = end - position < (off_t)sizeof(chunk) ? (size_t)(end - position) : sizeof(chunk);
		if (wlb_pread_all(fd, chunk, want, position) != 0)
			return LINE_UNREADABLE;
		char *newline = memchr(chunk, '\n', want);
		if (newline != NULL)
			return position + (newline - chunk) - offset;
		position += (off_t)want;
	}
	return LINE_NONE;
}

/* The same for a line that is known to be whole; -1 with a message when it cannot be read. */
static ssize_t whole_line_length(const struct wlb_spool *spool, off_t offset, off_t end, struct wlb_error *error)
{
	ssize_t length = line_length(spool->fd, offset, end);
	if (length == LINE_NONE)
		errno = EIO;
	return length >= 0 ? length : fail_read(spool, error);
}

/* The line as a string of its own; NULL on error. */
static char *line_read(const struct wlb_spool *spool, off_t offset, ssize_t length, struct wlb_error *error)
{
	char *line = length <= LINE_BYTES_MAX ? malloc((size_t)length + 1) : NULL;
	if (line == NULL) {
		wlb_fail(error, "spool %s: out of memory for a line of %zd bytes", spool->path, length);
		return NULL;
	}
	if (wlb_pread_all(spool->fd, line, (size_t)length, offset) != 0) {
		fail_read(spool, error);
		free(line);
		return NULL;
	}
	line[length] = '\0';
	return line;
}

/* ---- opening ---------------------------------------------------------------------------------------------- */

static int write_header(struct wlb_spool *spool, struct wlb_error *error)
{
	char header[WLB_SPOOL_HEADER_MAX];
	int n = wlb_spool_header(header, &spool->identity, 1);
	if (ftruncate(spool->fd, 0) != 0 || wlb_pwrite_all(spool->fd, header, (size_t)n, 0) != 0) {
		fail_io(spool, "written", error);
		return ftruncate(spool->fd, 0), -1;
	}
	spool->first = spool->end = spool->cursor = n;
	spool->dirty = spool->is_new = true;
	return 0;
}

/* Reads the header of the open spool. A file of refused records, which have no numbers, is not a spool. */
static enum wlb_spool_beginning read_header(struct wlb_spool *spool, struct wlb_spool_identity *found,
                                            struct wlb_error *error)
{
	int length;
	enum wlb_spool_beginning beginning =
		wlb_spool_header_read(spool->fd, spool->path, found, &spool->first_seq, &length, error);
	if (beginning == WLB_SPOOL_BEGINS && spool->first_seq == WLB_SPOOL_UNNUMBERED) {
		wlb_fail(error, "spool %s: its records have no numbers", spool->path);
		beginning = WLB_SPOOL_BEGINS_OTHERWISE;
	}
	if (beginning != WLB_SPOOL_BEGINS)
		return beginning;
	spool->first = spool->end = spool->cursor = length;
	spool->acked = spool->last_seq = spool->first_seq - 1;
	return beginning;
}

/* Finds the records after the header, if there is one, and what follows the last whole line. */
static int scan(struct wlb_spool *spool, struct wlb_error *error)
{
	struct stat about;
	ssize_t length = LINE_NONE;
	if (fstat(spool->fd, &about) != 0)
		return fail_read(spool, error);
	while (spool->first > 0 && (length = line_length(spool->fd, spool->end, about.st_size)) >= 0) {
		spool->end += length + 1;
		spool->last_seq++;
	}
	if (length == LINE_UNREADABLE)
		return fail_read(spool, error);
	spool->rest = about.st_size - spool->end;
	spool->written_s = about.st_mtime;
	return 0;
}

/* Keeps the incomplete line after the last record, of which a full disk may have lost only the newline. */
static int keep_rest(const struct wlb_spool *spool, struct wlb_error *error)
{
	char *bytes = line_read(spool, spool->end, spool->rest, error);
	if (bytes == NULL)
		return -1;
	int rc = wlb_refused_keep_bytes(spool->path, spool->last_seq + 1, bytes, (size_t)spool->rest, error);
	free(bytes);
	return rc;
}

static int cut_rest(struct wlb_spool *spool, struct wlb_error *error)
{
	if (spool->rest == 0)
		return 0;
	if (keep_rest(spool, error) != 0)
		return wlb_fail_in(error, "spool %s: its last line is incomplete and is not cut off before it is kept",
		                   spool->path);
	if (ftruncate(spool->fd, spool->end) != 0)
		return fail_io(spool, "cut to its last whole line", error);
	spool->rest = 0;
	return 0;
}

/* Returns 1 if locked, 0 if another process has it (or it was removed meanwhile), -1 on error. File systems without
 * locks count as locked, and others lock for one host alone: a record that two processes deliver is stored once, and
 * wlb_spool_has_ended() is asked before a spool is removed. */
static int open_locked(struct wlb_spool *spool, int flags, struct wlb_error *error)
{
	struct stat about;
	spool->fd = wlb_own_file_open(spool->path, flags, error);
	if (spool->fd < 0)
		return errno == ENOENT ? 0 : wlb_fail_in(error, "spool");
	bool busy = !wlb_own_file_lock(spool->fd, 0);
	if (!busy && (fstat(spool->fd, &about) != 0 || about.st_nlink == 0))
		busy = true;
	if (!busy)
		return 1;
	close(spool->fd);
	spool->fd = -1;
	return 0;
}

static struct wlb_spool *spool_new(struct wlb_error *error)
{
	struct wlb_spool *spool = calloc(1, sizeof(*spool));
	if (spool == NULL) {
		wlb_fail(error, "out of memory for a spool");
		return NULL;
	}
	spool->fd = -1;
	spool->first_seq = 1;
	pthread_mutex_init(&spool->lock, NULL);
	return spool;
}

static int begin_or_continue(struct wlb_spool *spool, struct wlb_error *error)
{
	struct wlb_spool_identity found;
	switch (read_header(spool, &found, error)) {
	case WLB_SPOOL_BEGINS:
		break;
	case WLB_SPOOL_BEGINS_TORN:
		return write_header(spool, error);
	case WLB_SPOOL_BEGINS_OTHERWISE:
		return wlb_fail_in(error, "another file has the name of the spool and is not replaced: move it away");
	case WLB_SPOOL_UNREADABLE:
		return -1;
	}
	if (strcmp(found.run_id, spool->identity.run_id) != 0)
		return wlb_fail(error, "spool %s: belongs to run %s, not %s", spool->path, found.run_id,
		                spool->identity.run_id);
	return scan(spool, error) == 0 ? cut_rest(spool, error) : -1;
}

struct wlb_spool *wlb_spool_open(const char *dir, const struct wlb_spool_identity *identity, struct wlb_error *error)
{
	struct wlb_spool *spool = spool_new(error);
	if (spool == NULL)
		return NULL;
	spool->identity = *identity;
	int n = snprintf(spool->path, sizeof(spool->path), "%s/%s.%s.jsonl", dir, identity->attempt_id,
	                 identity->source);
	int rc = n < (int)sizeof(spool->path) ? wlb_dir_make(dir, 0700, error)
	                                      : wlb_fail(error, "spool directory %.80s...: the path is too long", dir);
	int64_t deadline_ms = wlb_clock_ms() + BUSY_WAIT_MS;
	int locked = 0;
	while (rc == 0 && (locked = open_locked(spool, O_RDWR | O_CREAT, error)) == 0 &&
	       wlb_clock_left_ms(deadline_ms) > 0)
		wlb_clock_sleep_ms(20);
	if (rc == 0 && locked == 0)
		wlb_fail(error, "spool %s: is in use by another process", spool->path);
	if (rc != 0 || locked != 1 || begin_or_continue(spool, error) != 0) {
		wlb_spool_close(spool, false);
		return NULL;
	}
	return spool;
}

/* A file that another account put into the folder would be delivered with this account's credential. The header is read
 * before anything else: files of other programs may have such names. */
static enum wlb_spool_adoption take_over(struct wlb_spool *spool, struct wlb_error *error)
{
	int locked = open_locked(spool, O_RDWR, error);
	if (locked < 0)
		return errno == EINVAL ? WLB_SPOOL_BUSY : WLB_SPOOL_FAILED;
	if (locked == 0)
		return WLB_SPOOL_BUSY;
	switch (read_header(spool, &spool->identity, error)) {
	case WLB_SPOOL_BEGINS:
	case WLB_SPOOL_BEGINS_TORN:
		return scan(spool, error) == 0 ? WLB_SPOOL_ADOPTED : WLB_SPOOL_FAILED;
	case WLB_SPOOL_BEGINS_OTHERWISE:
		return WLB_SPOOL_FOREIGN;
	default:
		return WLB_SPOOL_FAILED;
	}
}

struct wlb_spool *wlb_spool_adopt(const char *path, enum wlb_spool_adoption *adoption, struct wlb_error *error)
{
	struct wlb_spool *spool = spool_new(error);
	*adoption = WLB_SPOOL_FAILED;
	if (spool == NULL)
		return NULL;
	snprintf(spool->path, sizeof(spool->path), "%s", path);
	*adoption = take_over(spool, error);
	if (*adoption == WLB_SPOOL_ADOPTED)
		return spool;
	wlb_spool_close(spool, false);
	return NULL;
}

/* Removes the file unless it has records that are pending, or more than this process has seen. */
static bool remove_delivered_file(const struct wlb_spool *spool)
{
	struct stat about;
	if (spool->last_seq > spool->acked || fstat(spool->fd, &about) != 0 ||
	    about.st_size != spool->end + spool->rest)
		return false;
	if (spool->rest > 0 && spool->first > 0 && keep_rest(spool, NULL) != 0)
		return false;
	return unlink(spool->path) == 0 || errno == ENOENT;
}

bool wlb_spool_close(struct wlb_spool *spool, bool remove_delivered)
{
	if (spool == NULL)
		return false;
	bool removed = spool->fd >= 0 && remove_delivered && remove_delivered_file(spool);
	if (spool->fd >= 0)
		close(spool->fd);
	pthread_mutex_destroy(&spool->lock);
	free(spool);
	return removed;
}

/* ---- writing ---------------------------------------------------------------------------------------------- */

static char *record_line(int64_t seq, const char *type, const char *data, double time_s, size_t *length,
                         struct wlb_error *error)
{
	json_error_t why;
	json_t *object = json_loads(data, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(object)) {
		wlb_fail(error, "record '%.40s': its data must be a JSON object, but %s", type,
		         object == NULL ? why.text : "it is another JSON value");
		json_decref(object);
		return NULL;
	}
	json_t *record =
		json_pack("{s:I, s:f, s:s, s:o}", "seq", (json_int_t)seq, "time", time_s, "type", type, "data", object);
	char *line = record != NULL ? json_dumps(record, JSON_COMPACT) : NULL;
	json_decref(record);
	if (line == NULL) {
		wlb_fail(error, "record '%.40s': no memory, or a type that is not UTF-8", type);
		return NULL;
	}
	*length = strlen(line);
	line[(*length)++] = '\n'; /* replaces the NUL: from here on the line is bytes and a length */
	return line;
}

int wlb_spool_append_of(struct wlb_spool *spool, const char *type, const char *data, double time_s,
                        struct wlb_error *error)
{
	size_t length;
	pthread_mutex_lock(&spool->lock);
	char *line = record_line(spool->last_seq + 1, type, data, time_s, &length, error);
	int rc = line != NULL ? wlb_pwrite_all(spool->fd, line, length, spool->end) : -1;
	if (rc == 0) {
		spool->end += (off_t)length;
		spool->last_seq++;
		spool->dirty = true;
	} else if (line != NULL) {
		fail_io(spool, "written", error);
		if (ftruncate(spool->fd, spool->end) != 0)
			wlb_fail_in(error, "half a record may be left");
	}
	pthread_mutex_unlock(&spool->lock);
	free(line);
	return rc;
}

int wlb_spool_append(struct wlb_spool *spool, const char *type, const char *data, struct wlb_error *error)
{
	return wlb_spool_append_of(spool, type, data, wlb_clock_unix_s(), error);
}

int wlb_spool_sync(struct wlb_spool *spool, struct wlb_error *error)
{
	pthread_mutex_lock(&spool->lock);
	bool dirty = spool->dirty;
	spool->dirty = false;
	pthread_mutex_unlock(&spool->lock);
	if (dirty && fdatasync(spool->fd) != 0) {
		fail_io(spool, "synced", error);
		pthread_mutex_lock(&spool->lock);
		spool->dirty = true;
		pthread_mutex_unlock(&spool->lock);
		return -1;
	}
	if (spool->is_new && wlb_parent_sync(spool->path, error) != 0)
		return -1;
	spool->is_new = false;
	return 0;
}

void wlb_spool_touch(struct wlb_spool *spool)
{
	int64_t now_ms = wlb_clock_ms();
	if (spool->touched_ms != 0 && now_ms - spool->touched_ms < TOUCH_MS)
		return;
	spool->touched_ms = now_ms;
	futimens(spool->fd, NULL);
}

/* ---- delivering ------------------------------------------------------------------------------------------- */

/* The end and the last number of what can be read now. */
static void readable_end(struct wlb_spool *spool, off_t *end, int64_t *last_seq)
{
	pthread_mutex_lock(&spool->lock);
	*end = spool->end;
	*last_seq = spool->last_seq;
	pthread_mutex_unlock(&spool->lock);
}

int64_t wlb_spool_pending(struct wlb_spool *spool)
{
	off_t end;
	int64_t last_seq;
	readable_end(spool, &end, &last_seq);
	return last_seq - spool->acked;
}

int64_t wlb_spool_acked(const struct wlb_spool *spool)
{
	return spool->acked;
}

const struct wlb_spool_identity *wlb_spool_identity(const struct wlb_spool *spool)
{
	return &spool->identity;
}

enum line_kind { LINE_DAMAGED, LINE_RECORD, LINE_ATTEMPT_END };

/* What a line is that should be the complete record `seq`. */
static enum line_kind kind_of_line(const char *line, int64_t seq)
{
	json_int_t found;
	const char *type;
	enum line_kind kind = LINE_DAMAGED;
	json_t *record = json_loads(line, 0, NULL);
	if (json_unpack(record, "{s:I, s:F, s:s, s:o}", "seq", &found, "time", &(double){0}, "type", &type, "data",
	                &(json_t *){0}) == 0 &&
	    found == seq)
		kind = strcmp(type, "attempt_end") == 0 ? LINE_ATTEMPT_END : LINE_RECORD;
	json_decref(record);
	return kind;
}

static const struct refusal *find_refusal(const struct wlb_spool *spool, int64_t seq)
{
	for (int i = 0; i < spool->refusal_count; i++)
		if (spool->refusals[i].seq == seq)
			return &spool->refusals[i];
	return NULL;
}

/* Writes the event that replaces a record, so that the sequence has no gap. */
static int put_event(FILE *body, int64_t seq, const char *kind, const char *detail)
{
	json_t *event = json_pack("{s:I, s:f, s:s, s:{s:s, s:o}}", "seq", (json_int_t)seq, "time", wlb_clock_unix_s(),
	                          "type", "event", "data", "kind", kind, "detail", wlb_json_text(detail));
	int rc = event != NULL ? json_dumpf(event, body, JSON_COMPACT) : -1;
	json_decref(event);
	return rc;
}

static int put_record(struct wlb_spool *spool, FILE *body, off_t offset, ssize_t length, int64_t seq,
                      struct wlb_error *error)
{
	char detail[DETAIL_MAX];
	const struct refusal *refusal = find_refusal(spool, seq);
	char *line = line_read(spool, offset, length, error);
	if (line == NULL)
		return -1;
	int rc = 0;
	if (refusal != NULL) {
		wlb_text_format(detail, sizeof(detail), "record %" PRId64 " was refused and is kept in refused/: %s",
		                seq, refusal->why);
		rc = put_event(body, seq, "record_refused", detail);
	} else if (kind_of_line(line, seq) != LINE_DAMAGED) {
		fputs(line, body);
	} else {
		wlb_refused_keep_bytes(spool->path, seq, line, (size_t)length, NULL);
		snprintf(detail, sizeof(detail), "record %" PRId64 " could not be read back from the spool", seq);
		rc = put_event(body, seq, "spool_damaged", detail);
	}
	free(line);
	return rc == 0 ? 0 : wlb_fail(error, "spool %s: out of memory for a batch", spool->path);
}

static int put_records(struct wlb_spool *spool, FILE *body, int max_records, struct wlb_error *error)
{
	off_t end, position = spool->cursor;
	int64_t last_seq;
	readable_end(spool, &end, &last_seq);
	for (int64_t seq = spool->acked + 1; seq <= last_seq && seq - spool->acked <= max_records; seq++) {
		ssize_t length = whole_line_length(spool, position, end, error);
		if (length < 0)
			return -1;
		bool first = position == spool->cursor;
		if (!first && position + length - spool->cursor > BATCH_BYTES)
			break;
		if (!first)
			fputc(',', body);
		if (put_record(spool, body, position, length, seq, error) != 0)
			return -1;
		position += length + 1;
	}
	return 0;
}

char *wlb_spool_batch(struct wlb_spool *spool, int max_records, struct wlb_error *error)
{
	char *text = NULL;
	size_t size;
	if (wlb_spool_pending(spool) == 0)
		return NULL;
	FILE *body = open_memstream(&text, &size);
	if (body == NULL) {
		wlb_fail(error, "spool %s: out of memory for a batch", spool->path);
		return NULL;
	}
	const struct wlb_spool_identity *id = &spool->identity;
	fprintf(body,
	        "{\"attempt_id\":\"%s\",\"source\":\"%s\",\"job_id\":%" PRId64 ",\"first_seq\":%" PRId64
	        ",\"records\":[",
	        id->attempt_id, id->source, id->job_id, spool->acked + 1);
	int rc = put_records(spool, body, max_records, error);
	fputs("]}", body);
	if (fclose(body) != 0 && rc == 0)
		rc = wlb_fail(error, "spool %s: out of memory for a batch", spool->path);
	if (rc == 0)
		return text;
	free(text);
	return NULL;
}

int wlb_spool_acknowledge(struct wlb_spool *spool, int64_t seq, struct wlb_error *error)
{
	off_t end;
	int64_t last_seq;
	readable_end(spool, &end, &last_seq);
	int64_t min = spool->first_seq - 1;
	seq = seq < min ? min : seq > last_seq ? last_seq : seq;
	off_t position = seq >= spool->acked ? spool->cursor : spool->first;
	for (int64_t i = seq >= spool->acked ? spool->acked : min; i < seq; i++) {
		ssize_t length = whole_line_length(spool, position, end, error);
		if (length < 0)
			return -1;
		position += length + 1;
	}
	spool->cursor = position;
	spool->acked = seq;
	return 0;
}

/* Leaves the lines from `position` on to a later delivery: another host may see a line in part while it is written. */
static void stop_before(struct wlb_spool *spool, off_t position, int64_t seq)
{
	spool->rest += spool->end - position;
	spool->end = position;
	spool->last_seq = seq - 1;
}

int wlb_spool_has_ended(struct wlb_spool *spool, struct wlb_error *error)
{
	off_t position = spool->first;
	enum line_kind kind = LINE_RECORD;
	if (time(NULL) - spool->written_s >= WLB_SPOOL_IDLE_S)
		return 1;
	for (int64_t seq = spool->first_seq; seq <= spool->last_seq; seq++) {
		ssize_t length = whole_line_length(spool, position, spool->end, error);
		char *line = length >= 0 ? line_read(spool, position, length, error) : NULL;
		if (line == NULL)
			return -1;
		kind = kind_of_line(line, seq);
		free(line);
		if (kind == LINE_DAMAGED) {
			stop_before(spool, position, seq);
			return 0;
		}
		position += length + 1;
	}
	return kind == LINE_ATTEMPT_END && spool->rest == 0;
}

time_t wlb_spool_written_s(const struct wlb_spool *spool)
{
	return spool->written_s;
}

/* ---- refused ---------------------------------------------------------------------------------------------- */

const char *wlb_spool_path(const struct wlb_spool *spool)
{
	return spool->path;
}

/* Adds the first `count` pending records to `refused`, except lines that are not records and records added before. */
static int64_t add_refused(struct wlb_spool *spool, struct wlb_refused *refused, int64_t count, const char *why,
                           struct wlb_error *error)
{
	off_t end, position = spool->cursor;
	int64_t last_seq, added = 0;
	readable_end(spool, &end, &last_seq);
	for (int64_t seq = spool->acked + 1; seq <= last_seq && seq <= spool->acked + count; seq++) {
		ssize_t length = whole_line_length(spool, position, end, error);
		char *line = length >= 0 ? line_read(spool, position, length, error) : NULL;
		if (line == NULL)
			return -1;
		int rc = 0;
		if (kind_of_line(line, seq) == LINE_DAMAGED)
			rc = wlb_refused_keep_bytes(spool->path, seq, line, (size_t)length, error);
		else if (find_refusal(spool, seq) == NULL)
			rc = wlb_refused_add(refused, line, why, error);
		free(line);
		if (rc != 0)
			return -1;
		added++;
		position += length + 1;
	}
	return added;
}

static int64_t keep_refused(struct wlb_spool *spool, int64_t count, const char *why, struct wlb_error *error)
{
	struct wlb_refused *refused = wlb_refused_open(spool->path, &spool->identity, error);
	if (refused == NULL)
		return -1;
	int64_t added = add_refused(spool, refused, count, why, error);
	return wlb_refused_close(refused, added >= 0 ? error : NULL) == 0 ? added : -1;
}

int wlb_spool_refuse(struct wlb_spool *spool, const char *why, struct wlb_error *error)
{
	int64_t seq = spool->acked + 1;
	if (find_refusal(spool, seq) != NULL) {
		wlb_fail(error, "spool %s: the event that stands for record %" PRId64 " is refused too: %s",
		         spool->path, seq, why);
		return 1;
	}
	if (spool->refusal_count == REFUSALS_MAX) {
		wlb_fail(error, "spool %s: more than %d records are refused, the last because: %s", spool->path,
		         REFUSALS_MAX, why);
		return 1;
	}
	if (keep_refused(spool, 1, why, error) != 1)
		return -1;
	struct refusal *refusal = &spool->refusals[spool->refusal_count++];
	refusal->seq = seq;
	wlb_text_show(refusal->why, sizeof(refusal->why), why);
	return 0;
}

int64_t wlb_spool_refuse_rest(struct wlb_spool *spool, const char *why, struct wlb_error *error)
{
	int64_t moved = keep_refused(spool, wlb_spool_pending(spool), why, error);
	if (moved > 0 && wlb_spool_acknowledge(spool, spool->acked + moved, error) != 0)
		return -1;
	return moved;
}
