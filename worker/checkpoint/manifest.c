#include "worker/checkpoint/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/model_json.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/shard_index.h"
#include "worker/checkpoint/shard_lists.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"

/* Version 2 has whole blocks alone, with a digest of each, and no checksums of files. */
enum { VERSION = 3, OLDEST_VERSION = 2, LARGEST_MANIFEST_BYTES = 1 << 30 };

/* ---- writing ---- */

static json_t *format_schedule(const struct wlb_schedule_state *s)
{
	/* Seed and digests are strings because they have 64 bits, and JSON integers 63. The format calls spans
	 * "pieces".
	 */
	json_t *taken = s->groups > 0 ? json_array() : NULL; /* of a blend alone */
	for (int g = 0; g < s->groups; g++)
		json_array_append_new(taken, json_integer(s->taken[g]));
	return json_pack("{s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o*}", "seed",
	                 json_sprintf("%" PRIu64, s->seed), "documents", (json_int_t)s->documents, "tokens",
	                 (json_int_t)s->tokens, "index_digest", json_sprintf("%" PRIu64, s->index_digest),
	                 "token_digest", json_sprintf("%" PRIu64, s->token_digest), "epoch", (json_int_t)s->epoch,
	                 "position", (json_int_t)s->position, "pieces", (json_int_t)s->spans, "step",
	                 (json_int_t)s->step, "windows", (json_int_t)s->windows, "taken", taken);
}

/* Returns NULL where there is none. */
static json_t *format_ramp(const struct wlb_batch_ramp *ramp)
{
	return ramp->start == 0 ? NULL
	                        : json_pack("[I, I, I]", (json_int_t)ramp->start, (json_int_t)ramp->increment,
	                                    (json_int_t)ramp->windows);
}

static json_t *format_packer(int64_t bytes)
{
	return bytes < 0 ? json_null() : json_pack("{s:s, s:I}", "file", WLB_PACKER_NAME, "bytes", (json_int_t)bytes);
}

json_t *wlb_manifest_format_facts(const struct wlb_checkpoint_facts *facts)
{
	return json_pack("{s:I, s:f, s:I, s:I, s:o*, s:o, s:s, s:o, s:o, s:o*, s:o*}", "step", (json_int_t)facts->step,
	                 "train_loss", facts->train_loss, "seq_length", (json_int_t)facts->seq_length,
	                 "global_batch_size", (json_int_t)facts->global_batch_size, "rampup_batch_size",
	                 format_ramp(&facts->ramp), "seed", json_sprintf("%" PRIu64, facts->seed), "packing",
	                 wlb_strategy_name(facts->packing), "schedule", format_schedule(&facts->schedule), "model",
	                 wlb_model_json(&facts->model), "hyperparameters",
	                 facts->has_hyper ? wlb_hyperparameters_format(&facts->hyper) : NULL, "recent_norms",
	                 facts->norms.count > 0 ? wlb_recent_norms_format(&facts->norms) : NULL);
}

/* Appends a key whose values differ; NULL: it is not given. */
static void note_difference(const char *key, const json_t *was, const json_t *is, char *text, size_t size)
{
	const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(10), used = strlen(text);
	char *before = json_dumps(was, flags), *after = json_dumps(is, flags);
	snprintf(text + used, size - used, "%s%s was %s, is %s", used > 0 ? "; " : "", key,
	         before != NULL ? before : "not given", after != NULL ? after : "not given");
	free(before);
	free(after);
}

int wlb_manifest_compare_models(const struct wlb_model *was, const struct wlb_model *is, char *text, size_t size)
{
	json_t *of_was = wlb_model_json(was), *of_is = wlb_model_json(is), *of_both = json_object();
	const char *key;
	json_t *value;
	int count = of_was != NULL && of_is != NULL && json_object_update(of_both, of_was) == 0 &&
	                            json_object_update(of_both, of_is) == 0
	                    ? 0
	                    : -1;
	text[0] = '\0';
	json_object_foreach(of_both, key, value)
	{
		const json_t *before = json_object_get(of_was, key), *after = json_object_get(of_is, key);
		if (count < 0 || json_equal(before, after))
			continue;
		note_difference(key, before, after, text, size);
		count++;
	}
	json_decref(of_was);
	json_decref(of_is);
	json_decref(of_both);
	return count;
}

int wlb_manifest_write(const char *folder, const struct wlb_checkpoint_facts *facts, const struct wlb_weights *weights,
                       int64_t packer_bytes, int64_t *bytes, struct wlb_error *error)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/" WLB_MANIFEST_NAME, folder) >= (int)sizeof(path))
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	json_t *manifest = json_pack("{s:s, s:i}", "format", "wlb-checkpoint", "version", VERSION);
	int has_indexes = weights->index_count > 0;
	json_t *files =
		json_pack("{s:o, s:o, s:o}", "packer", format_packer(packer_bytes), has_indexes ? "indexes" : "shards",
	                  has_indexes ? wlb_shard_indexes_format(weights) : wlb_shard_list_format(weights, 0),
	                  "tensors", wlb_tensor_list_format(weights));
	int failed = json_object_update_new(manifest, wlb_manifest_format_facts(facts));
	failed |= json_object_update_new(manifest, files);
	char *text = failed ? NULL : json_dumps(manifest, JSON_INDENT(1));
	json_decref(manifest);
	if (text == NULL)
		return wlb_fail(error, "%s: out of memory, or a number in it is not finite", path);
	*bytes = (int64_t)strlen(text);
	wlb_file_report("writing", path);
	int rc = wlb_file_write(path, text, strlen(text), wlb_folder_file_mode(folder), error);
	free(text);
	return rc;
}

/* ---- reading ---- */

static int parse_u64(const char *name, const char *text, uint64_t *value, struct wlb_error *error)
{
	char *end;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno != 0 || *text < '0' || *text > '9' || *end != '\0')
		return wlb_fail(error, "%s is '%.40s': it must be a whole number below 2^64", name, text);
	return 0;
}

/* Reads how many spans of each dataset of a blend were taken; NULL: there is one. */
static int parse_taken(const json_t *json, struct wlb_schedule_state *s, struct wlb_error *error)
{
	size_t count = json_array_size(json);
	if (json != NULL && (!json_is_array(json) || count > WLB_DATASET_PARTS_MAX))
		return wlb_fail(error, "schedule: taken: must be an array of at most %d numbers",
		                WLB_DATASET_PARTS_MAX);
	s->groups = (int)count;
	for (size_t g = 0; g < count; g++) {
		const json_t *value = json_array_get(json, g);
		s->taken[g] = json_integer_value(value);
		if (!json_is_integer(value) || s->taken[g] < 0)
			return wlb_fail(error, "schedule: taken: value %zu must be a whole number of 0 or more", g);
	}
	return 0;
}

/* Earlier versions did not write the windows, and had no ramp: s->windows is what follows from the steps. */
static int parse_schedule(json_t *json, struct wlb_schedule_state *s, struct wlb_error *error)
{
	json_error_t json_error;
	const char *seed, *index_digest = "0", *token_digest = "0"; /* earlier versions wrote none */
	const json_t *taken = NULL;
	json_int_t documents, tokens, epoch, position, spans, step, windows = s->windows;
	if (json_unpack_ex(json, &json_error, 0, "{s:s, s:I, s:I, s?s, s?s, s:I, s:I, s:I, s:I, s?I, s?o}", "seed",
	                   &seed, "documents", &documents, "tokens", &tokens, "index_digest", &index_digest,
	                   "token_digest", &token_digest, "epoch", &epoch, "position", &position, "pieces", &spans,
	                   "step", &step, "windows", &windows, "taken", &taken) < 0)
		return wlb_fail(error, "schedule: %s", json_error.text);
	*s = (struct wlb_schedule_state){.documents = documents,
	                                 .tokens = tokens,
	                                 .epoch = epoch,
	                                 .position = position,
	                                 .spans = spans,
	                                 .step = step,
	                                 .windows = windows};
	if (parse_taken(taken, s, error) < 0 ||
	    parse_u64("schedule: index_digest", index_digest, &s->index_digest, error) < 0 ||
	    parse_u64("schedule: token_digest", token_digest, &s->token_digest, error) < 0)
		return -1;
	return parse_u64("seed", seed, &s->seed, error);
}

/* NULL: there is none. */
static int parse_ramp(json_t *json, struct wlb_checkpoint_facts *f, struct wlb_error *error)
{
	json_error_t json_error;
	json_int_t start = 0, increment = 0, windows = 0;
	if (json != NULL && json_unpack_ex(json, &json_error, 0, "[I, I, I!]", &start, &increment, &windows) < 0)
		return wlb_fail(error, "%s", json_error.text);
	f->ramp = (struct wlb_batch_ramp){.start = start, .increment = increment, .windows = windows};
	return wlb_batch_ramp_check(&f->ramp, f->global_batch_size, error);
}

static int parse_facts(json_t *json, struct wlb_checkpoint_facts *f, struct wlb_error *error)
{
	json_error_t json_error;
	json_int_t step, seq_length, global_batch_size;
	const char *seed, *packing;
	json_t *schedule, *model, *hyper = NULL; /* earlier versions wrote no hyperparameters */
	json_t *norms = NULL, *ramp = NULL;
	if (json_unpack_ex(json, &json_error, 0, "{s:I, s:F, s:I, s:I, s?o, s:s, s:s, s:o, s:o, s?o, s?o}", "step",
	                   &step, "train_loss", &f->train_loss, "seq_length", &seq_length, "global_batch_size",
	                   &global_batch_size, "rampup_batch_size", &ramp, "seed", &seed, "packing", &packing,
	                   "schedule", &schedule, "model", &model, "hyperparameters", &hyper, "recent_norms",
	                   &norms) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (step < 0 || seq_length < 1 || global_batch_size < 1)
		return wlb_fail(error,
		                "step is %lld, seq_length %lld, global_batch_size %lld: they must be at least 0, 1, 1",
		                (long long)step, (long long)seq_length, (long long)global_batch_size);
	f->step = step;
	f->seq_length = seq_length;
	f->global_batch_size = global_batch_size;
	if (parse_ramp(ramp, f, error) < 0)
		return wlb_fail_in(error, "rampup_batch_size");
	if (__builtin_mul_overflow(step, global_batch_size, &f->schedule.windows))
		return wlb_fail(error, "step %lld of %lld windows: their product must be below 2^63", (long long)step,
		                (long long)global_batch_size);
	f->has_hyper = hyper != NULL;
	if (f->has_hyper && wlb_hyperparameters_parse(hyper, &f->hyper, error) < 0)
		return wlb_fail_in(error, "hyperparameters");
	f->norms.count = 0;
	if (norms != NULL && wlb_recent_norms_parse(norms, &f->norms, error) < 0)
		return wlb_fail_in(error, "recent_norms");
	if (wlb_strategy_parse(packing, &f->packing, error) < 0)
		return wlb_fail_in(error, "packing");
	if (parse_u64("seed", seed, &f->seed, error) < 0 || parse_schedule(schedule, &f->schedule, error) < 0)
		return -1;
	return wlb_model_json_parse(model, &f->model, error) < 0 ? wlb_fail_in(error, "model") : 0;
}

static int parse_packer(json_t *json, int64_t *bytes, struct wlb_error *error)
{
	json_error_t json_error;
	const char *file;
	json_int_t count;
	json_t *packer;
	*bytes = -1;
	if (json_unpack_ex(json, &json_error, 0, "{s:o}", "packer", &packer) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (json_is_null(packer))
		return 0;
	if (json_unpack_ex(packer, &json_error, 0, "{s:s, s:I}", "file", &file, "bytes", &count) < 0)
		return wlb_fail(error, "packer: %s", json_error.text);
	if (strcmp(file, WLB_PACKER_NAME) != 0 || count < 0)
		return wlb_fail(error, "packer is '%.100s' of %lld bytes: it must be " WLB_PACKER_NAME, file,
		                (long long)count);
	*bytes = count;
	return 0;
}

static int parse_weights(const char *folder, json_t *json, struct wlb_weights *w, struct wlb_error *error)
{
	json_error_t json_error;
	json_t *shards = NULL, *indexes = json_object_get(json, "indexes"), *tensors;
	if (json_unpack_ex(json, &json_error, 0, indexes != NULL ? "{s:o}" : "{s:o, s:o}", "tensors", &tensors,
	                   "shards", &shards) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if ((indexes != NULL ? wlb_shard_indexes_parse(indexes, w, error)
	                     : wlb_shard_list_parse(folder, shards, 0, w, error)) < 0)
		return -1;
	int count = indexes != NULL ? w->index_count : w->file_count;
	if (wlb_tensor_list_parse(tensors, count, w, error) < 0)
		return -1;
	return wlb_weights_finish(w, error);
}

static int parse_manifest(const char *folder, json_t *json, struct wlb_checkpoint_facts *facts,
                          struct wlb_weights *weights, int64_t *packer_bytes, struct wlb_error *error)
{
	json_error_t json_error;
	const char *format;
	int version;
	if (json_unpack_ex(json, &json_error, 0, "{s:s, s:i}", "format", &format, "version", &version) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (strcmp(format, "wlb-checkpoint") != 0 || version < OLDEST_VERSION || version > VERSION)
		return wlb_fail(error, "format is '%.40s', version %d: they must be wlb-checkpoint, %d to %d", format,
		                version, OLDEST_VERSION, VERSION);
	if (facts != NULL && parse_facts(json, facts, error) < 0)
		return -1;
	if (packer_bytes != NULL && parse_packer(json, packer_bytes, error) < 0)
		return -1;
	return weights != NULL ? parse_weights(folder, json, weights, error) : 0;
}

int wlb_manifest_read(const char *folder, struct wlb_checkpoint_facts *facts, struct wlb_weights *weights,
                      int64_t *packer_bytes, struct wlb_error *error)
{
	char path[PATH_MAX];
	char *text;
	size_t length;
	json_error_t json_error;
	if (snprintf(path, sizeof(path), "%s/" WLB_MANIFEST_NAME, folder) >= (int)sizeof(path))
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	int rc = wlb_input_read_all(path, LARGEST_MANIFEST_BYTES, &text, &length, error);
	if (rc < 0)
		return rc;
	json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
	free(text);
	if (json == NULL)
		return wlb_fail(error, "%s: line %d: %s: it must be JSON", path, json_error.line, json_error.text);
	rc = parse_manifest(folder, json, facts, weights, packer_bytes, error);
	json_decref(json);
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}
