#include "worker/data/source.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "worker/data/converter.h"
#include "worker/data/gunzip.h"
#include "worker/data/input.h"
#include "worker/data/json_line.h"

#define BLANKS " \t\r\n"

enum { READ_BYTES = 1 << 16 }; /* at once, and the first capacity of the buffer */

/* What a file holds. A name tells it only where it promises JSON: then a file that holds something else is refused. */
enum kind {
	KIND_UNKNOWN, /* before the first document */
	KIND_TEXT,    /* one document */
	KIND_LINES,   /* a JSON object a line */
	KIND_VALUES,  /* JSON objects of any number of lines, and arrays of objects */
};

struct wlb_source {
	char *path;
	struct wlb_source_options options;
	struct wlb_gunzip *file;
	int converted; /* the file that `converter` reads; -1: none is converted */
	enum wlb_converter_format format;
	struct wlb_helper converter;
	char *buffer;       /* [capacity + 1] */
	int64_t begin, end; /* what has been read and not returned */
	int64_t capacity;
	enum kind promised; /* by the name: of KIND_VALUES either kind of JSON */
	enum kind kind;
	int64_t count;      /* lines or values that were read */
	int has_documents;  /* one was returned */
	json_t *document;   /* of the last line */
	char *conversation; /* the last text, where messages are taken */
	json_t *values;     /* an array */
};

static int ends_with(const char *text, size_t n, const char *end)
{
	size_t m = strlen(end);
	return n >= m && strncasecmp(text + n - m, end, m) == 0;
}

static enum kind promise_of(const char *path)
{
	size_t n = strlen(path);
	if (ends_with(path, n, ".gz"))
		n -= 3;
	else if (ends_with(path, n, ".zst"))
		n -= 4;
	if (ends_with(path, n, ".jsonl") || ends_with(path, n, ".ndjson"))
		return KIND_LINES;
	return ends_with(path, n, ".json") ? KIND_VALUES : KIND_UNKNOWN;
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
		s->promised = promise_of(path);
		s->path = strdup(path);
		s->capacity = READ_BYTES;
		s->buffer = malloc(READ_BYTES + 1);
		s->converted = -1;
		s->format = wlb_converter_tell(fd, &s->options.programs);
		s->file = wlb_gunzip_open(fd);
	}
	if (s == NULL || s->path == NULL || s->buffer == NULL || s->file == NULL) {
		wlb_fail(error, "%s: out of memory", path);
		if (s == NULL || s->file == NULL)
			close(fd);
		wlb_source_close(s);
		return NULL;
	}
	return s;
}

void wlb_source_close(struct wlb_source *s)
{
	if (s == NULL)
		return;
	wlb_gunzip_close(s->file);
	wlb_helper_end(&s->converter, 0, NULL, 0); /* one that has more to say is killed */
	if (s->converted >= 0)
		close(s->converted);
	json_decref(s->document);
	json_decref(s->values);
	free(s->conversation);
	free(s->buffer);
	free(s->path);
	free(s);
}

int64_t wlb_source_position(const struct wlb_source *s)
{
	off_t position = s->converted < 0 ? wlb_gunzip_position(s->file) : lseek(s->converted, 0, SEEK_CUR);
	return position < 0 ? 0 : position;
}

/* Writes where in the file the reader is: the line or value of JSON, else nothing. */
static const char *name_place(const struct wlb_source *s, int64_t number, char place[40])
{
	int has_lines = s->kind == KIND_LINES || (s->kind == KIND_UNKNOWN && s->promised == KIND_LINES);
	place[0] = '\0';
	if (has_lines || s->kind == KIND_VALUES)
		snprintf(place, 40, " %s %lld:", has_lines ? "line" : "value", (long long)number);
	return place;
}

/* Reserves memory for a byte after those that were read. */
static enum wlb_source_result reserve(struct wlb_source *s, struct wlb_error *error)
{
	char place[40];
	if (s->end < s->capacity)
		return WLB_SOURCE_DOCUMENT;
	if (s->capacity >= s->options.largest_bytes) {
		wlb_fail(error, "%s:%s a document must have less than %lld bytes: split it", s->path,
		         name_place(s, s->count + 1, place), (long long)s->options.largest_bytes);
		return WLB_SOURCE_MALFORMED;
	}
	int64_t capacity = 2 * s->capacity < s->options.largest_bytes ? 2 * s->capacity : s->options.largest_bytes;
	char *buffer = realloc(s->buffer, (size_t)capacity + 1);
	if (buffer == NULL) {
		wlb_fail(error, "%s: out of memory for a document of %lld bytes", s->path, (long long)s->end);
		return WLB_SOURCE_UNREADABLE;
	}
	s->buffer = buffer;
	s->capacity = capacity;
	return WLB_SOURCE_DOCUMENT;
}

/* The result for a file whose converter is missing, as for other formats. */
static enum wlb_source_result refuse_format(const struct wlb_source *s)
{
	return s->promised == KIND_LINES ? WLB_SOURCE_MALFORMED : WLB_SOURCE_NOT_TEXT;
}

/* Has the file converted, from its beginning: what is read then is the text. */
static enum wlb_source_result begin_conversion(struct wlb_source *s, struct wlb_error *error)
{
	struct wlb_error why;
	s->converted = wlb_gunzip_release(s->file);
	s->file = NULL;
	if (wlb_converter_start(&s->converter, s->format, &s->options.programs, s->converted, s->options.json_key,
	                        &why) < 0) {
		wlb_fail(error, "%s: %s", s->path, why.message);
		return refuse_format(s);
	}
	s->file = wlb_gunzip_open(s->converter.out);
	if (s->file == NULL) {
		wlb_fail(error, "%s: out of memory", s->path);
		return WLB_SOURCE_UNREADABLE;
	}
	s->converter.out = -1;
	if (s->format == WLB_CONVERTER_PARQUET)
		s->promised = KIND_LINES;
	return WLB_SOURCE_DOCUMENT;
}

/* Finds out, at the end of the text, whether it is all that the file has. */
static enum wlb_source_result end_conversion(struct wlb_source *s, struct wlb_error *error)
{
	struct wlb_error why;
	int rc = *s->options.interrupted ? 0 : wlb_converter_end(&s->converter, &why);
	if (*s->options.interrupted)
		return WLB_SOURCE_INTERRUPTED;
	if (rc == 0)
		return WLB_SOURCE_END;
	wlb_fail(error, "%s: cannot be read: %s", s->path, why.message);
	return rc == WLB_CONVERTER_MISSING ? WLB_SOURCE_NOT_TEXT : WLB_SOURCE_MALFORMED;
}

/* Reads more of the file, at most READ_BYTES, so that a signal is soon noticed. Returns WLB_SOURCE_END at its end. */
static enum wlb_source_result fill(struct wlb_source *s, struct wlb_error *error)
{
	char place[40];
	struct wlb_error why;
	if (*s->options.interrupted)
		return WLB_SOURCE_INTERRUPTED;
	memmove(s->buffer, s->buffer + s->begin, (size_t)(s->end - s->begin));
	s->end -= s->begin;
	s->begin = 0;
	enum wlb_source_result result = reserve(s, error);
	if (result != WLB_SOURCE_DOCUMENT)
		return result;
	int64_t room = s->capacity - s->end;
	int64_t got = wlb_gunzip_read(s->file, s->buffer + s->end, room < READ_BYTES ? room : READ_BYTES, &why);
	if (got < 0) {
		wlb_fail(error, "%s:%s cannot be read: %s%s", s->path, name_place(s, s->count + 1, place), why.message,
		         got == WLB_UNREADABLE ? "" : ": repair the file, or remove it");
		return got == WLB_UNREADABLE ? WLB_SOURCE_UNREADABLE : WLB_SOURCE_MALFORMED;
	}
	s->end += got;
	return got > 0 ? WLB_SOURCE_DOCUMENT : end_conversion(s, error);
}

/* Returns 1 with the reason where what the file begins with is known and is not text. A short file of it has no NUL. */
static int has_other_format(const struct wlb_source *s, struct wlb_error *error)
{
	static const struct {
		const char *name;
		int64_t offset;
		const char *magic;
		const char *remedy;
	} formats[] = {
		{"Zstandard", 0, "\x28\xb5\x2f\xfd", "decompress it with zstd -d"},
		{"Zstandard or LZ4", 1, "\x2a\x4d\x18", "decompress it with zstd -d or lz4 -d"},
		{"xz", 0, "\xfd\x37zXZ", "decompress it with xz -d"},
		{"bzip2", 4, "1AY&SY", "decompress it with bzip2 -d"},
		{"LZ4", 0, "\x04\x22\x4d\x18", "decompress it with lz4 -d"},
		{"gzip inside of gzip", 0, "\x1f\x8b\x08", "decompress it once with gzip -d"},
		{"compress", 0, "\x1f\x9d", "decompress it with gzip -d"},
		{"zip", 0, "PK\x03\x04", "unpack it with unzip"},
		{"7z", 0, "7z\xbc\xaf\x27\x1c", "unpack it with 7z"},
		{"tar", 257, "ustar", "unpack it with tar -x"},
		{"Parquet", 0, "PAR1\x15", "write its rows as JSONL, as pandas does with read_parquet and to_json"},
		{"Arrow", 0, "ARROW1", "write its rows as JSONL, as datasets does with to_json"},
		{"Avro", 0, "Obj\x01", "write its records as JSONL"},
		{"PDF", 0, "%PDF-", "write its text with pdftotext"},
		{"UTF-16", 0, "\xff\xfe", "convert it to UTF-8 with iconv"},
		{"UTF-16", 0, "\xfe\xff", "convert it to UTF-8 with iconv"},
	};
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		int64_t magic_bytes = (int64_t)strlen(formats[i].magic);
		if (s->end >= formats[i].offset + magic_bytes &&
		    memcmp(s->buffer + formats[i].offset, formats[i].magic, (size_t)magic_bytes) == 0) {
			wlb_fail(error,
			         "%s: has the format %s: %s; only text and JSON are read, also compressed by gzip or "
			         "zstd",
			         s->path, formats[i].name, formats[i].remedy);
			return 1;
		}
	}
	return 0;
}

/* Reads the rest of the file, which must be text. Returns WLB_SOURCE_END when it is in the buffer. */
static enum wlb_source_result read_rest(struct wlb_source *s, struct wlb_error *error)
{
	enum wlb_source_result result = WLB_SOURCE_DOCUMENT;
	for (int64_t checked = 0; result == WLB_SOURCE_DOCUMENT; result = fill(s, error)) {
		const char *begin = s->buffer + s->begin;
		if (memchr(begin + checked, '\0', (size_t)(s->end - s->begin - checked)) != NULL) {
			wlb_fail(error, "%s: has NUL bytes: text must have none", s->path);
			return WLB_SOURCE_NOT_TEXT;
		}
		checked = s->end - s->begin;
	}
	return result;
}

/* Finds the end of the line that begins `from` bytes behind s->begin. *length counts from s->begin, without the end of
 * the line. Returns WLB_SOURCE_END for the last line where it has none. */
static enum wlb_source_result find_line(struct wlb_source *s, int64_t from, int64_t *length, struct wlb_error *error)
{
	enum wlb_source_result result = WLB_SOURCE_DOCUMENT;
	for (; result == WLB_SOURCE_DOCUMENT; result = fill(s, error)) {
		const char *begin = s->buffer + s->begin;
		const char *end = memchr(begin + from, '\n', (size_t)(s->end - s->begin - from));
		from = *length = end != NULL ? end - begin : s->end - s->begin;
		if (end != NULL)
			return WLB_SOURCE_DOCUMENT;
	}
	return result;
}

/* Parses a value of `text`, which is repaired and has a NUL behind its bytes. Numbers are not used but of messages: as
 * reals, integers of 64 bits without a sign are taken too. */
static json_t *parse(const struct wlb_source *s, const char *text, int64_t bytes, size_t flags,
                     json_error_t *json_error)
{
	flags |= s->options.takes_messages ? JSON_ALLOW_NUL : JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
	return json_loadb(text, (size_t)bytes, flags, json_error);
}

/* Returns a repaired copy of these bytes of the buffer, from s->begin on, which may turn out to be no JSON; NULL where
 * memory is short. */
static char *repaired_copy(const struct wlb_source *s, int64_t bytes)
{
	char *copy = malloc((size_t)bytes + 1);
	if (copy == NULL)
		return NULL;
	memcpy(copy, s->buffer + s->begin, (size_t)bytes);
	copy[bytes] = '\0';
	wlb_json_line_repair(copy, bytes);
	return copy;
}

/* Parses all that is in the buffer as values one behind the other. Returns 1 with s->values, the members of an array as
 * values of their own; 0 with the reason where it is no JSON; -1 where memory is short. */
static int parse_values(struct wlb_source *s, struct wlb_error *error)
{
	int64_t bytes = s->end - s->begin, from = 0;
	char *copy = repaired_copy(s, bytes);
	s->values = json_array();
	if (copy == NULL || s->values == NULL) {
		wlb_fail(error, "%s: out of memory for %lld bytes of JSON", s->path, (long long)bytes);
		free(copy);
		return -1;
	}
	for (; (from += (int64_t)strspn(copy + from, BLANKS)) < bytes;) {
		json_error_t json_error;
		json_t *value = parse(s, copy + from, bytes - from, JSON_DISABLE_EOF_CHECK, &json_error);
		if (value == NULL) {
			wlb_fail(error, "%s: is named as JSON, but is none: %s", s->path, json_error.text);
			free(copy);
			return 0;
		}
		if (json_is_array(value))
			json_array_extend(s->values, value);
		else
			json_array_append(s->values, value);
		json_decref(value);
		from += json_error.position;
	}
	free(copy);
	return 1;
}

/* Whether the first line that is not blank, `blanks` bytes behind s->begin, is a JSON object by itself: 1 or 0, or -1
 * with *result where that cannot be found out. */
static int begins_with_object_line(struct wlb_source *s, int64_t blanks, enum wlb_source_result *result,
                                   struct wlb_error *error)
{
	int64_t length;
	json_error_t json_error;
	*result = find_line(s, blanks, &length, error);
	if (*result != WLB_SOURCE_DOCUMENT && *result != WLB_SOURCE_END)
		return -1;
	char *copy = repaired_copy(s, length);
	*result = WLB_SOURCE_UNREADABLE;
	if (copy == NULL)
		return wlb_fail(error, "%s: out of memory for %lld bytes of JSON", s->path, (long long)length);
	json_t *object = parse(s, copy + blanks, length - blanks, 0, &json_error);
	int found = json_is_object(object);
	json_decref(object);
	free(copy);
	return found;
}

/* Whether the second line of the file, which is in the buffer, is a JSON object by itself: 1 or 0, or -1 as above. */
static int has_second_object_line(struct wlb_source *s, int64_t blanks, enum wlb_source_result *result,
                                  struct wlb_error *error)
{
	int64_t length;
	*result = find_line(s, blanks, &length, error);
	if (*result != WLB_SOURCE_DOCUMENT)
		return *result == WLB_SOURCE_END ? 0 : -1;
	s->buffer[s->end] = '\0';
	int64_t from = length + (int64_t)strspn(s->buffer + s->begin + length, BLANKS);
	return s->buffer[s->begin + from] == '{' ? begins_with_object_line(s, from, result, error) : 0;
}

/* Finds out whether what begins with a brace or a bracket, `blanks` bytes behind s->begin, is JSON. */
static enum wlb_source_result judge_brackets(struct wlb_source *s, int64_t blanks, struct wlb_error *error)
{
	enum wlb_source_result result;
	int found = s->buffer[s->begin + blanks] == '{' ? begins_with_object_line(s, blanks, &result, error) : 0;
	if (found < 0)
		return result;
	if (found) {
		s->kind = KIND_LINES;
		return WLB_SOURCE_DOCUMENT;
	}
	result = read_rest(s, error);
	if (result != WLB_SOURCE_END)
		return result;
	found = parse_values(s, error);
	if (found < 0)
		return WLB_SOURCE_UNREADABLE;
	s->kind = found ? KIND_VALUES : KIND_TEXT;
	if (!found && s->buffer[s->begin + blanks] == '{') {
		int has_lines = has_second_object_line(s, blanks, &result, error);
		if (has_lines < 0)
			return result;
		if (has_lines) { /* of which the first is damaged, as its reader will say */
			s->kind = s->promised = KIND_LINES;
			return WLB_SOURCE_DOCUMENT;
		}
	}
	return !found && s->promised == KIND_VALUES ? WLB_SOURCE_NOT_TEXT : WLB_SOURCE_DOCUMENT;
}

/* Counts those behind s->begin before the first other byte, for which more is read. */
static enum wlb_source_result count_blanks(struct wlb_source *s, int64_t *blanks, struct wlb_error *error)
{
	enum wlb_source_result result = WLB_SOURCE_DOCUMENT;
	while (result == WLB_SOURCE_DOCUMENT) {
		s->buffer[s->end] = '\0';
		*blanks = (int64_t)strspn(s->buffer + s->begin, BLANKS);
		if (s->begin + *blanks < s->end)
			return WLB_SOURCE_DOCUMENT;
		result = fill(s, error);
	}
	s->buffer[s->end] = '\0';
	return result == WLB_SOURCE_END ? WLB_SOURCE_DOCUMENT : result;
}

/* Sets what the file holds by how it begins. Returns WLB_SOURCE_DOCUMENT where documents can be read. */
static enum wlb_source_result judge(struct wlb_source *s, struct wlb_error *error)
{
	enum wlb_source_result result =
		s->format == WLB_CONVERTER_NONE ? WLB_SOURCE_DOCUMENT : begin_conversion(s, error);
	if (result == WLB_SOURCE_DOCUMENT)
		result = fill(s, error);
	if (result != WLB_SOURCE_DOCUMENT && result != WLB_SOURCE_END)
		return result;
	if (has_other_format(s, error))
		return refuse_format(s);
	s->begin = s->end >= 3 && memcmp(s->buffer, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	int64_t blanks;
	result = count_blanks(s, &blanks, error);
	if (result != WLB_SOURCE_DOCUMENT)
		return result;
	char first = s->buffer[s->begin + blanks];
	s->kind = s->promised == KIND_LINES ? KIND_LINES : KIND_TEXT;
	if (s->kind == KIND_LINES)
		return WLB_SOURCE_DOCUMENT;
	if (first == '{' || first == '[')
		return judge_brackets(s, blanks, error);
	if (s->begin + blanks == s->end && s->promised == KIND_VALUES)
		s->kind = KIND_LINES; /* of which there is none */
	if (s->promised == KIND_UNKNOWN || first == '\0')
		return WLB_SOURCE_DOCUMENT;
	wlb_fail(error, "%s: is named as JSON, but begins with neither an object nor an array", s->path);
	return WLB_SOURCE_NOT_TEXT;
}

/* The whole file is one document. */
static enum wlb_source_result next_file(struct wlb_source *s, struct wlb_text *text, struct wlb_error *error)
{
	if (s->options.takes_messages) {
		wlb_fail(error, "%s: is no JSON: --messages takes JSON objects with a conversation each", s->path);
		return WLB_SOURCE_NOT_TEXT;
	}
	if (s->has_documents)
		return WLB_SOURCE_END;
	enum wlb_source_result result = read_rest(s, error);
	if (result != WLB_SOURCE_END)
		return result;
	*text = (struct wlb_text){.bytes = s->buffer + s->begin, .length = s->end - s->begin};
	return WLB_SOURCE_DOCUMENT;
}

/* Takes an array of strings, the sentences of a text. Returns 0 where the value is none. */
static int take_sentences(const json_t *value, struct wlb_text *text)
{
	if (!json_is_array(value))
		return 0;
	*text = (struct wlb_text){.sentences = value};
	for (size_t i = 0; i < json_array_size(value); i++) {
		const json_t *sentence = json_array_get(value, i);
		if (!json_is_string(sentence))
			return 0;
		text->length += (int64_t)json_string_length(sentence);
	}
	return 1;
}

/* Takes a conversation, in bytes that are those of the next one at the next call. */
static enum wlb_source_result take_conversation(struct wlb_source *s, const json_t *object, struct wlb_text *text,
                                                struct wlb_error *error)
{
	char place[40];
	size_t bytes = 0;
	free(s->conversation);
	s->conversation = NULL;
	FILE *to = open_memstream(&s->conversation, &bytes);
	int rc = to == NULL ? -1 : fprintf(to, "%s:%s", s->path, name_place(s, s->count, place));
	if (rc >= 0)
		rc = fputc('\0', to) == EOF ? -1 : json_dumpf(object, to, JSON_COMPACT);
	if (to != NULL && fclose(to) != 0)
		rc = -1;
	if (rc < 0) {
		wlb_fail(error, "%s: out of memory for a conversation", s->path);
		return WLB_SOURCE_UNREADABLE;
	}
	if ((int64_t)bytes >= s->options.largest_bytes) {
		wlb_fail(error, "%s:%s a conversation must have less than %lld bytes: split it", s->path, place,
		         (long long)s->options.largest_bytes);
		return WLB_SOURCE_MALFORMED;
	}
	*text = (struct wlb_text){.bytes = s->conversation, .length = (int64_t)bytes};
	return WLB_SOURCE_DOCUMENT;
}

/* Takes the text of an object; `why_none` says why `object` is NULL. JSON whose first object has no such text is not
 * meant to be trained, unless the file's name says otherwise. */
static enum wlb_source_result take_text(struct wlb_source *s, const json_t *object, const char *why_none,
                                        struct wlb_text *text, struct wlb_error *error)
{
	char place[40];
	enum wlb_source_result refusal =
		s->has_documents || s->promised == KIND_LINES ? WLB_SOURCE_MALFORMED : WLB_SOURCE_NOT_TEXT;
	name_place(s, s->count, place);
	if (!json_is_object(object)) {
		wlb_fail(error, "%s:%s %s: each %s must be a JSON object in UTF-8", s->path, place,
		         json_is_array(object) ? "an array"
		         : object != NULL      ? "no object"
		                               : why_none,
		         s->kind == KIND_LINES ? "line" : "value");
		return refusal;
	}
	const json_t *value = json_object_get(object, s->options.json_key);
	if (s->options.takes_sentences && take_sentences(value, text))
		return WLB_SOURCE_DOCUMENT;
	if (s->options.takes_messages && json_is_array(value))
		return take_conversation(s, object, text, error);
	if (s->options.takes_messages || !json_is_string(value)) {
		const char *what = s->options.takes_messages ? "an array of messages" : "a string";
		const char *other = s->options.takes_messages ? "not an array" : "not a string";
		const char *is = value == NULL ? "missing" : json_is_null(value) ? "null" : other;
		wlb_fail(error, "%s:%s field '%s' is %s: it must be %s (see --json-key)", s->path, place,
		         s->options.json_key, is, what);
		return json_is_null(value) ? WLB_SOURCE_NO_TEXT : refusal;
	}
	*text = (struct wlb_text){.bytes = json_string_value(value), .length = (int64_t)json_string_length(value)};
	return WLB_SOURCE_DOCUMENT;
}

/* Reads up to a line that is not blank. *line is in the buffer, with a NUL behind it. */
static enum wlb_source_result skip_to_line(struct wlb_source *s, char **line, int64_t *length, struct wlb_error *error)
{
	for (;;) {
		enum wlb_source_result result = find_line(s, 0, length, error);
		if (result != WLB_SOURCE_DOCUMENT && (result != WLB_SOURCE_END || *length == 0))
			return result;
		s->count++;
		*line = s->buffer + s->begin;
		(*line)[*length] = '\0';
		s->begin += *length + (result == WLB_SOURCE_DOCUMENT);
		if (strspn(*line, BLANKS) < (size_t)*length)
			return WLB_SOURCE_DOCUMENT;
	}
}

static enum wlb_source_result next_line(struct wlb_source *s, struct wlb_text *text, struct wlb_error *error)
{
	char *line;
	int64_t bytes;
	json_error_t json_error;
	enum wlb_source_result result = skip_to_line(s, &line, &bytes, error);
	if (result != WLB_SOURCE_DOCUMENT)
		return result;
	json_decref(s->document);
	wlb_json_line_repair(line, bytes);
	s->document = parse(s, line, bytes, 0, &json_error);
	return take_text(s, s->document, json_error.text, text, error);
}

static enum wlb_source_result next_value(struct wlb_source *s, struct wlb_text *text, struct wlb_error *error)
{
	if ((size_t)s->count == json_array_size(s->values))
		return WLB_SOURCE_END;
	return take_text(s, json_array_get(s->values, (size_t)s->count++), "", text, error);
}

enum wlb_source_result wlb_source_next(struct wlb_source *s, struct wlb_text *text, struct wlb_error *error)
{
	if (*s->options.interrupted)
		return WLB_SOURCE_INTERRUPTED;
	enum wlb_source_result result = s->kind == KIND_UNKNOWN ? judge(s, error) : WLB_SOURCE_DOCUMENT;
	if (result != WLB_SOURCE_DOCUMENT)
		return result;
	result = s->kind == KIND_LINES    ? next_line(s, text, error)
	         : s->kind == KIND_VALUES ? next_value(s, text, error)
	                                  : next_file(s, text, error);
	s->has_documents |= result == WLB_SOURCE_DOCUMENT || result == WLB_SOURCE_NO_TEXT;
	return result;
}
