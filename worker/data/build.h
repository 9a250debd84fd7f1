/* `wlb data build`: makes a dataset from directories of text or JSONL. */
#ifndef WORKER_DATA_BUILD_H
#define WORKER_DATA_BUILD_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/encoder.h"
#include "worker/data/omitted.h"
#include "worker/data/source.h"

struct wlb_build_options {
	char *const *inputs; /* NULL-terminated */
	const char *output_prefix;
	struct wlb_source_options source; /* `interrupted` is set by a signal handler */
	struct wlb_encoder_options encoder;
	int64_t min_bytes; /* shorter documents are left out */
	int strict;        /* a text that is null or a conversation that is refused ends the build */
	int show_progress; /* on stderr, where that is a terminal */
};

struct wlb_build_result {
	int64_t files;
	int64_t links; /* symbolic links inside of directories, which are not followed */
	int64_t documents;
	int64_t tokens;
	int64_t resumed_documents; /* of these, what an earlier build has left */
	int64_t refused;           /* of these, conversations that are empty documents, since they cannot be trained */
	struct wlb_omitted omitted;
	struct wlb_omitted_first first;
};

/* Returns 0, or -1 with the reason; then no output file is left, unless a tokenizer is used and the same call can go
 * on: then the message says so. *bad_input is 1 where the same input would fail again in the same way. */
int wlb_build(const struct wlb_build_options *options, struct wlb_build_result *result, int *bad_input,
              struct wlb_error *error);

#endif
