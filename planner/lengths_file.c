#include "planner/lengths_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/line.h"
#include "planner/lengths_index.h"
#include "planner/lengths_sample.h"

enum { COUNT_DEFAULT = 100000, LINE_BYTES = 64 };

/* Replaces what a terminal may obey, for a message. */
static const char *make_printable(char *line)
{
	for (char *c = line; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return line;
}

/* Adds the length on a line of `length` bytes without its end. The line may hold NUL bytes. */
static int add_line(struct wlb_length_list *list, char *line, size_t length, struct wlb_error *error)
{
	char *end;
	errno = 0;
	long long tokens = strtoll(line, &end, 10);
	while (*end == ' ' || *end == '\t')
		end++;
	if (errno != 0 || end == line || end != line + length)
		return wlb_fail(error, "'%.40s': must be a whole number of tokens from 0 to %" PRId64,
		                make_printable(line), WLB_LENGTH_MAX_TOKENS);
	return wlb_length_list_add(list, tokens, error);
}

int wlb_length_list_read_text(FILE *in, const char *name, struct wlb_length_list *list, struct wlb_error *error)
{
	char line[LINE_BYTES];
	size_t length, number = 0;
	int rc = 0, found;
	while (rc == 0 && (found = wlb_line_read(in, line, sizeof(line), &length, error)) != 0) {
		number++;
		while (found > 0 && length > 0 && line[length - 1] == '\r')
			line[--length] = '\0';
		rc = found > 0 ? add_line(list, line, length, error) : -1;
		if (rc < 0)
			wlb_fail_in(error, "%s, line %zu", name, number);
	}
	if (rc == 0 && number == 0)
		rc = wlb_fail(error, "%s: is empty; one length a line is needed, in tokens", name);
	return rc;
}

/* Stores "seed=S", "tail=X" or "count=N" in its variable. */
static int parse_setting(const char *word, double *seed, double *tail, double *count, struct wlb_error *error)
{
	const struct {
		const char *key;
		double *value;
		double most;
	} keys[] = {{"seed=", seed, 0x1p53}, {"tail=", tail, 4.0}, {"count=", count, WLB_LENGTHS_MOST}};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t length = strlen(keys[i].key);
		if (strncmp(word, keys[i].key, length) != 0)
			continue;
		char *end;
		double value = strtod(word + length, &end);
		bool within = value >= 0.0 && value <= keys[i].most; /* else an integer might not hold it */
		bool whole = within && (keys[i].value == tail || value == (double)(int64_t)value);
		if (end == word + length || *end != '\0' || !whole)
			return wlb_fail(error, "'%.40s': must be a%s number from 0 to %.0f", word,
			                keys[i].value == tail ? "" : " whole", keys[i].most);
		*keys[i].value = value;
		return 0;
	}
	return wlb_fail(error, "'%.40s' is unknown: use seed=S, tail=X and count=N", word);
}

int wlb_length_list_generate(const char *how, struct wlb_length_list *list, struct wlb_error *error)
{
	double seed = 1.0, tail = 1.0, count = COUNT_DEFAULT;
	char *words = strdup(how), *rest = words;
	if (words == NULL)
		return wlb_fail(error, "out of memory for '%.40s'", how);
	const char *kind = strsep(&rest, ",");
	int rc = 0;
	if (strcmp(kind, "skewed") != 0)
		rc = wlb_fail(error, "generator '%.40s' is unknown: use gen:skewed", kind);
	for (const char *word; rc == 0 && (word = strsep(&rest, ",")) != NULL;)
		rc = parse_setting(word, &seed, &tail, &count, error);
	free(words);
	struct wlb_lengths lengths;
	if (rc == 0)
		wlb_lengths_init(&lengths, (uint64_t)seed, tail);
	for (double i = 0.0; rc == 0 && i < count; i++)
		rc = wlb_length_list_add(list, wlb_lengths_next(&lengths), error);
	return rc;
}

static int read_named(const char *path, struct wlb_length_list *list, struct wlb_error *error)
{
	FILE *in = fopen(path, "re");
	if (in == NULL)
		return wlb_fail(error, "%s: cannot be opened: %s", path, strerror(errno));
	int rc = wlb_length_list_read_text(in, path, list, error);
	fclose(in);
	return rc;
}

/* Maps the index, so that its size takes no memory; the lengths of all its documents do. */
static int read_index(const char *path, struct wlb_length_list *list, struct wlb_error *error)
{
	struct stat st = {0};
	void *data = MAP_FAILED;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* else opening a FIFO waits for a writer */
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	int rc = data != MAP_FAILED ? wlb_length_list_parse_index(data, (size_t)st.st_size, path, list, error)
	                            : wlb_fail(error, "%s: cannot be read: %s", path,
	                                       fd >= 0 && st.st_size == 0 ? "it is empty" : strerror(errno));
	if (data != MAP_FAILED)
		munmap(data, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Reads what `from` names; an index by `read_index_file`. */
static int read_from(const char *from, struct wlb_length_list *list,
                     int (*read_index_file)(const char *, struct wlb_length_list *, struct wlb_error *),
                     struct wlb_error *error)
{
	static const char generator[] = "gen:";
	char index[4096];
	int rc, length = snprintf(index, sizeof(index), "%s.idx", from);
	if (strcmp(from, "-") == 0)
		rc = wlb_length_list_read_text(stdin, "standard input", list, error);
	else if (strncmp(from, generator, strlen(generator)) == 0)
		rc = wlb_length_list_generate(from + strlen(generator), list, error);
	else if (access(from, F_OK) < 0 && length < (int)sizeof(index) && access(index, F_OK) == 0)
		rc = read_index_file(index, list, error);
	else
		rc = read_named(from, list, error);
	if (rc == 0 && list->total_tokens == 0)
		rc = wlb_fail(error, "%s: %zu documents without one token; there is nothing to work on", from,
		              list->count);
	return rc < 0 ? wlb_fail_in(error, "--lengths") : 0;
}

int wlb_length_list_read(const char *from, struct wlb_length_list *list, struct wlb_error *error)
{
	return read_from(from, list, read_index, error);
}

int wlb_length_list_sample(const char *from, struct wlb_length_list *list, struct wlb_error *error)
{
	return read_from(from, list, wlb_length_list_sample_index, error);
}
