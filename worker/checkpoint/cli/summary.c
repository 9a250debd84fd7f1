#include "worker/checkpoint/cli/summary.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json_text.h"
#include "common/output/bytes_text.h"
#include "worker/checkpoint/cli/target.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard_index.h"
#include "worker/checkpoint/weights.h"

/* Counts tensors and elements; the blocks are in the order of their tensors' names. With indexes all have checksums. */
static void count_tensors(const struct wlb_weights *weights, struct wlb_checkpoint_summary *s)
{
	const char *last = NULL, *last_unsummed = NULL;
	for (int i = 0; i < weights->block_count; i++) {
		const struct wlb_stored_block *b = &weights->blocks[i];
		bool is_summed = weights->index_count > 0 || weights->files[b->file].has_checksum || b->digest != 0;
		s->elements += b->range.end - b->range.begin;
		s->tensors += last == NULL || strcmp(last, b->name) != 0;
		last = b->name;
		if (is_summed)
			continue;
		s->unsummed += last_unsummed == NULL || strcmp(last_unsummed, b->name) != 0;
		last_unsummed = b->name;
	}
}

static void read_dtype(const struct wlb_weights *weights, struct wlb_checkpoint_summary *s)
{
	if (weights->block_count == 0)
		return;
	const struct wlb_stored_block *first = &weights->blocks[0];
	struct wlb_safetensors *file = wlb_safetensors_open(weights->files[first->file].path, NULL);
	const struct wlb_stored_tensor *tensor = file != NULL ? wlb_safetensors_find(file, first->name) : NULL;
	if (tensor != NULL)
		snprintf(s->dtype, sizeof(s->dtype), "%s", tensor->dtype_name);
	wlb_safetensors_close(file);
}

/* A wlb_shard_list_visit. */
static int add_files(void *context, struct wlb_weights *list, struct wlb_error *error)
{
	struct wlb_checkpoint_summary *s = context;
	(void)error;
	for (int i = 0; i < list->file_count; i++)
		s->bytes += list->files[i].bytes;
	if (s->dtype[0] == '\0')
		read_dtype(list, s);
	return 0;
}

/* Returns what wlb_manifest_read and wlb_shard_lists_visit do. */
static int read_manifest(struct wlb_checkpoint_summary *s)
{
	struct wlb_weights weights = {0};
	int64_t packer_bytes;
	int rc = wlb_manifest_read(s->path, &s->facts, &weights, &packer_bytes, &s->why);
	if (rc == 0) {
		s->has_facts = true;
		s->step = s->facts.step;
		s->shards = wlb_weights_shards(&weights);
		s->bytes += packer_bytes > 0 ? packer_bytes : 0;
		for (int i = 0; i < weights.index_count; i++)
			s->bytes += weights.indexes[i].bytes;
		count_tensors(&weights, s);
		rc = wlb_shard_lists_visit(s->path, &weights, add_files, s, &s->why);
	}
	wlb_weights_free(&weights);
	return rc;
}

void wlb_checkpoint_summarize(const char *path, struct wlb_checkpoint_summary *s)
{
	char manifest[sizeof(s->path) + sizeof("/" WLB_MANIFEST_NAME)];
	struct stat st;
	*s = (struct wlb_checkpoint_summary){.step = wlb_target_step(path), .saved = -1};
	if (snprintf(s->path, sizeof(s->path), "%s", path) >= (int)sizeof(s->path)) {
		s->state = wlb_fail(&s->why, "%.100s...: the path is too long", path);
		return;
	}
	snprintf(manifest, sizeof(manifest), "%s/" WLB_MANIFEST_NAME, path);
	if (stat(manifest, &st) == 0) {
		s->saved = st.st_mtime;
		s->bytes = st.st_size;
	}
	s->state = read_manifest(s);
	if (s->state == 0)
		s->state = wlb_checkpoint_check(path, &s->why);
}

const char *wlb_checkpoint_state_name(const struct wlb_checkpoint_summary *s)
{
	if (s->state == 0)
		return "complete";
	return s->state == -1 ? "not complete" : "cannot be read now";
}

void wlb_checkpoint_size_format(const struct wlb_checkpoint_summary *s, char *text, size_t size)
{
	char bytes[32];
	wlb_bytes_format(s->bytes, bytes, sizeof(bytes));
	snprintf(text, size, "%s in %d shard%s", bytes, s->shards, s->shards == 1 ? "" : "s");
}

void wlb_checkpoint_time_format(time_t when, char *text, size_t size)
{
	struct tm local;
	if (when == -1 || localtime_r(&when, &local) == NULL || strftime(text, size, "%Y-%m-%d %H:%M:%S", &local) == 0)
		snprintf(text, size, "-");
}

json_t *wlb_checkpoint_time_json(time_t when)
{
	struct tm utc;
	char text[32];
	if (when == -1 || gmtime_r(&when, &utc) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
		return json_null();
	return json_string(text);
}

json_t *wlb_checkpoint_summary_json(const struct wlb_checkpoint_summary *s)
{
	json_t *json = json_pack("{s:I, s:o, s:o, s:b, s:s*}", "step", (json_int_t)s->step, "path",
	                         wlb_json_text(s->path), "saved_at", wlb_checkpoint_time_json(s->saved), "complete",
	                         s->state == 0, "reason", s->state == 0 ? NULL : s->why.message);
	if (json == NULL || !s->has_facts)
		return json;
	json_t *of_manifest = json_pack("{s:I, s:i, s:f}", "bytes", (json_int_t)s->bytes, "shards", s->shards,
	                                "train_loss", s->facts.train_loss);
	if (json_object_update_new(json, of_manifest) == 0)
		return json;
	json_decref(json);
	return NULL;
}
