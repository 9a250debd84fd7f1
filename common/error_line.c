#include "common/error_line.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "libwlb/wlb.h"

enum { LINE_BYTES = 1024, PREFIX_BYTES = 64 };

static const char traceback[] = "Traceback (most recent call last):";

struct scan {
	struct wlb_error_line best, fallback; /* the first that is no consequence, and the first that is one */
	struct wlb_error_line pending;        /* the last one, which the next lines may complete */
	char pending_prefix[PREFIX_BYTES];    /* before each line of its process */
	bool is_chained;                      /* the next exception of this process follows from the pending one */

	bool is_in_frames; /* the exception of a traceback follows */
	char prefix[PREFIX_BYTES];

	bool is_in_table; /* of torchrun, in the part of the root cause */
	int table_rank;   /* -1: not read */
	int root_rank;    /* of the first table whose root cause was not ended by the launcher; -1: none */
};

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Copies a line without the sequences that set colours, and without bytes 0. */
static void clean(char *to, size_t size, const char *from, size_t count)
{
	size_t length = 0;
	for (size_t i = 0; i < count && length + 1 < size; i++) {
		if (from[i] == '\x1b' && i + 1 < count && from[i + 1] == '[') {
			for (i += 2; i < count && !isalpha((unsigned char)from[i]); i++)
				;
			continue;
		}
		if (from[i] != '\0')
			to[length++] = from[i];
	}
	to[length] = '\0';
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* srun prints lines of its own between those of a rank, also within a traceback. */
static bool is_of_slurm(const char *line)
{
	return begins(line, "srun: ") || begins(line, "slurmstepd");
}

/* "[rank3]: " of PyTorch, "3: " of srun --label; -1: the prefix names none. */
static int rank_of(const char *prefix)
{
	int rank = -1, end = 0;
	if (sscanf(prefix, "[rank%7d]:%n", &rank, &end) == 1 && end > 0)
		return rank;
	end = 0;
	return sscanf(prefix, "%7d: %n", &rank, &end) == 1 && end > 0 && rank >= 0 ? rank : -1;
}

/* Whether an error follows from the end of another process. */
static bool is_consequence(const char *text)
{
	static const char *const words[] = {
		"ChildFailedError",
		"DistBackendError",
		"DistNetworkError",
		"DistStoreError",
		"RendezvousTimeout",
		"RendezvousConnection",
		"RendezvousClosed",
		"SignalException",
		"KeyboardInterrupt",
		"ProcessRaisedException",
		"BrokenPipeError",
		"ProcessExitedException",
		"Connection closed by",
		"Connection reset by",
		"Connection refused",
		"Broken pipe",
		"SIGTERM",
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]) != NULL)
			return true;
	return false;
}

/* ---- what was found ---------------------------------------------------------------------------------------------- */

static void commit(struct scan *scan)
{
	struct wlb_error_line *pending = &scan->pending;
	if (!pending->known)
		return;
	pending->is_consequence = is_consequence(pending->text);
	struct wlb_error_line *to = pending->is_consequence ? &scan->fallback : &scan->best;
	/* A table repeats the text, and has the rank. */
	if (to->known && to->rank < 0 && strcmp(to->text, pending->text) == 0)
		to->rank = pending->rank;
	if (!to->known)
		*to = *pending;
	pending->known = false;
}

static void find(struct scan *scan, const char *prefix, const char *text, int rank)
{
	struct wlb_error_line *pending = &scan->pending;
	char cause[sizeof(pending->cause)] = "";
	if (pending->known && scan->is_chained && strcmp(scan->pending_prefix, prefix) == 0)
		wlb_text_show(cause, sizeof(cause), pending->cause[0] != '\0' ? pending->cause : pending->text);
	else
		commit(scan);
	*pending = (struct wlb_error_line){.known = true, .rank = rank >= 0 ? rank : -1};
	wlb_text_show(pending->text, sizeof(pending->text), text);
	memcpy(pending->cause, cause, sizeof(cause));
	snprintf(scan->pending_prefix, sizeof(scan->pending_prefix), "%s", prefix);
	scan->is_chained = false;
}

/* Appends to what the line before said. */
static void extend(struct scan *scan, const char *between, const char *text)
{
	struct wlb_error_line *pending = &scan->pending;
	char before[sizeof(pending->text)];
	memcpy(before, pending->text, sizeof(before));
	if (pending->known)
		wlb_text_format(pending->text, sizeof(pending->text), "%s%s%s", before, between, text);
}

/* ---- tracebacks of Python ---------------------------------------------------------------------------------------- */

/* "ValueError: text", "KeyboardInterrupt", "torch.OutOfMemoryError: text"; "INFO: text" is a log's. */
static bool is_exception(const char *text)
{
	size_t length = 0;
	bool has_lower = false;
	while (isalnum((unsigned char)text[length]) || text[length] == '_' || text[length] == '.')
		has_lower = islower((unsigned char)text[length++]) || has_lower;
	return has_lower && !isdigit((unsigned char)text[0]) && text[0] != '.' &&
	       (text[length] == '\0' || (text[length] == ':' && (text[length + 1] == ' ' || text[length + 1] == '\0')));
}

/* "  File "train.py", line 7", which begins a SyntaxError; where a function follows, the frame is another's. */
static bool is_syntax_frame(const char *line)
{
	const char *number = strstr(line, "\", line ");
	return begins(line, "  File \"") && number != NULL && number[strlen("\", line ")] != '\0' &&
	       number[strlen("\", line ") + strspn(number + strlen("\", line "), "0123456789")] == '\0';
}

/* Begins a traceback, whose lines have the same prefix. */
static bool begin_frames(struct scan *scan, const char *line)
{
	static const char group[] = "+ Exception Group ", original[] = "Original ", in_table[] = "  traceback : ";
	const char *at = strstr(line, traceback);
	if (at == NULL && !is_syntax_frame(line))
		return false;
	size_t length = at != NULL ? (size_t)(at - line) : 0;
	if (scan->is_in_frames && at == NULL)
		return false;
	snprintf(scan->prefix, sizeof(scan->prefix), "%.*s", (int)length, line);
	if (length >= sizeof(scan->prefix))
		scan->prefix[0] = '\0';
	char *known = strstr(scan->prefix, group);
	if (known != NULL)
		memcpy(known, "| ", sizeof("| "));
	known = strstr(scan->prefix, original);
	if (known != NULL) {
		*known = '\0';
		scan->is_chained = true;
	}
	if (strcmp(scan->prefix, in_table) == 0)
		scan->prefix[2] = '\0';
	scan->is_in_frames = true;
	return true;
}

static bool read_frames(struct scan *scan, const char *line)
{
	size_t length = strlen(scan->prefix);
	if (!scan->is_in_frames || strncmp(line, scan->prefix, length) != 0 || !is_exception(line + length))
		return false;
	int rank = rank_of(scan->prefix);
	find(scan, scan->prefix, line + length, rank < 0 && scan->is_in_table ? scan->table_rank : rank);
	scan->is_in_frames = false;
	return true;
}

static bool read_chain(struct scan *scan, const char *line)
{
	if (strstr(line, "During handling of the above exception, another") == NULL &&
	    strstr(line, "The above exception was the direct cause of") == NULL)
		return false;
	scan->is_chained = true;
	return true;
}

/* ---- torchrun's table -------------------------------------------------------------------------------------------- */

static bool read_table(struct scan *scan, const char *line)
{
	static const char signal[] = "  traceback : Signal ";
	int code = 0;
	if (begins(line, "Root Cause (first observed failure):")) {
		scan->is_in_table = true;
		scan->table_rank = -1;
		return true;
	}
	if (scan->is_in_table && begins(line, "====")) {
		scan->is_in_table = false;
		return true;
	}
	if (!scan->is_in_table)
		return false;
	if (sscanf(line, "  rank : %7d", &scan->table_rank) == 1)
		return true;
	if (sscanf(line, "  exitcode : %7d", &code) == 1 && code != -15 && scan->root_rank < 0 && scan->table_rank >= 0)
		scan->root_rank = scan->table_rank;
	if (!begins(line, signal))
		return false;
	find(scan, "", line + strlen("  traceback : "), scan->table_rank);
	return true;
}

/* ---- programs in other languages --------------------------------------------------------------------------------- */

static bool read_terminate(struct scan *scan, const char *line)
{
	static const char instance[] = "terminate called after throwing an instance of '", what[] = "  what():  ";
	char type[256];
	const char *at = strstr(line, "terminate called ");
	if (at != NULL) {
		bool has_type = begins(at, instance) && sscanf(at + strlen(instance), "%255[^']", type) == 1;
		find(scan, "", has_type ? type : at, rank_of(line));
		return true;
	}
	at = strstr(line, what);
	if (at == NULL)
		return false;
	extend(scan, ": ", at + strlen(what));
	return true;
}

/* Lines that say all, from the words on, or from their beginning. */
static bool read_abort(struct scan *scan, const char *line)
{
	static const struct {
		const char *words;
		bool is_whole_line;
	} known[] = {
		{"Fatal Python error: ", false},
		{": Assertion `", true},
		{"*** stack smashing detected ***", false},
		{"double free or corruption", false},
		{"free(): invalid", false},
		{"malloc(): ", false},
		{"corrupted size vs. prev_size", false},
		{"munmap_chunk(): invalid", false},
		{"' panicked at ", true},
		{"application called MPI_Abort(", false},
		{"Fatal error in PMPI_", false},
		{"Fatal error in MPI_", false},
		{"An error occurred in MPI_", false},
		{"MPI_ABORT was invoked on rank ", false},
	};
	int rank = rank_of(line);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *at = strstr(line, known[i].words);
		if (at == NULL)
			continue;
		if (rank < 0 && sscanf(at, "MPI_ABORT was invoked on rank %7d", &rank) != 1)
			rank = -1;
		find(scan, "", known[i].is_whole_line ? line : at, rank);
		return true;
	}
	return false;
}

/* What follows a line of MPI: "with errorcode 7.", "[n1:12] *** MPI_ERR_TRUNCATE: message truncated". */
static bool read_mpi(struct scan *scan, const char *line)
{
	const char *at = strstr(line, "*** MPI_ERR_");
	bool is_mpi = scan->pending.known && strstr(scan->pending.text, "MPI_") != NULL;
	if (!is_mpi || (at == NULL && !begins(line, "with errorcode ")))
		return false;
	extend(scan, at != NULL ? ": " : " ", at != NULL ? at + strlen("*** ") : line);
	return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void read_line(struct scan *scan, const char *line)
{
	if (is_of_slurm(line) || read_table(scan, line) || begin_frames(scan, line) || read_frames(scan, line) ||
	    read_chain(scan, line) || read_terminate(scan, line) || read_mpi(scan, line))
		return;
	read_abort(scan, line);
}

void wlb_error_line_find(const char *bytes, size_t count, struct wlb_error_line *found)
{
	struct scan scan = {.table_rank = -1, .root_rank = -1};
	char line[LINE_BYTES];
	for (size_t at = 0; at < count;) {
		size_t end = at;
		while (end < count && bytes[end] != '\n' && bytes[end] != '\r')
			end++;
		clean(line, sizeof(line), bytes + at, end - at);
		read_line(&scan, line);
		at = end + 1;
	}
	commit(&scan);
	*found = scan.best.known ? scan.best : scan.fallback;
	if (!found->known)
		found->rank = -1;
	else if (found->rank < 0 && !found->is_consequence)
		found->rank = scan.root_rank;
}

/* The line of dashes before and after what Open MPI says in ranks whose peer has ended. */
static bool is_rule(const char *line)
{
	enum { DASHES = 74 };
	size_t dashes = strspn(line, "-");
	return dashes >= DASHES && line[dashes] == '\0';
}

static bool may_be_cause(const char *line)
{
	const char *word = line;
	while (*word != '\0' && !isalnum((unsigned char)*word))
		word++;
	return *word != '\0' && !is_of_slurm(line) && !is_consequence(line);
}

void wlb_error_line_last(const char *bytes, size_t count, struct wlb_error_line *found)
{
	char line[LINE_BYTES], last[LINE_BYTES] = "", text[sizeof(found->text)];
	bool is_ended = false, is_between_rules = false;
	*found = (struct wlb_error_line){.rank = -1};
	for (size_t at = 0; at < count && !is_ended;) {
		size_t end = at;
		while (end < count && bytes[end] != '\n')
			end++;
		clean(line, sizeof(line), bytes + at, end - at);
		is_ended = begins(line, "srun: error: ") && strstr(line, ": task") != NULL;
		is_between_rules ^= is_rule(line);
		if (!is_between_rules && may_be_cause(line))
			memcpy(last, line, sizeof(last));
		at = end + 1;
	}
	if (!is_ended || last[0] == '\0')
		return;
	wlb_text_show(text, sizeof(text), last);
	wlb_text_format(found->text, sizeof(found->text), "last line of stderr: %s", text);
	found->rank = rank_of(last);
	found->known = true;
}

/* Where it has a traceback, that says more than the message. */
int wlb_error_file_read(const char *bytes, size_t count, struct wlb_error_line *found)
{
	json_t *file = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, NULL);
	json_t *message = json_object_get(file, "message");
	const char *text = json_string_value(message), *stack = NULL;
	*found = (struct wlb_error_line){.rank = -1};
	if (json_is_object(message)) {
		text = json_string_value(json_object_get(message, "message"));
		stack = json_string_value(json_object_get(json_object_get(message, "extraInfo"), "py_callstack"));
	}
	if (stack != NULL)
		wlb_error_line_find(stack, strlen(stack), found);
	if (text != NULL && *text != '\0') {
		found->known = true;
		wlb_text_show(found->text, sizeof(found->text), text);
		found->is_consequence = is_consequence(found->text);
	}
	json_decref(file);
	return found->known ? 0 : -1;
}
