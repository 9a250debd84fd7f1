/*
 * Reads the documents of one input file, decompresses gzip, and has programs turn Zstandard and Parquet into text. What
 * the file holds is told by its content: JSON lines, or JSON values such as one array of objects, hold one document in
 * each object, and any other text is one document. A name that promises JSON (*.jsonl, *.ndjson, *.json, also with .gz
 * or .zst) whose content is none is refused.
 */
#ifndef WORKER_DATA_SOURCE_H
#define WORKER_DATA_SOURCE_H

#include <signal.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/converter.h"
#include "worker/data/text_batch.h"

enum wlb_source_result {
	WLB_SOURCE_DOCUMENT, /* *text is the next document; valid until the next call */
	WLB_SOURCE_NO_TEXT,  /* error: the text of a JSON object is null; the next document can be read */
	WLB_SOURCE_END,
	WLB_SOURCE_NOT_TEXT,   /* error: the file has NUL bytes, or a known format: an image, an archive, ...; or it is
	                        * JSON   whose first object has no such text, or is named as JSON and is none */
	WLB_SOURCE_UNREADABLE, /* error: permissions, I/O, memory */
	WLB_SOURCE_MALFORMED,  /* error: a document is too large, its gzip is damaged, or a line of JSONL is invalid */
	WLB_SOURCE_INTERRUPTED,
};

struct wlb_source;

struct wlb_source_options {
	const char *json_key;  /* the field of a JSON object that holds the text, or the messages */
	int64_t largest_bytes; /* a file or line must be smaller, since it is held in memory; at least 2^16 */
	struct wlb_converter_programs programs;
	int takes_sentences; /* the text of a JSON object may be an array of strings */
	/* The field is an array of messages: the text is where the object was read, "x.jsonl: line 3:", NUL, and the
	 * whole object as JSON. A file that is no JSON is no text. */
	int takes_messages;
	/* Read before each 64 KiB and each line: a file of a slow file system takes hours. */
	const volatile sig_atomic_t *interrupted;
};

/* Copies the options. NULL: the file cannot be opened. */
struct wlb_source *wlb_source_open(const char *path, const struct wlb_source_options *options, struct wlb_error *error);
enum wlb_source_result wlb_source_next(struct wlb_source *source, struct wlb_text *text, struct wlb_error *error);
/* Returns how many bytes of the file have been read. */
int64_t wlb_source_position(const struct wlb_source *source);
void wlb_source_close(struct wlb_source *source); /* NULL allowed */

#endif
