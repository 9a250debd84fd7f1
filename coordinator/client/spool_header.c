#include "coordinator/client/spool_header.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "common/file.h"
#include "common/own_file.h"

enum {
	FORMAT_FROM_1 = 1, /* the first record has number 1 */
	FORMAT_FROM_N = 2, /* the header states the first record's number */
};

static int copy_name(char *to, size_t size, const char *name, const char *what, struct wlb_error *error)
{
	size_t length = name != NULL ? strlen(name) : 0;
	bool plain = length >= 1 && length < size && name[0] != '.';
	for (size_t i = 0; plain && i < length; i++)
		plain = isalnum((unsigned char)name[i]) || strchr("._-", name[i]) != NULL;
	if (!plain)
		return wlb_fail(error, "%s '%.80s': must have 1 to %zu letters, digits, '_', '-' or inner '.'", what,
		                name != NULL ? name : "", size - 1);
	memcpy(to, name, length + 1);
	return 0;
}

int wlb_spool_identify(struct wlb_spool_identity *identity, const char *run_id, const char *attempt_id,
                       const char *source, struct wlb_error *error)
{
	if (copy_name(identity->run_id, sizeof(identity->run_id), run_id, "run", error) != 0 ||
	    copy_name(identity->attempt_id, sizeof(identity->attempt_id), attempt_id, "attempt", error) != 0 ||
	    copy_name(identity->source, sizeof(identity->source), source, "source", error) != 0)
		return -1;
	identity->job_id = strtoll(identity->run_id, NULL, 10);
	return 0;
}

int wlb_spool_header(char header[WLB_SPOOL_HEADER_MAX], const struct wlb_spool_identity *identity, int64_t first_seq)
{
	char numbers[48] = "";
	if (first_seq != 1)
		snprintf(numbers, sizeof(numbers), ",\"first_seq\":%" PRId64, first_seq);
	return snprintf(header, WLB_SPOOL_HEADER_MAX,
	                "{\"wlb_spool\":%d,\"run_id\":\"%s\",\"attempt_id\":\"%s\",\"source\":\"%s\"%s}\n",
	                first_seq == 1 ? FORMAT_FROM_1 : FORMAT_FROM_N, identity->run_id, identity->attempt_id,
	                identity->source, numbers);
}

/* -1 with the rule when the line is not the header of a spool. */
static int parse_header(const char *path, const char *line, struct wlb_spool_identity *found, int64_t *first_seq,
                        struct wlb_error *error)
{
	json_t *header = json_loads(line, 0, NULL);
	int format = 0;
	const char *run, *attempt, *source;
	json_int_t first = 1;
	int rc = json_unpack(header, "{s:i, s:s, s:s, s:s, s?I}", "wlb_spool", &format, "run_id", &run, "attempt_id",
	                     &attempt, "source", &source, "first_seq", &first);
	if (rc != 0 || format < FORMAT_FROM_1 || format > FORMAT_FROM_N || first < 0 || first > INT64_MAX / 2)
		rc = wlb_fail(error, "spool %s: its first line is not the header of a spool of format %d or %d", path,
		              FORMAT_FROM_1, FORMAT_FROM_N);
	else
		rc = wlb_spool_identify(found, run, attempt, source, error);
	*first_seq = format == FORMAT_FROM_1 ? 1 : first;
	json_decref(header);
	return rc;
}

/* A writer that ended while it wrote the header leaves its first bytes; a file of another program begins otherwise. */
static bool is_torn_header(const char *bytes, size_t length)
{
	static const char beginning[] = "{\"wlb_spool\":";
	size_t common = length < sizeof(beginning) - 1 ? length : sizeof(beginning) - 1;
	return length < WLB_SPOOL_HEADER_MAX - 1 && memcmp(bytes, beginning, common) == 0;
}

enum wlb_spool_beginning wlb_spool_header_read(int fd, const char *path, struct wlb_spool_identity *identity,
                                               int64_t *first_seq, int *length, struct wlb_error *error)
{
	char line[WLB_SPOOL_HEADER_MAX];
	struct stat about;
	*length = 0;
	int rc = fstat(fd, &about);
	size_t bytes = rc != 0 ? 0 : (uintmax_t)about.st_size < sizeof(line) ? (size_t)about.st_size : sizeof(line) - 1;
	if (rc != 0 || wlb_pread_all(fd, line, bytes, 0) != 0) {
		wlb_fail(error, "spool %s: cannot be read: %s; it is left unchanged: check its file system", path,
		         strerror(errno));
		return WLB_SPOOL_UNREADABLE;
	}
	char *newline = memchr(line, '\n', bytes);
	if (newline == NULL && is_torn_header(line, bytes)) {
		wlb_fail(error, "spool %s: its header is incomplete", path);
		return WLB_SPOOL_BEGINS_TORN;
	}
	*(newline != NULL ? newline : line) = '\0';
	if (parse_header(path, line, identity, first_seq, error) != 0)
		return WLB_SPOOL_BEGINS_OTHERWISE;
	*length = (int)(newline - line) + 1;
	return WLB_SPOOL_BEGINS;
}

enum wlb_spool_beginning wlb_spool_peek(const char *path, struct wlb_spool_identity *identity, int64_t *first_seq,
                                        struct wlb_error *error)
{
	int length;
	int fd = wlb_own_file_open(path, O_RDONLY, error);
	if (fd < 0)
		return WLB_SPOOL_UNREADABLE;
	enum wlb_spool_beginning beginning = wlb_spool_header_read(fd, path, identity, first_seq, &length, error);
	close(fd);
	return beginning;
}
