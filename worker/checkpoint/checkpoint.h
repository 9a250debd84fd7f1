/*
 * Checkpoints: DIR/step_00000060/ with safetensors shards and manifest.json.
 *
 * A checkpoint is complete when its manifest exists: all files are written into DIR/.step_00000060.ID.partial and
 * synced, the manifest last; then the folder is renamed and DIR is synced. A partial folder left by a killed writer is
 * removed by the next save. Each rank writes one shard: what it keeps of each tensor. The manifest holds the
 * global shape of every tensor and which shard holds which range of elements of which block of it (rows by columns), so
 * any layout can read it. The blocks of a tensor are bands of rows, one below the other, each band cut into columns or
 * whole. Of many shards each group has an index, which says that of its shards, and the manifest says which indexes
 * there are and which elements each group has (shard_index.h). Names are Hugging Face's for weights
 * ("model.layers.0.self_attn.q_proj.weight"), the same with a prefix "optimizer.m." and "optimizer.v." for AdamW's
 * moments.
 */
#ifndef WORKER_CHECKPOINT_CHECKPOINT_H
#define WORKER_CHECKPOINT_CHECKPOINT_H

#include <stdint.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"
#include "worker/checkpoint/hyperparameters.h"
#include "worker/checkpoint/recent_norms.h"
#include "worker/data/schedule.h"
#include "worker/model/tensor_block.h"

/* One block of a tensor of the writer or reader; a vector is stored with shape [n]. */
struct wlb_tensor_part {
	const char *name;
	enum wlb_dtype dtype;
	struct wlb_tensor_block block;  /* of 1 or 2 dimensions */
	struct wlb_element_range range; /* of the block; {0, 0}: all of it */
	void *data_host;                /* [rows, cols], dense, or the range of it */
	int is_copy;                    /* 1: another rank reads the same: it does not enter the sums of a reader */
};

static inline struct wlb_element_range wlb_tensor_part_range(const struct wlb_tensor_part *part)
{
	const struct wlb_element_range all = {0, wlb_tensor_block_elements(&part->block)};
	return part->range.end > 0 ? part->range : all;
}

struct wlb_checkpoint_facts {
	int64_t step;
	struct wlb_schedule_state schedule;
	struct wlb_model model;
	int64_t seq_length;
	int64_t global_batch_size;
	struct wlb_batch_ramp ramp; /* to it */
	uint64_t seed;
	enum wlb_strategy packing;
	double train_loss; /* of that step */
	struct wlb_hyperparameters hyper;
	struct wlb_recent_norms norms; /* none where steps are not judged by them */
	int has_hyper;                 /* 0: saved by an earlier version, which did not record them */
};

/* Where a run saves. */
struct wlb_save_place {
	const char *dir;
	const char *id; /* of this start of the run, in the names of its partial folders: the shards of two runs that
	                 * save into one directory do not mix */
	int is_alone;   /* no other run saves into `dir` (save_lock.h): what others have left there is removed */
	int64_t keep_every; /* checkpoints of multiples of this step stay; 0: none for that */
};

struct wlb_safetensors_output; /* safetensors.h */

/* Saving: begin (one writer) -> create_shard (every writer, its own shard number, from 0), and the data of its parts by
 * safetensors.h -> with more than one group of shards write_index (one writer for each group) -> write_packer and
 * commit (one writer; the caller synchronises in between). An error of any of them names the file; one writer must then
 * abandon the save, after all others have stopped writing. begin removes the folders that killed writers left in the
 * directory. */
int wlb_checkpoint_begin(const struct wlb_save_place *place, int64_t step, struct wlb_error *error);
/* As wlb_safetensors_create. A shard holds at most one range of a tensor; it may hold none (count 0, or a part of 0
 * rows). */
int wlb_checkpoint_create_shard(const struct wlb_save_place *place, int64_t step, int shard,
                                const struct wlb_tensor_part *parts, int count, struct wlb_safetensors_output **output,
                                struct wlb_error *error);
/* Returns 1 where so many shards are in several groups (shard_group.h), from group 0 on, each with an index. */
int wlb_checkpoint_has_indexes(int shards);
/* Reads the headers of the group's shards, of `shards` in all, and writes its index. */
int wlb_checkpoint_write_index(const struct wlb_save_place *place, int64_t step, int group, int shards,
                               struct wlb_error *error);
/* Makes a shard the same as a file that was written with the same parts. */
int wlb_checkpoint_copy_shard(const struct wlb_save_place *place, int64_t step, int shard, const char *file,
                              struct wlb_error *error);
/* Writes the state of the packer, `bytes` bytes of wlb_packer_save(), to its own file. wlb_checkpoint_read_packer
 * refuses a checkpoint that was committed without it. */
int wlb_checkpoint_write_packer(const struct wlb_save_place *place, int64_t step, const void *state, size_t bytes,
                                struct wlb_error *error);
/* Reads the shard headers, or the indexes, checks that together they hold every element of every tensor once, writes
 * the manifest, syncs, renames; a checkpoint of the same step is replaced. *bytes: size of the whole checkpoint;
 * path[]: its final path. Of the checkpoints up to this step the newest `keep` stay (0: all), and those of
 * place->keep_every; later ones, which exist only where the run resumed from an older checkpoint, are unchanged. A
 * train_loss that is not finite is refused. */
int wlb_checkpoint_commit(const struct wlb_save_place *place, const struct wlb_checkpoint_facts *facts, int shards,
                          int keep, char path[4096], int64_t *bytes, struct wlb_error *error);
/* Removes the partial folder of a save that failed. */
void wlb_checkpoint_abandon(const struct wlb_save_place *place, int64_t step);

/* Leaves in steps[], which are those of checkpoints, newest first, the old ones: all but the newest `keep` and the
 * multiples of keep_every (0: none for that). Returns their number. */
int wlb_checkpoint_select_old(int64_t *steps, int count, int keep, int64_t keep_every);
/* Renames the checkpoint before it removes it: a half-removed folder must not have the name of a checkpoint. */
int wlb_checkpoint_remove(const char *dir, int64_t step, struct wlb_error *error);

/* Finds the newest complete checkpoint in dir. Returns 1 and its path, 0 when dir has none or does not exist. A
 * checkpoint whose manifest or files are missing, damaged or of the wrong size is skipped with a line on stderr;
 * tensors are not read (wlb_checkpoint_verify). Returns -1 where all are skipped or dir is none, and WLB_UNREADABLE
 * (worker/data/input.h) where dir or one of them cannot be read now. */
int wlb_checkpoint_newest(const char *dir, char path[4096], struct wlb_error *error);
/* The same for a run that loads it, where the checkpoints of `step` and of later steps have been skipped already
 * (INT64_MAX: none). Of a checkpoint with indexes it checks these, and no shards: wlb_checkpoint_check_before_reading.
 */
int wlb_checkpoint_newest_before(const char *dir, int64_t step, char path[4096], struct wlb_error *error);
/* Checks the manifest, the sizes of the files and the headers of the shards, without reading the tensors. Returns -1
 * where the checkpoint is not complete, WLB_UNREADABLE where that cannot be known now. */
int wlb_checkpoint_check(const char *path, struct wlb_error *error);
/* Skips a checkpoint: prints the line that says why. */
void wlb_checkpoint_skip(const char *path, const char *why);
/* Reads one of `shares` parts of the tensors. Returns 0 where their data are those that were saved; WLB_DAMAGED
 * (safetensors.h) where they are others, with file and tensor. Where that cannot be known it returns -1, if a file is
 * not there or is another than the manifest says, as on a node that does not see it, or WLB_UNREADABLE. Tensors of
 * which earlier versions kept no digest are not read. */
int wlb_checkpoint_verify(const char *path, int share, int shares, struct wlb_error *error);
/* Checks sizes and headers of one of `shares` parts of the shards. Returns as wlb_checkpoint_verify, but WLB_DAMAGED
 * also where a shard is not there or is another than its index says. */
int wlb_checkpoint_check_shards(const char *path, int share, int shares, struct wlb_error *error);
/* Sets the message to what is damaged in a shard: its file and tensor. */
void wlb_checkpoint_name_damage(const char *file, struct wlb_error *why);
/* Returns the step of the newest checkpoint in dir, complete or not: 0 when dir has none or does not exist; -1 and
 * WLB_UNREADABLE as wlb_checkpoint_newest. */
int64_t wlb_checkpoint_newest_step(const char *dir, struct wlb_error *error);
int wlb_checkpoint_read_facts(const char *path, struct wlb_checkpoint_facts *facts, struct wlb_error *error);
/* The caller frees *state. */
int wlb_checkpoint_read_packer(const char *path, void **state, size_t *bytes, struct wlb_error *error);
/* Returns the bytes of an element of the checkpoint's tensors, which are all of one type, as the shard of the first one
 * says; -1 with the reason. */
int wlb_checkpoint_element_bytes(const char *path, struct wlb_error *error);

/* Several reads of one checkpoint by several ranks, which together then know whether what they read is what was saved.
 * `path` may also be a folder of Hugging Face weights, as below. */
struct wlb_checkpoint_reader;
/* Returns NULL with the reason. */
struct wlb_checkpoint_reader *wlb_checkpoint_open(const char *path, struct wlb_error *error);
void wlb_checkpoint_close(struct wlb_checkpoint_reader *reader); /* NULL allowed */
int wlb_checkpoint_read_parts(struct wlb_checkpoint_reader *reader, const struct wlb_tensor_part *parts, int count,
                              struct wlb_error *error);
/* Returns what readers that each take a share must call before they read: wlb_checkpoint_verify where not all files
 * have checksums, wlb_checkpoint_check_shards where there are indexes; otherwise NULL. It depends on the manifest
 * alone. */
typedef int wlb_checkpoint_share_check(const char *path, int share, int shares, struct wlb_error *error);
wlb_checkpoint_share_check *wlb_checkpoint_check_before_reading(const struct wlb_checkpoint_reader *reader);
/* The numbers of the sums; they depend on the manifest alone. */
size_t wlb_checkpoint_sum_count(const struct wlb_checkpoint_reader *reader);
/* Sets sums[count] to what was read so far. The ranks add theirs: the sums are whole numbers below 2^53. */
void wlb_checkpoint_sums(const struct wlb_checkpoint_reader *reader, double *sums);
/* Takes the sums over the ranks. Returns the number of the first file that is damaged, -1 where none is known to be: a
 * file of which not all elements were read is not judged, and with indexes a reader knows those files alone whose index
 * it has read. */
int wlb_checkpoint_find_damaged(const struct wlb_checkpoint_reader *reader, const double *sums);
/* The path of a file by its number. Valid until the next call, or until the reader is closed. */
const char *wlb_checkpoint_file_path(struct wlb_checkpoint_reader *reader, int number);

/* Fills the parts from the shards that hold them, converted to the dtype of each part. A part that the checkpoint
 * lacks, or has with another global shape, is an error that names both. `path` may also be a folder of Hugging Face
 * weights (no facts): model.safetensors, or the files that model.safetensors.index.json names; F64, F32, BF16 and F16.
 */
int wlb_checkpoint_read(const char *path, const struct wlb_tensor_part *parts, int count, struct wlb_error *error);

#endif
