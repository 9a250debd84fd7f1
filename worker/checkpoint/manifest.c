#include "worker/checkpoint/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/client/file.h"

enum { VERSION = 1, LARGEST_MANIFEST_BYTES = 1 << 30 };

void wlb_manifest_shard_name(int shard, char name[32])
{
	snprintf(name, 32, "shard_%05d.safetensors", shard);
}

/* ---- writing ---- */

static json_t *format_schedule(const struct wlb_schedule_state *s)
{
	/* Seeds use all 64 bits, JSON integers 63: so a text. */
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "seed", json_sprintf("%" PRIu64, s->seed), "documents",
	                 (json_int_t)s->documents, "tokens", (json_int_t)s->tokens, "epoch", (json_int_t)s->epoch,
	                 "position", (json_int_t)s->position, "pieces", (json_int_t)s->pieces, "step",
	                 (json_int_t)s->step);
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
		char name[32];
		wlb_manifest_shard_name(i, name);
		json_array_append_new(shards,
		                      json_pack("{s:s, s:I}", "file", name, "bytes", (json_int_t)w->files[i].bytes));
	}
	return shards;
}

/* {"NAME": {"shape": [rows, cols], "slices": [[shard, row_start, rows], ...]}, ...} */
static json_t *format_tensors(const struct wlb_weights *w)
{
	json_t *tensors = json_object();
	for (int i = 0; i < w->slice_count; i++) {
		const struct wlb_slice *s = &w->slices[i];
		if (json_object_get(tensors, s->name) == NULL) {
			json_t *shape = json_pack("[I]", (json_int_t)s->global_rows);
			if (s->dimensions == 2)
				json_array_append_new(shape, json_integer(s->cols));
			json_object_set_new(tensors, s->name, json_pack("{s:o, s:[]}", "shape", shape, "slices"));
		}
		json_array_append_new(json_object_get(json_object_get(tensors, s->name), "slices"),
		                      json_pack("[i,I,I]", s->file, (json_int_t)s->row_start, (json_int_t)s->rows));
	}
	return tensors;
}

int wlb_manifest_write(const char *folder, const struct wlb_checkpoint_facts *facts, const struct wlb_weights *weights,
                       int64_t *bytes, struct wlb_error *error)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/" WLB_MANIFEST_NAME, folder) >= (int)sizeof(path))
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	json_t *manifest = json_pack(
		"{s:s, s:i, s:I, s:f, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "format", "wlb-checkpoint", "version",
		VERSION, "step", (json_int_t)facts->step, "train_loss", facts->train_loss, "seq_length",
		(json_int_t)facts->seq_length, "global_batch_size", (json_int_t)facts->global_batch_size, "seed",
		json_sprintf("%" PRIu64, facts->seed), "schedule", format_schedule(&facts->schedule), "model",
		format_model(&facts->model), "shards", format_shards(weights), "tensors", format_tensors(weights));
	char *text = manifest ? json_dumps(manifest, JSON_INDENT(1)) : NULL;
	json_decref(manifest);
	if (text == NULL)
		return wlb_fail(error, "%s: out of memory, or a number in it is not finite", path);
	*bytes = (int64_t)strlen(text);
	int rc = wlb_file_write(path, text, strlen(text), 0666, error);
	free(text);
	return rc;
}

/* ---- reading ---- */

static int parse_seed(const char *text, uint64_t *seed, struct wlb_error *error)
{
	char *end;
	errno = 0;
	*seed = strtoull(text, &end, 10);
	if (errno != 0 || *text < '0' || *text > '9' || *end != '\0')
		return wlb_fail(error, "seed is '%.40s': it must be a whole number below 2^64", text);
	return 0;
}

static int parse_schedule(json_t *json, struct wlb_schedule_state *s, struct wlb_error *error)
{
	json_error_t at;
	const char *seed;
	json_int_t documents, tokens, epoch, position, pieces, step;
	if (json_unpack_ex(json, &at, 0, "{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "seed", &seed, "documents", &documents,
	                   "tokens", &tokens, "epoch", &epoch, "position", &position, "pieces", &pieces, "step",
	                   &step) < 0)
		return wlb_fail(error, "schedule: %s", at.text);
	*s = (struct wlb_schedule_state){.documents = documents,
	                                 .tokens = tokens,
	                                 .epoch = epoch,
	                                 .position = position,
	                                 .pieces = pieces,
	                                 .step = step};
	return parse_seed(seed, &s->seed, error);
}

static int parse_model(json_t *json, struct wlb_model *m, struct wlb_error *error)
{
	json_error_t at;
	json_int_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, positions;
	if (json_unpack_ex(json, &at, 0, "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:F, s:F, s:b}", "hidden_size",
	                   &hidden, "intermediate_size", &intermediate, "num_hidden_layers", &layers,
	                   "num_attention_heads", &heads, "num_key_value_heads", &kv_heads, "head_dim", &head_dim,
	                   "vocab_size", &vocab, "max_position_embeddings", &positions, "rope_theta", &m->rope_theta,
	                   "rms_norm_eps", &m->rms_norm_eps, "tie_word_embeddings", &m->tie_word_embeddings) < 0)
		return wlb_fail(error, "model: %s", at.text);
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
	json_error_t at;
	json_int_t step, seq_length, global_batch_size;
	const char *seed;
	json_t *schedule, *model;
	if (json_unpack_ex(json, &at, 0, "{s:I, s:F, s:I, s:I, s:s, s:o, s:o}", "step", &step, "train_loss",
	                   &f->train_loss, "seq_length", &seq_length, "global_batch_size", &global_batch_size, "seed",
	                   &seed, "schedule", &schedule, "model", &model) < 0)
		return wlb_fail(error, "%s", at.text);
	if (step < 0 || seq_length < 1 || global_batch_size < 1)
		return wlb_fail(error,
		                "step is %lld, seq_length %lld, global_batch_size %lld: they must be at least 0, 1, 1",
		                (long long)step, (long long)seq_length, (long long)global_batch_size);
	f->step = step;
	f->seq_length = seq_length;
	f->global_batch_size = global_batch_size;
	if (parse_seed(seed, &f->seed, error) < 0 || parse_schedule(schedule, &f->schedule, error) < 0)
		return -1;
	return parse_model(model, &f->model, error);
}

static int parse_shards(const char *folder, json_t *shards, struct wlb_weights *w, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(shards); i++) {
		json_error_t at;
		const char *file;
		json_int_t bytes;
		char expected[32];
		wlb_manifest_shard_name((int)i, expected);
		if (json_unpack_ex(json_array_get(shards, i), &at, 0, "{s:s, s:I}", "file", &file, "bytes", &bytes) < 0)
			return wlb_fail(error, "shards[%zu]: %s", i, at.text);
		/* The name is checked, not followed: a manifest cannot point out of its folder. */
		if (strcmp(file, expected) != 0 || bytes < 0)
			return wlb_fail(error, "shards[%zu] is '%.100s' of %lld bytes: it must be %s", i, file,
			                (long long)bytes, expected);
		if (wlb_weights_add_file(w, folder, file, bytes, error) < 0)
			return -1;
	}
	return 0;
}

static int parse_shape(const json_t *shape, struct wlb_slice *s, struct wlb_error *error)
{
	s->dimensions = (int)json_array_size(shape);
	s->global_rows = json_integer_value(json_array_get(shape, 0));
	s->cols = s->dimensions == 2 ? json_integer_value(json_array_get(shape, 1)) : 1;
	int64_t elements;
	if (s->dimensions < 1 || s->dimensions > 2 || s->global_rows < 0 || s->cols < 0 ||
	    __builtin_mul_overflow(s->global_rows, s->cols, &elements))
		return wlb_fail(error, "shape must be one or two whole numbers");
	return 0;
}

static int parse_tensor(const char *name, json_t *json, struct wlb_weights *w, struct wlb_error *error)
{
	json_error_t at;
	json_t *shape, *slices;
	struct wlb_slice s = {.name = (char *)name};
	if (json_unpack_ex(json, &at, 0, "{s:o, s:o}", "shape", &shape, "slices", &slices) < 0)
		return wlb_fail(error, "%s", at.text);
	if (parse_shape(shape, &s, error) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(slices); i++) {
		json_int_t row_start, rows;
		if (json_unpack_ex(json_array_get(slices, i), &at, 0, "[i,I,I]", &s.file, &row_start, &rows) < 0)
			return wlb_fail(error, "slices[%zu]: %s", i, at.text);
		if (s.file < 0 || s.file >= w->file_count || row_start < 0 || rows < 0 || rows > s.global_rows ||
		    row_start > s.global_rows - rows)
			return wlb_fail(
				error,
				"slices[%zu] is shard %d, rows %lld + %lld: it must be one of the %d shards and lie "
				"within the %lld rows",
				i, s.file, (long long)row_start, (long long)rows, w->file_count,
				(long long)s.global_rows);
		s.row_start = row_start;
		s.rows = rows;
		if (wlb_weights_add_slice(w, &s, error) < 0)
			return -1;
	}
	return 0;
}

static int parse_weights(const char *folder, json_t *json, struct wlb_weights *w, struct wlb_error *error)
{
	json_error_t at;
	json_t *shards, *tensors, *tensor;
	const char *name;
	if (json_unpack_ex(json, &at, 0, "{s:o, s:o}", "shards", &shards, "tensors", &tensors) < 0)
		return wlb_fail(error, "%s", at.text);
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
                          struct wlb_weights *weights, struct wlb_error *error)
{
	json_error_t at;
	const char *format;
	int version;
	if (json_unpack_ex(json, &at, 0, "{s:s, s:i}", "format", &format, "version", &version) < 0)
		return wlb_fail(error, "%s", at.text);
	if (strcmp(format, "wlb-checkpoint") != 0 || version != VERSION)
		return wlb_fail(error, "format is '%.40s', version %d: they must be wlb-checkpoint, %d", format,
		                version, VERSION);
	if (facts != NULL && parse_facts(json, facts, error) < 0)
		return -1;
	return weights != NULL ? parse_weights(folder, json, weights, error) : 0;
}

int wlb_manifest_read(const char *folder, struct wlb_checkpoint_facts *facts, struct wlb_weights *weights,
                      struct wlb_error *error)
{
	char path[PATH_MAX];
	char *text;
	size_t length;
	json_error_t at;
	if (snprintf(path, sizeof(path), "%s/" WLB_MANIFEST_NAME, folder) >= (int)sizeof(path))
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	if (wlb_file_read(path, LARGEST_MANIFEST_BYTES, &text, &length, error) < 0)
		return -1;
	json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &at);
	free(text);
	if (json == NULL)
		return wlb_fail(error, "%s: line %d: %s: it must be JSON", path, at.line, at.text);
	int rc = parse_manifest(folder, json, facts, weights, error);
	json_decref(json);
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}
