/* `wlb data build`: makes a dataset from directories of text or JSONL. */
#ifndef WORKER_DATA_BUILD_H
#define WORKER_DATA_BUILD_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/source.h"

/* Each byte of a text is a token, and this token of its own ends each document. */
enum { WLB_BYTES_END_OF_DOCUMENT = 256 };

struct wlb_build_options {
	char *const *inputs; /* NULL-terminated */
	const char *output_prefix;
	struct wlb_source_options source; /* `interrupted` is set by a signal handler */
	int64_t min_bytes;                /* shorter documents are left out */
	int show_progress;                /* on stderr, where that is a terminal */
};

struct wlb_build_result {
	int64_t files;
	int64_t documents;
	int64_t tokens;
	int64_t too_short;  /* documents below min_bytes */
	int64_t not_text;   /* files */
	int64_t links;      /* symbolic links inside of directories, which are not followed */
	int64_t unreadable; /* files and folders */
	struct wlb_error first_unreadable;
	struct wlb_error first_not_text;
};

/* Returns 0, or -1 with the reason; then no output file is left. *bad_input is 1 where the same input would fail again
 * in the same way. */
int wlb_build(const struct wlb_build_options *options, struct wlb_build_result *result, int *bad_input,
              struct wlb_error *error);

#endif
