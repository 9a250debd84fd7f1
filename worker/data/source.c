#include "worker/data/source.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "worker/data/input.h"
#include "worker/data/json_line.h"

enum { READ_BYTES = 1 << 16 }; /* at once, and the first capacity of the buffer */

struct wlb_source {
	char *path;
	struct wlb_source_options options;
	gzFile file;
	char *buffer;
	int64_t capacity;
	int64_t line;
	int is_jsonl;
	int at_end;
	json_t *document; /* of the last line */
};

static int ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n >= m && strcmp(text + n - m, end) == 0;
}

struct wlb_source *wlb_source_open(const char *path, const struct wlb_source_options *options, struct wlb_error *error)
{
	int64_t bytes;
	int fd = wlb_input_open(path, &bytes, error);
	if (fd < 0)
		return NULL;
	struct wlb_source *s = calloc(1, sizeof(*s));
	if (s != NULL) {
		s->options = *options;
		s->is_jsonl = ends_with(path, ".jsonl") || ends_with(path, ".jsonl.gz");
		s->path = strdup(path);
		s->capacity = READ_BYTES;
		s->buffer = malloc(READ_BYTES);
		s->file = gzdopen(fd, "r"); /* reads what is not gzip as it is */
	}
	if (s == NULL || s->path == NULL || s->buffer == NULL || s->file == NULL) {
		wlb_fail(error, "%s: out of memory", path);
		if (s == NULL || s->file == NULL)
			close(fd);
		wlb_source_close(s);
		return NULL;
	}
	gzbuffer(s->file, READ_BYTES);
	return s;
}

void wlb_source_close(struct wlb_source *s)
{
	if (s == NULL)
		return;
	if (s->file != NULL)
		gzclose(s->file);
	json_decref(s->document);
	free(s->buffer);
	free(s->path);
	free(s);
}

/* Writes where in the file the reader is: the line of JSONL, else nothing. */
static const char *name_line(const struct wlb_source *s, char line[40])
{
	line[0] = '\0';
	if (s->is_jsonl)
		snprintf(line, 40, " line %lld:", (long long)s->line + 1);
	return line;
}

/* Reserves memory for a byte after `used`. */
static enum wlb_source_result reserve(struct wlb_source *s, int64_t used, struct wlb_error *error)
{
	char line[40];
	if (used < s->capacity)
		return WLB_SOURCE_DOCUMENT;
	if (s->capacity >= s->options.largest_bytes) {
		wlb_fail(error, "%s:%s a document must have less than %lld bytes: split it", s->path,
		         name_line(s, line), (long long)s->options.largest_bytes);
		return WLB_SOURCE_MALFORMED;
	}
	int64_t capacity = 2 * s->capacity < s->options.largest_bytes ? 2 * s->capacity : s->options.largest_bytes;
	char *buffer = realloc(s->buffer, (size_t)capacity);
	if (buffer == NULL) {
		wlb_fail(error, "%s: out of memory for a document of %lld bytes", s->path, (long long)used);
		return WLB_SOURCE_UNREADABLE;
	}
	s->buffer = buffer;
	s->capacity = capacity;
	return WLB_SOURCE_DOCUMENT;
}

/* How many bytes the next read may take: a call of zlib does not return early where a signal arrives. */
static unsigned free_bytes(const struct wlb_source *s, int64_t used)
{
	int64_t left = s->capacity - used;
	return left < READ_BYTES ? (unsigned)left : READ_BYTES;
}

/* Returns WLB_SOURCE_END where the file was read to its end; else what is wrong: the system, or the file. */
static enum wlb_source_result check_stream(const struct wlb_source *s, struct wlb_error *error)
{
	int code;
	char line[40];
	const char *why = gzerror(s->file, &code);
	if (code == Z_OK || code == Z_STREAM_END)
		return WLB_SOURCE_END;
	if (code == Z_ERRNO)
		why = strerror(errno);
	else if (code == Z_BUF_ERROR)
		why = "the compressed data end too early";
	else if (strstr(why, ": ") !=
	         NULL) /* zlib's message has the descriptor instead of the path: "<fd:4>: reason" */
		why = strstr(why, ": ") + 2;
	enum wlb_source_result result =
		code == Z_ERRNO || code == Z_MEM_ERROR ? WLB_SOURCE_UNREADABLE : WLB_SOURCE_MALFORMED;
	wlb_fail(error, "%s:%s cannot be read: %s%s", s->path, name_line(s, line), why,
	         result == WLB_SOURCE_MALFORMED ? ": repair the file, or remove it" : "");
	return result;
}

/* Returns the name of the format of a file that begins with these bytes, or NULL. A short file of it has no NUL. */
static const char *format_of(const char *data, int64_t bytes)
{
	static const struct {
		const char *name;
		int64_t offset;
		const char *magic;
	} formats[] = {
		{"Zstandard", 0, "\x28\xb5\x2f\xfd"},
		{"xz", 0, "\xfd\x37zXZ"},
		{"bzip2", 4, "1AY&SY"},
		{"LZ4", 0, "\x04\x22\x4d\x18"},
		{"zip", 0, "PK\x03\x04"},
		{"Parquet", 0, "PAR1\x15"},
		{"tar", 257, "ustar"},
	};
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		int64_t magic_bytes = (int64_t)strlen(formats[i].magic);
		if (bytes >= formats[i].offset + magic_bytes &&
		    memcmp(data + formats[i].offset, formats[i].magic, (size_t)magic_bytes) == 0)
			return formats[i].name;
	}
	return NULL;
}

/* Returns 1 with the reason where what was read last, the `got` bytes before `used`, shows that the file is not text.
 */
static int is_not_text(const struct wlb_source *s, int64_t used, int got, struct wlb_error *error)
{
	const char *format = format_of(s->buffer, used);
	if (format != NULL)
		wlb_fail(error, "%s: has the format %s: convert it to text or JSONL; only gzip is decompressed",
		         s->path, format);
	else if (memchr(s->buffer + used - got, '\0', (size_t)got) != NULL)
		wlb_fail(error, "%s: has NUL bytes: text must have none", s->path);
	else
		return 0;
	return 1;
}

static enum wlb_source_result next_file(struct wlb_source *s, const char **text, int64_t *length,
                                        struct wlb_error *error)
{
	enum wlb_source_result result;
	int64_t used = 0;
	if (s->at_end)
		return WLB_SOURCE_END;
	for (;;) {
		if (*s->options.interrupted)
			return WLB_SOURCE_INTERRUPTED;
		result = reserve(s, used, error);
		if (result != WLB_SOURCE_DOCUMENT)
			return result;
		int got = gzread(s->file, s->buffer + used, free_bytes(s, used));
		if (got <= 0)
			break;
		used += got;
		if (is_not_text(s, used, got, error))
			return WLB_SOURCE_NOT_TEXT;
	}
	result = check_stream(s, error);
	if (result != WLB_SOURCE_END)
		return result;
	s->at_end = 1;
	*text = s->buffer;
	*length = used;
	return WLB_SOURCE_DOCUMENT;
}

/* Reads a line without its end. */
static enum wlb_source_result read_line(struct wlb_source *s, int64_t *length, struct wlb_error *error)
{
	enum wlb_source_result result;
	int64_t used = 0;
	for (;;) {
		if (*s->options.interrupted)
			return WLB_SOURCE_INTERRUPTED;
		result = reserve(s, used + 1, error);
		if (result != WLB_SOURCE_DOCUMENT)
			return result;
		int64_t from = gztell(s->file);
		if (gzgets(s->file, s->buffer + used, (int)free_bytes(s, used)) == NULL)
			break;
		/* A line may hold NULs, at which strlen stops; JSON allows none, and the parser reports them. */
		used += gztell(s->file) - from;
		if (used > 0 && s->buffer[used - 1] == '\n') {
			*length = used - 1;
			return WLB_SOURCE_DOCUMENT;
		}
	}
	*length = used;
	result = check_stream(s, error);
	return result == WLB_SOURCE_END && used > 0 ? WLB_SOURCE_DOCUMENT : result;
}

/* Reads up to a line that is not empty. *line is in the buffer, without a byte order mark. */
static enum wlb_source_result skip_to_line(struct wlb_source *s, char **line, int64_t *length, struct wlb_error *error)
{
	for (;;) {
		enum wlb_source_result result = read_line(s, length, error);
		s->line++;
		if (result != WLB_SOURCE_DOCUMENT)
			return result;
		*line = s->buffer;
		if (s->line == 1 && *length >= 3 && memcmp(*line, "\xef\xbb\xbf", 3) == 0) {
			*line += 3;
			*length -= 3;
		}
		if (strspn(*line, " \t\r\n") < (size_t)*length)
			return result;
	}
}

static enum wlb_source_result next_line(struct wlb_source *s, const char **text, int64_t *length,
                                        struct wlb_error *error)
{
	char *line;
	int64_t bytes;
	enum wlb_source_result result = skip_to_line(s, &line, &bytes, error);
	if (result != WLB_SOURCE_DOCUMENT)
		return result;
	json_error_t at;
	json_decref(s->document);
	wlb_json_line_repair(line, bytes);
	/* No number is read: as reals, integers of 64 bits without a sign are taken too. */
	s->document = json_loadb(line, (size_t)bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &at);
	if (!json_is_object(s->document)) {
		wlb_fail(error, "%s: line %lld: %s: each line must be a JSON object in UTF-8", s->path,
		         (long long)s->line, s->document ? "an array" : at.text);
		return WLB_SOURCE_MALFORMED;
	}
	const json_t *value = json_object_get(s->document, s->options.json_key);
	if (!json_is_string(value)) {
		const char *is = value == NULL ? "missing" : json_is_null(value) ? "null" : "not a string";
		wlb_fail(error, "%s: line %lld: field '%s' is %s: it must be a string (see --json-key)", s->path,
		         (long long)s->line, s->options.json_key, is);
		return WLB_SOURCE_MALFORMED;
	}
	*text = json_string_value(value);
	*length = (int64_t)json_string_length(value);
	return WLB_SOURCE_DOCUMENT;
}

enum wlb_source_result wlb_source_next(struct wlb_source *s, const char **text, int64_t *length,
                                       struct wlb_error *error)
{
	return s->is_jsonl ? next_line(s, text, length, error) : next_file(s, text, length, error);
}
