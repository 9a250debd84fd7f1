#include "worker/checkpoint/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/word_digest.h"
#include "worker/checkpoint/folder.h"
#include "worker/data/file_progress.h"
#include "worker/data/input.h"

/* Version 2 has whole blocks alone, with a digest of each, and no checksums of files. */
enum { VERSION = 3, OLDEST_VERSION = 2, LARGEST_MANIFEST_BYTES = 1 << 30 };

void wlb_manifest_shard_name(int shard, char name[48])
{
	if (shard < WLB_SHARDS_OF_FOLDER)
		snprintf(name, 48, "shard_%05d.safetensors", shard);
	else
		snprintf(name, 48, "part_%03d/shard_%05d.safetensors", shard / WLB_SHARDS_OF_FOLDER, shard);
}

/* ---- writing ---- */

static json_t *format_schedule(const struct wlb_schedule_state *s)
{
	/* Seed and digests are strings because they have 64 bits, and JSON integers 63. The format calls spans
	 * "pieces".
	 */
	return json_pack("{s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I}", "seed", json_sprintf("%" PRIu64, s->seed),
	                 "documents", (json_int_t)s->documents, "tokens", (json_int_t)s->tokens, "index_digest",
	                 json_sprintf("%" PRIu64, s->index_digest), "token_digest",
	                 json_sprintf("%" PRIu64, s->token_digest), "epoch", (json_int_t)s->epoch, "position",
	                 (json_int_t)s->position, "pieces", (json_int_t)s->spans, "step", (json_int_t)s->step);
}

static json_t *format_model(const struct wlb_model *m)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b}", "hidden_size",
	                 (json_int_t)m->hidden_size, "intermediate_size", (json_int_t)m->intermediate_size,
	                 "num_hidden_layers", (json_int_t)m->num_hidden_layers, "num_attention_heads",
	                 (json_int_t)m->num_attention_heads, "num_key_value_heads", (json_int_t)m->num_key_value_heads,
	                 "head_dim", (json_int_t)m->head_dim, "vocab_size", (json_int_t)m->vocab_size,
	                 "max_position_embeddings", (json_int_t)m->max_position_embeddings, "rope_theta", m->rope_theta,
	                 "rms_norm_eps", m->rms_norm_eps, "tie_word_embeddings", m->tie_word_embeddings);
}

static json_t *format_shards(const struct wlb_weights *w)
{
	json_t *shards = json_array();
	for (int i = 0; i < w->file_count; i++) {
		char name[48];
		wlb_manifest_shard_name(i, name);
		json_array_append_new(shards,
		                      json_pack("{s:s, s:I, s:o}", "file", name, "bytes", (json_int_t)w->files[i].bytes,
		                                "checksum", json_sprintf("%016" PRIx64, w->files[i].checksum)));
	}
	return shards;
}

static json_t *format_block(const struct wlb_stored_block *b)
{
	json_t *block = json_pack("[i,I,I,I,I]", b->file, (json_int_t)b->block.row_start, (json_int_t)b->block.rows,
	                          (json_int_t)b->block.col_start, (json_int_t)b->block.cols);
	if (b->range.end - b->range.begin < wlb_tensor_block_elements(&b->block)) {
		json_array_append_new(block, json_integer(b->range.begin));
		json_array_append_new(block, json_integer(b->range.end));
	}
	return block;
}

/* {"NAME": {"shape": [rows, cols], "blocks": [[shard, row_start, rows, col_start, cols], ...], and of a range of a
 * block two numbers more, where it begins and ends among the block's elements in the order of rows}, ...} */
static json_t *format_tensors(const struct wlb_weights *w)
{
	json_t *tensors = json_object();
	for (int i = 0; i < w->block_count; i++) {
		const struct wlb_stored_block *b = &w->blocks[i];
		if (json_object_get(tensors, b->name) == NULL) {
			json_t *shape = json_pack("[I]", (json_int_t)b->block.global_rows);
			if (b->block.dimensions == 2)
				json_array_append_new(shape, json_integer(b->block.global_cols));
			json_object_set_new(tensors, b->name, json_pack("{s:o, s:[]}", "shape", shape, "blocks"));
		}
		json_t *tensor = json_object_get(tensors, b->name);
		json_array_append_new(json_object_get(tensor, "blocks"), format_block(b));
	}
	return tensors;
}

static json_t *format_packer(int64_t bytes)
{
	return bytes < 0 ? json_null() : json_pack("{s:s, s:I}", "file", WLB_PACKER_NAME, "bytes", (json_int_t)bytes);
}

json_t *wlb_manifest_format_facts(const struct wlb_checkpoint_facts *facts)
{
	return json_pack("{s:I, s:f, s:I, s:I, s:o, s:s, s:o, s:o, s:o*}", "step", (json_int_t)facts->step,
	                 "train_loss", facts->train_loss, "seq_length", (json_int_t)facts->seq_length,
	                 "global_batch_size", (json_int_t)facts->global_batch_size, "seed",
	                 json_sprintf("%" PRIu64, facts->seed), "packing", wlb_strategy_name(facts->packing),
	                 "schedule", format_schedule(&facts->schedule), "model", format_model(&facts->model),
	                 "hyperparameters", facts->has_hyper ? wlb_hyperparameters_format(&facts->hyper) : NULL);
}

int wlb_manifest_write(const char *folder, const struct wlb_checkpoint_facts *facts, const struct wlb_weights *weights,
                       int64_t packer_bytes, int64_t *bytes, struct wlb_error *error)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/" WLB_MANIFEST_NAME, folder) >= (int)sizeof(path))
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	json_t *manifest = json_pack("{s:s, s:i}", "format", "wlb-checkpoint", "version", VERSION);
	json_t *files = json_pack("{s:o, s:o, s:o}", "packer", format_packer(packer_bytes), "shards",
	                          format_shards(weights), "tensors", format_tensors(weights));
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

static int parse_schedule(json_t *json, struct wlb_schedule_state *s, struct wlb_error *error)
{
	json_error_t json_error;
	const char *seed, *index_digest = "0", *token_digest = "0"; /* earlier versions wrote none */
	json_int_t documents, tokens, epoch, position, spans, step;
	if (json_unpack_ex(json, &json_error, 0, "{s:s, s:I, s:I, s?s, s?s, s:I, s:I, s:I, s:I}", "seed", &seed,
	                   "documents", &documents, "tokens", &tokens, "index_digest", &index_digest, "token_digest",
	                   &token_digest, "epoch", &epoch, "position", &position, "pieces", &spans, "step", &step) < 0)
		return wlb_fail(error, "schedule: %s", json_error.text);
	*s = (struct wlb_schedule_state){.documents = documents,
	                                 .tokens = tokens,
	                                 .epoch = epoch,
	                                 .position = position,
	                                 .spans = spans,
	                                 .step = step};
	if (parse_u64("schedule: index_digest", index_digest, &s->index_digest, error) < 0 ||
	    parse_u64("schedule: token_digest", token_digest, &s->token_digest, error) < 0)
		return -1;
	return parse_u64("seed", seed, &s->seed, error);
}

static int parse_model(json_t *json, struct wlb_model *m, struct wlb_error *error)
{
	json_error_t json_error;
	json_int_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, positions;
	if (json_unpack_ex(json, &json_error, 0, "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:F, s:F, s:b}",
	                   "hidden_size", &hidden, "intermediate_size", &intermediate, "num_hidden_layers", &layers,
	                   "num_attention_heads", &heads, "num_key_value_heads", &kv_heads, "head_dim", &head_dim,
	                   "vocab_size", &vocab, "max_position_embeddings", &positions, "rope_theta", &m->rope_theta,
	                   "rms_norm_eps", &m->rms_norm_eps, "tie_word_embeddings", &m->tie_word_embeddings) < 0)
		return wlb_fail(error, "model: %s", json_error.text);
	m->hidden_size = hidden;
	m->intermediate_size = intermediate;
	m->num_hidden_layers = layers;
	m->num_attention_heads = heads;
	m->num_key_value_heads = kv_heads;
	m->head_dim = head_dim;
	m->vocab_size = vocab;
	m->max_position_embeddings = positions;
	return wlb_model_check(m, error) < 0 ? wlb_fail_in(error, "model") : 0;
}

static int parse_facts(json_t *json, struct wlb_checkpoint_facts *f, struct wlb_error *error)
{
	json_error_t json_error;
	json_int_t step, seq_length, global_batch_size;
	const char *seed, *packing;
	json_t *schedule, *model, *hyper = NULL; /* earlier versions wrote no hyperparameters */
	if (json_unpack_ex(json, &json_error, 0, "{s:I, s:F, s:I, s:I, s:s, s:s, s:o, s:o, s?o}", "step", &step,
	                   "train_loss", &f->train_loss, "seq_length", &seq_length, "global_batch_size",
	                   &global_batch_size, "seed", &seed, "packing", &packing, "schedule", &schedule, "model",
	                   &model, "hyperparameters", &hyper) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (step < 0 || seq_length < 1 || global_batch_size < 1)
		return wlb_fail(error,
		                "step is %lld, seq_length %lld, global_batch_size %lld: they must be at least 0, 1, 1",
		                (long long)step, (long long)seq_length, (long long)global_batch_size);
	f->step = step;
	f->seq_length = seq_length;
	f->global_batch_size = global_batch_size;
	f->has_hyper = hyper != NULL;
	if (f->has_hyper && wlb_hyperparameters_parse(hyper, &f->hyper, error) < 0)
		return wlb_fail_in(error, "hyperparameters");
	if (wlb_strategy_parse(packing, &f->packing, error) < 0)
		return wlb_fail_in(error, "packing");
	if (parse_u64("seed", seed, &f->seed, error) < 0 || parse_schedule(schedule, &f->schedule, error) < 0)
		return -1;
	return parse_model(model, &f->model, error);
}

static int parse_shards(const char *folder, json_t *shards, struct wlb_weights *w, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(shards); i++) {
		json_error_t json_error;
		const char *file, *checksum = NULL;
		json_int_t bytes;
		char expected[48];
		wlb_manifest_shard_name((int)i, expected);
		if (json_unpack_ex(json_array_get(shards, i), &json_error, 0, "{s:s, s:I, s?s}", "file", &file, "bytes",
		                   &bytes, "checksum", &checksum) < 0)
			return wlb_fail(error, "shards[%zu]: %s", i, json_error.text);
		/* The name is checked, not followed: a manifest cannot point out of its folder. */
		if (strcmp(file, expected) != 0 || bytes < 0)
			return wlb_fail(error, "shards[%zu] is '%.100s' of %lld bytes: it must be %s", i, file,
			                (long long)bytes, expected);
		if (wlb_weights_add_file(w, folder, file, bytes, error) < 0)
			return -1;
		w->files[i].has_checksum = checksum != NULL;
		if (checksum != NULL && wlb_word_digest_parse(checksum, &w->files[i].checksum) < 0)
			return wlb_fail(error, "shards[%zu]: checksum is '%.40s': it must be 16 hexadecimal digits", i,
			                checksum);
	}
	return 0;
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

static int parse_shape(const json_t *shape, struct wlb_stored_block *b, struct wlb_error *error)
{
	b->block.dimensions = (int)json_array_size(shape);
	b->block.global_rows = json_integer_value(json_array_get(shape, 0));
	b->block.global_cols = b->block.dimensions == 2 ? json_integer_value(json_array_get(shape, 1)) : 1;
	int64_t elements;
	if (b->block.dimensions < 1 || b->block.dimensions > 2 || b->block.global_rows < 1 ||
	    b->block.global_cols < 1 || __builtin_mul_overflow(b->block.global_rows, b->block.global_cols, &elements))
		return wlb_fail(error, "shape must be one or two whole numbers from 1 on");
	return 0;
}

/* Returns 1 where [start, start + count) holds at least one element and lies within [0, whole). */
static int lies_within(int64_t start, int64_t count, int64_t whole)
{
	return start >= 0 && count >= 1 && count <= whole && start <= whole - count;
}

static int parse_block(json_t *json, int file_count, struct wlb_stored_block *b, struct wlb_error *error)
{
	json_error_t json_error;
	json_int_t row_start, rows, col_start, cols, begin = 0, end = 0;
	bool has_range = json_array_size(json) == 7;
	if (json_unpack_ex(json, &json_error, 0, has_range ? "[i,I,I,I,I,I,I]" : "[i,I,I,I,I!]", &b->file, &row_start,
	                   &rows, &col_start, &cols, &begin, &end) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (b->file < 0 || b->file >= file_count)
		return wlb_fail(error, "shard is %d: it must be one of the %d shards", b->file, file_count);
	if (!lies_within(row_start, rows, b->block.global_rows) || !lies_within(col_start, cols, b->block.global_cols))
		return wlb_fail(error, "rows %lld + %lld, columns %lld + %lld: they must lie within %lld x %lld",
		                (long long)row_start, (long long)rows, (long long)col_start, (long long)cols,
		                (long long)b->block.global_rows, (long long)b->block.global_cols);
	b->block.row_start = row_start;
	b->block.rows = rows;
	b->block.col_start = col_start;
	b->block.cols = cols;
	b->range = (struct wlb_element_range){begin, has_range ? end : rows * cols};
	if (b->range.begin >= b->range.end || !lies_within(begin, b->range.end - begin, rows * cols))
		return wlb_fail(error, "elements %lld to %lld: they must lie within the block's %lld", (long long)begin,
		                (long long)b->range.end, (long long)(rows * cols));
	return 0;
}

/* Sets the digest of block `i` of a tensor: 0 where `digests` is NULL, as earlier versions wrote none. */
static int parse_block_digest(json_t *digests, size_t i, struct wlb_stored_block *b, struct wlb_error *error)
{
	const char *text = json_string_value(json_array_get(digests, i));
	b->digest = 0;
	if (digests != NULL && (text == NULL || wlb_word_digest_parse(text, &b->digest) < 0))
		return wlb_fail(error, "digest is '%.40s': it must be 16 hexadecimal digits",
		                text != NULL ? text : "missing");
	return 0;
}

static int parse_tensor(const char *name, json_t *json, struct wlb_weights *w, struct wlb_error *error)
{
	json_error_t json_error;
	json_t *shape, *blocks, *digests = NULL;
	struct wlb_stored_block b = {.name = (char *)name};
	if (json_unpack_ex(json, &json_error, 0, "{s:o, s:o, s?o}", "shape", &shape, "blocks", &blocks, "digests",
	                   &digests) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (parse_shape(shape, &b, error) < 0)
		return -1;
	if (json_array_size(blocks) == 0)
		return wlb_fail(error, "blocks must be a list of at least one");
	for (size_t i = 0; i < json_array_size(blocks); i++) {
		if (parse_block(json_array_get(blocks, i), w->file_count, &b, error) < 0 ||
		    parse_block_digest(digests, i, &b, error) < 0)
			return wlb_fail_in(error, "blocks[%zu]", i);
		if (wlb_weights_add_block(w, &b, error) < 0)
			return -1;
	}
	return 0;
}

static int parse_weights(const char *folder, json_t *json, struct wlb_weights *w, struct wlb_error *error)
{
	json_error_t json_error;
	json_t *shards, *tensors, *tensor;
	const char *name;
	if (json_unpack_ex(json, &json_error, 0, "{s:o, s:o}", "shards", &shards, "tensors", &tensors) < 0)
		return wlb_fail(error, "%s", json_error.text);
	if (parse_shards(folder, shards, w, error) < 0)
		return -1;
	json_object_foreach(tensors, name, tensor)
	{
		if (parse_tensor(name, tensor, w, error) < 0)
			return wlb_fail_in(error, "tensor %.200s", name);
	}
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

static int read_text(const char *path, char **text, size_t *length, struct wlb_error *error)
{
	int64_t bytes;
	int fd = wlb_input_open(path, &bytes, error), rc = -1;
	if (fd < 0)
		return fd;
	*text = NULL;
	if (bytes > LARGEST_MANIFEST_BYTES) {
		wlb_fail(error, "%s: has %lld bytes, at most %d are read", path, (long long)bytes,
		         LARGEST_MANIFEST_BYTES);
	} else if ((*text = malloc((size_t)bytes + 1)) == NULL) {
		wlb_fail(error, "%s: out of memory for its %lld bytes", path, (long long)bytes);
		rc = WLB_UNREADABLE;
	} else {
		rc = wlb_input_read(fd, path, *text, (size_t)bytes, 0, error);
	}
	close(fd);
	if (rc < 0)
		free(*text);
	*length = (size_t)bytes;
	return rc;
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
	int rc = read_text(path, &text, &length, error);
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
