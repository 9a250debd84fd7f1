#include "coordinator/client/refused.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "common/file.h"
#include "common/json_text.h"
#include "common/own_file.h"

enum {
	REFUSED_BYTES_MAX = 64 * 1024 * 1024, /* of one file */
	NOTICE_BYTES_MAX = 4096,
	WHY_MAX = 400,
};

struct wlb_refused {
	char path[PATH_MAX];
	int fd;
	off_t end;
	int64_t last_seq;
};

/* ---- names ------------------------------------------------------------------------------------------------ */

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL ? slash + 1 : path;
}

/* A link would lead this account to a folder or a file of another's choice. */
static int check_own_folder(const char *path, struct wlb_error *error)
{
	struct stat about;
	if (lstat(path, &about) != 0)
		return wlb_fail(error, "directory %s: cannot be read: %s", path, strerror(errno));
	if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid())
		return wlb_fail(error,
		                "directory %s: must be a directory of the account that keeps records in it, and "
		                "no link: move it away",
		                path);
	return 0;
}

/* Writes to `path` DIR/refused/NAME, for DIR/`spool_path` and the name that `format` makes; makes the folder. */
static int path_beside(char *path, const char *spool_path, const char *name, const char *suffix,
                       struct wlb_error *error)
{
	int folder = (int)(name_of(spool_path) - spool_path);
	int n = snprintf(path, PATH_MAX, "%.*srefused", folder, spool_path);
	if (n >= PATH_MAX)
		return wlb_fail(error, "spool %.100s...: the path is too long", spool_path);
	if (wlb_dir_make(path, 0700, error) != 0 || check_own_folder(path, error) != 0)
		return -1;
	if (n + snprintf(path + n, (size_t)(PATH_MAX - n), "/%s%s", name, suffix) >= PATH_MAX)
		return wlb_fail(error, "spool %.100s...: the path is too long", spool_path);
	return 0;
}

static int fail_io(const char *path, const char *what, struct wlb_error *error)
{
	return wlb_fail(error, "file %s: cannot be %s: %s", path, what, strerror(errno));
}

/* ---- refused records -------------------------------------------------------------------------------------- */

/* Cuts off a torn last line, and reads the number of the last whole one. */
static int cut_torn_line(struct wlb_refused *refused, struct wlb_error *error)
{
	char *text;
	size_t length;
	json_int_t seq = 0;
	if (wlb_file_read(refused->path, REFUSED_BYTES_MAX, &text, &length, error) != 0)
		return -1;
	while (length > 0 && text[length - 1] != '\n')
		length--;
	size_t begin = length > 0 ? length - 1 : 0;
	while (begin > 0 && text[begin - 1] != '\n')
		begin--;
	json_t *last = begin > 0 ? json_loadb(text + begin, length - begin, 0, NULL) : NULL;
	json_unpack(last, "{s:I}", "seq", &seq);
	json_decref(last);
	free(text);
	refused->end = (off_t)length;
	refused->last_seq = seq;
	return ftruncate(refused->fd, refused->end) == 0 ? 0 : fail_io(refused->path, "cut", error);
}

static int put_line(struct wlb_refused *refused, const char *line, size_t length, struct wlb_error *error)
{
	if (refused->end + (off_t)length > REFUSED_BYTES_MAX)
		return wlb_fail(error,
		                "file %s: has %jd bytes, at most %d are kept; 'wlb flush --refused' or remove it",
		                refused->path, (intmax_t)refused->end, REFUSED_BYTES_MAX);
	if (wlb_pwrite_all(refused->fd, line, length, refused->end) == 0) {
		refused->end += (off_t)length;
		return 0;
	}
	fail_io(refused->path, "written", error);
	if (ftruncate(refused->fd, refused->end) != 0)
		wlb_fail_in(error, "half a line may be left");
	return -1;
}

static int put_header(struct wlb_refused *refused, const struct wlb_spool_identity *identity, struct wlb_error *error)
{
	char header[WLB_SPOOL_HEADER_MAX];
	int length = wlb_spool_header(header, identity, WLB_SPOOL_UNNUMBERED);
	return put_line(refused, header, (size_t)length, error);
}

static bool is_removed(int fd)
{
	struct stat about;
	return fstat(fd, &about) != 0 || about.st_nlink == 0;
}

struct wlb_refused *wlb_refused_open(const char *spool_path, const struct wlb_spool_identity *identity,
                                     struct wlb_error *error)
{
	struct wlb_refused *refused = calloc(1, sizeof(*refused));
	if (refused == NULL || path_beside(refused->path, spool_path, name_of(spool_path), "", error) != 0) {
		free(refused);
		return NULL;
	}
	refused->fd = wlb_own_file_open(refused->path, O_RDWR | O_CREAT, error);
	if (refused->fd >= 0 && (!wlb_own_file_lock(refused->fd, 0) || is_removed(refused->fd)))
		wlb_fail(error, "file %s: is in use by another process", refused->path);
	else if (refused->fd >= 0 && cut_torn_line(refused, error) == 0 &&
	         (refused->end > 0 || put_header(refused, identity, error) == 0))
		return refused;
	if (refused->fd >= 0)
		close(refused->fd);
	free(refused);
	return NULL;
}

int wlb_refused_add(struct wlb_refused *refused, const char *line, const char *why, struct wlb_error *error)
{
	json_int_t seq = 0;
	json_t *record = json_loads(line, 0, NULL);
	json_unpack(record, "{s:I}", "seq", &seq);
	if (seq <= refused->last_seq) {
		json_decref(record);
		return 0;
	}
	json_object_set_new(record, "refused", wlb_json_text_cut(why, WHY_MAX));
	char *text = json_dumps(record, JSON_COMPACT);
	json_decref(record);
	if (text == NULL)
		return wlb_fail(error, "file %s: out of memory for a record", refused->path);
	size_t length = strlen(text);
	text[length++] = '\n'; /* in the place of the NUL */
	int rc = put_line(refused, text, length, error);
	free(text);
	if (rc == 0)
		refused->last_seq = seq;
	return rc;
}

int wlb_refused_close(struct wlb_refused *refused, struct wlb_error *error)
{
	int rc = fdatasync(refused->fd) == 0 ? wlb_parent_sync(refused->path, error)
	                                     : fail_io(refused->path, "synced", error);
	close(refused->fd);
	free(refused);
	return rc;
}

/* ---- damaged bytes ---------------------------------------------------------------------------------------- */

/* Writes what is kept already, a newline and the new bytes. */
static int keep_more(const char *path, const char *kept, size_t kept_length, const char *bytes, size_t length,
                     struct wlb_error *error)
{
	char *all = malloc(kept_length + 1 + length);
	if (all == NULL)
		return wlb_fail(error, "file %s: out of memory for %zu bytes", path, kept_length + 1 + length);
	memcpy(all, kept, kept_length);
	all[kept_length] = '\n';
	memcpy(all + kept_length + 1, bytes, length);
	int rc = wlb_file_write(path, all, kept_length + 1 + length, 0600, error);
	free(all);
	return rc;
}

int wlb_refused_keep_bytes(const char *spool_path, int64_t line, const char *bytes, size_t length,
                           struct wlb_error *error)
{
	char path[PATH_MAX], name[NAME_MAX + 1], *kept;
	size_t kept_length;
	const char *spool = name_of(spool_path);
	const char *end = strrchr(spool, '.');
	snprintf(name, sizeof(name), "%.*s", end != NULL ? (int)(end - spool) : -1, spool);
	size_t name_length = strlen(name);
	snprintf(name + name_length, sizeof(name) - name_length, ".%" PRId64, line);
	if (path_beside(path, spool_path, name, ".damaged", error) != 0)
		return -1;
	if (access(path, F_OK) != 0)
		return wlb_file_write(path, bytes, length, 0600, error);
	if (wlb_file_read(path, REFUSED_BYTES_MAX, &kept, &kept_length, error) != 0)
		return -1;
	bool is_kept = kept_length >= length && memcmp(kept + kept_length - length, bytes, length) == 0;
	int rc = is_kept ? 0 : keep_more(path, kept, kept_length, bytes, length, error);
	free(kept);
	return rc;
}

/* ---- the notice ------------------------------------------------------------------------------------------- */

void wlb_refused_leave_notice(const char *spool_path, const char *line)
{
	char path[PATH_MAX], text[1024];
	struct stat about;
	if (path_beside(path, spool_path, "notice", "", NULL) != 0)
		return;
	size_t length = wlb_text_show(text, sizeof(text) - 1, line);
	text[length++] = '\n';
	int fd = wlb_own_file_open(path, O_WRONLY | O_CREAT | O_APPEND, NULL);
	if (fd < 0)
		return;
	if (fstat(fd, &about) == 0 && about.st_size + (off_t)length <= NOTICE_BYTES_MAX)
		(void)!write(fd, text, length);
	close(fd);
}

char *wlb_refused_take_notice(const char *dir)
{
	char folder[PATH_MAX], path[PATH_MAX], mine[PATH_MAX];
	char *text = NULL;
	int f = snprintf(folder, sizeof(folder), "%s/refused", dir);
	int n = snprintf(path, sizeof(path), "%s/refused/notice", dir);
	int m = snprintf(mine, sizeof(mine), "%s/refused/notice.%d", dir, (int)getpid());
	if (f >= (int)sizeof(folder) || check_own_folder(folder, NULL) != 0)
		return NULL;
	/* Of two processes that take the notice at the same time one gets it. */
	if (n >= (int)sizeof(path) || m >= (int)sizeof(mine) || rename(path, mine) != 0)
		return NULL;
	if (wlb_file_read(mine, NOTICE_BYTES_MAX, &text, NULL, NULL) != 0)
		text = NULL;
	unlink(mine);
	return text;
}

/* ---- restoring -------------------------------------------------------------------------------------------- */

/* Writes the records of `text` after its header, numbered from first_seq on and without the coordinator's messages. */
static int write_numbered(FILE *out, char *text, int64_t first_seq)
{
	char *rest = strchr(text, '\n');
	int64_t seq = first_seq;
	for (char *line = rest != NULL ? strtok_r(rest + 1, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		json_t *record = json_loads(line, 0, NULL);
		if (record == NULL)
			continue;
		json_object_del(record, "refused");
		json_object_set_new(record, "seq", json_integer(seq++));
		int rc = json_dumpf(record, out, JSON_COMPACT);
		json_decref(record);
		if (rc != 0 || fputc('\n', out) == EOF)
			return -1;
	}
	return 0;
}

static int number_file(const char *path, const struct wlb_spool_identity *identity, int64_t first_seq,
                       struct wlb_error *error)
{
	char *text = NULL, *numbered = NULL, header[WLB_SPOOL_HEADER_MAX];
	size_t length;
	if (wlb_file_read(path, REFUSED_BYTES_MAX, &text, NULL, error) != 0)
		return -1;
	wlb_spool_header(header, identity, first_seq);
	FILE *out = open_memstream(&numbered, &length);
	int rc = out != NULL && fputs(header, out) >= 0 ? write_numbered(out, text, first_seq) : -1;
	if (out != NULL && fclose(out) != 0)
		rc = -1;
	rc = rc == 0 ? wlb_file_write(path, numbered, length, 0600, error)
	             : wlb_fail(error, "file %s: out of memory for its records", path);
	free(numbered);
	free(text);
	return rc;
}

int wlb_refused_restore(const char *dir, const char *name, int64_t first_seq, struct wlb_error *error)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct wlb_spool_identity identity;
	int64_t numbered_from;
	if (snprintf(path, sizeof(path), "%s/refused/%s", dir, name) >= (int)sizeof(path) ||
	    snprintf(target, sizeof(target), "%s/%s", dir, name) >= (int)sizeof(target))
		return wlb_fail(error, "directory %.100s...: the path is too long", dir);
	if (access(target, F_OK) == 0)
		return 0;
	if (wlb_spool_peek(path, &identity, &numbered_from, error) != 0)
		return -1;
	if (numbered_from == WLB_SPOOL_UNNUMBERED && number_file(path, &identity, first_seq, error) != 0)
		return -1;
	/* Not rename(), which would replace a spool that has appeared meanwhile. If only one of the two succeeds, the
	 * file is numbered, and records delivered twice are stored once. */
	if (link(path, target) != 0)
		return errno == EEXIST ? 0 : fail_io(path, "moved back", error);
	return unlink(path) == 0 ? 1 : fail_io(path, "removed", error);
}
