/*
 * wlb-many-shards: a checkpoint of as many shards as a run of 16,384 ranks writes, and what single ranks do with it.
 * The shards have matrices of a model of 80 layers, cut as ranks of the layout keep them where each layer is a bucket;
 * they are small, since only lists and headers are of interest here.
 *
 *   wlb-many-shards LAYOUT write FOLDER      the shards of all ranks, into FOLDER/.step_00000001.bench.partial
 *   wlb-many-shards LAYOUT index FOLDER      the first rank of the first group: its index
 *   wlb-many-shards LAYOUT indexes FOLDER    the same of all groups
 *   wlb-many-shards LAYOUT commit FOLDER     rank 0: the manifest of the indexes
 *   wlb-many-shards LAYOUT commit-list FOLDER  rank 0: a manifest with one list of all shards
 *   wlb-many-shards LAYOUT find FOLDER       rank 0 before a resume: the newest checkpoint
 *   wlb-many-shards LAYOUT read FOLDER RANK  a rank of the layout: its share of the checks, and the states that it
 * keeps
 *
 * Prints the seconds of a processor, the most bytes in memory and how many shards were opened.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/folder.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard_index.h"
#include "worker/checkpoint/shard_lists.h"
#include "worker/data/input.h"

enum { STEP = 1, HIDDEN = 128, INTERMEDIATE = 448, LAYERS = 80, VOCABULARY = 1024, SEQ_LENGTH = 64, STATES = 3 };

static const struct wlb_checkpoint_facts facts = {
	.step = STEP,
	.model = {.hidden_size = HIDDEN,
                  .intermediate_size = INTERMEDIATE,
                  .num_hidden_layers = LAYERS,
                  .num_attention_heads = 8,
                  .num_key_value_heads = 8,
                  .head_dim = HIDDEN / 8,
                  .vocab_size = VOCABULARY,
                  .max_position_embeddings = SEQ_LENGTH,
                  .rope_theta = 1e4,
                  .rms_norm_eps = 1e-5},
	.seq_length = SEQ_LENGTH,
	.global_batch_size = 1,
	.train_loss = 1.0,
};

static const struct matrix {
	const char *name;
	int64_t rows, cols;
	int by_columns; /* tensor parallelism cuts it so, or by rows */
} of_layer[] = {
	{"self_attn.q_proj", HIDDEN, HIDDEN, 0},    {"self_attn.k_proj", HIDDEN, HIDDEN, 0},
	{"self_attn.v_proj", HIDDEN, HIDDEN, 0},    {"self_attn.o_proj", HIDDEN, HIDDEN, 1},
	{"mlp.gate_proj", INTERMEDIATE, HIDDEN, 0}, {"mlp.up_proj", INTERMEDIATE, HIDDEN, 0},
	{"mlp.down_proj", HIDDEN, INTERMEDIATE, 1},
};
enum { MATRICES = sizeof(of_layer) / sizeof(of_layer[0]), PARTS_MOST = STATES * LAYERS * MATRICES };

struct bench {
	struct wlb_save_place place;
	struct wlb_layout layout;
	int ranks, rank;
};

/* What a rank keeps. */
struct kept {
	struct wlb_tensor_part parts[PARTS_MOST];
	char names[PARTS_MOST][96];
	int count;
	float data[STATES * LAYERS * (4 * HIDDEN + 3 * INTERMEDIATE) * HIDDEN];
	int64_t used; /* of `data` */
};

static int opened; /* shards */

int __real_wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error);
int __wrap_wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error);

int __wrap_wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error)
{
	opened++;
	return __real_wlb_input_open(path, bytes, error);
}

/* The block of a matrix that a rank of a tensor-parallel group has. */
static struct wlb_tensor_block block_of(const struct matrix *m, int tp, int tps)
{
	struct wlb_tensor_block block = {2, m->rows, m->cols, 0, m->rows, 0, m->cols};
	if (m->by_columns) {
		block.cols = m->cols / tps;
		block.col_start = tp * block.cols;
	} else {
		block.rows = m->rows / tps;
		block.row_start = tp * block.rows;
	}
	return block;
}

static int64_t bucket_elements(int tps)
{
	int64_t elements = 0;
	for (int i = 0; i < MATRICES; i++)
		elements += of_layer[i].rows * of_layer[i].cols / tps;
	return elements;
}

/* Adds what a rank keeps of a layer: an equal part of its bucket. */
static void keep_layer(const struct bench *b, const struct wlb_coordinates *rank, const char *prefix, int layer,
                       struct kept *kept)
{
	int64_t all = bucket_elements(b->layout.tp), before = 0;
	int64_t begin = all * rank->dp / b->layout.dp, end = all * (rank->dp + 1) / b->layout.dp;
	for (int i = 0; i < MATRICES; i++) {
		const struct wlb_tensor_block block = block_of(&of_layer[i], rank->tp, b->layout.tp);
		int64_t first = begin > before ? begin - before : 0, elements = wlb_tensor_block_elements(&block);
		int64_t last = end - before < elements ? end - before : elements;
		before += elements;
		if (last <= first)
			continue;
		char *name = kept->names[kept->count];
		snprintf(name, sizeof(kept->names[0]), "%smodel.layers.%d.%s.weight", prefix, layer, of_layer[i].name);
		kept->parts[kept->count++] =
			(struct wlb_tensor_part){name, WLB_FLOAT32, block, {first, last}, kept->data + kept->used, 0};
		kept->used += last - first;
	}
}

static void keep(const struct bench *b, int rank, int state, struct kept *kept)
{
	static const char *const prefixes[STATES] = {"", "optimizer.m.", "optimizer.v."};
	const struct wlb_coordinates coords = wlb_layout_coordinates(&b->layout, rank);
	int layers = LAYERS / b->layout.pp;
	for (int l = 0; l < layers; l++)
		keep_layer(b, &coords, prefixes[state], coords.pp * layers + l, kept);
}

static struct kept kept; /* of a rank at a time */

static int write_all(const struct bench *b, struct wlb_error *error)
{
	if (wlb_checkpoint_begin(&b->place, STEP, error) < 0)
		return -1;
	for (int i = 0; i < b->ranks; i++) {
		kept.count = 0;
		kept.used = 0;
		for (int state = 0; state < STATES; state++)
			keep(b, i, state, &kept);
		if (whole_shard_save(&b->place, STEP, i, kept.parts, kept.count, error) < 0)
			return -1;
	}
	return wlb_checkpoint_write_packer(&b->place, STEP, "", 0, error);
}

static int write_index(const struct bench *b, struct wlb_error *error)
{
	return wlb_checkpoint_write_index(&b->place, STEP, 0, b->ranks, error);
}

static int write_indexes(const struct bench *b, struct wlb_error *error)
{
	return whole_shard_save_indexes(&b->place, STEP, b->ranks, error);
}

static int commit(const struct bench *b, struct wlb_error *error)
{
	char path[4096];
	int64_t bytes;
	return wlb_checkpoint_commit(&b->place, &facts, b->ranks, 0, path, &bytes, error);
}

/* As all checkpoints were committed before groups had indexes. */
static int commit_list(const struct bench *b, struct wlb_error *error)
{
	char partial[4096], path[4096], name[48];
	struct wlb_weights weights = {0};
	int64_t bytes;
	int rc = wlb_folder_partial(&b->place, STEP, partial, error);
	for (int i = 0; rc == 0 && i < b->ranks; i++) {
		wlb_shard_name(i, name);
		rc = wlb_weights_add_file(&weights, partial, name, -1, error) < 0 ? -1 : 0;
	}
	if (rc == 0 && (wlb_weights_scan(&weights, error) < 0 || wlb_weights_finish(&weights, error) < 0 ||
	                wlb_manifest_write(partial, &facts, &weights, 0, &bytes, error) < 0 ||
	                wlb_folder_path(b->place.dir, STEP, WLB_FOLDER_FINAL, path, error) < 0))
		rc = -1;
	if (rc == 0 && rename(partial, path) < 0)
		rc = wlb_fail(error, "%s: cannot be renamed", partial);
	wlb_weights_free(&weights);
	return rc;
}

static int find(const struct bench *b, struct wlb_error *error)
{
	char path[4096];
	return wlb_checkpoint_newest_before(b->place.dir, INT64_MAX, path, error) == 1 ? 0 : -1;
}

static int read_states(const struct bench *b, struct wlb_checkpoint_reader *reader, struct wlb_error *error)
{
	for (int state = 0; state < STATES; state++) {
		kept.count = 0;
		kept.used = 0;
		keep(b, b->rank, state, &kept);
		if (wlb_checkpoint_read_parts(reader, kept.parts, kept.count, error) < 0)
			return -1;
	}
	return 0;
}

/* As worker/train/resume.c does. */
static int read_rank(const struct bench *b, struct wlb_error *error)
{
	char path[4096];
	if (wlb_folder_path(b->place.dir, STEP, WLB_FOLDER_FINAL, path, error) < 0)
		return -1;
	struct wlb_checkpoint_reader *reader = wlb_checkpoint_open(path, error);
	wlb_checkpoint_share_check *check = reader != NULL ? wlb_checkpoint_check_before_reading(reader) : NULL;
	int rc = reader == NULL || (check != NULL && check(path, b->rank, b->ranks, error) != 0) ? -1 : 0;
	if (rc == 0)
		rc = read_states(b, reader, error);
	if (rc == 0)
		rc = wlb_checkpoint_element_bytes(path, error) < 0 ? -1 : 0;
	wlb_checkpoint_close(reader);
	return rc;
}

static const struct {
	const char *name;
	int (*run)(const struct bench *, struct wlb_error *);
} works[] = {
	{"write", write_all},         {"index", write_index}, {"indexes", write_indexes}, {"commit", commit},
	{"commit-list", commit_list}, {"find", find},         {"read", read_rank},
};
enum { WORKS = sizeof(works) / sizeof(works[0]) };

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

static int run(const struct bench *b, const char *name)
{
	struct wlb_error error = {0};
	int i = 0;
	while (i < WORKS && strcmp(works[i].name, name) != 0)
		i++;
	if (i == WORKS || works[i].run(b, &error) < 0) {
		fprintf(stderr, "wlb-many-shards: %s: %s\n", name,
		        i == WORKS ? "there is no such work" : error.message);
		return 1;
	}
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	printf("%.6f %lld %d\n", seconds(&used.ru_utime) + seconds(&used.ru_stime), 1024LL * used.ru_maxrss, opened);
	return 0;
}

int main(int argc, char **argv)
{
	struct wlb_policy policy;
	struct wlb_error error = {0};
	struct bench b = {.rank = argc > 4 ? atoi(argv[4]) : 0};
	if (argc < 4 || wlb_policy_parse(argv[1], &policy, &error) < 0 || policy.kind != WLB_POLICY_FIXED ||
	    policy.fixed.cp != 1) {
		fprintf(stderr, "usage: wlb-many-shards LAYOUT WORK FOLDER [RANK]; LAYOUT is as tp=8,pp=4,dp=512 %s\n",
		        error.message);
		return 2;
	}
	b.layout = policy.fixed;
	b.ranks = wlb_layout_ranks(&b.layout);
	b.place = (struct wlb_save_place){.dir = argv[3], .id = "bench", .is_alone = 1};
	return run(&b, argv[2]);
}
