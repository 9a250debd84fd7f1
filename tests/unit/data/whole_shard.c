#include "tests/unit/data/whole_shard.h"

#include "worker/checkpoint/shard_index.h"

static int complete(struct wlb_safetensors_output *output, const struct wlb_tensor_part *parts, int count,
                    struct wlb_error *error)
{
	if (wlb_safetensors_append(output, parts, count, error) == 0)
		return wlb_safetensors_finish(output, error);
	wlb_safetensors_discard(output);
	return -1;
}

int whole_shard_write(const char *path, const struct wlb_tensor_part *parts, int count, struct wlb_error *error)
{
	struct wlb_safetensors_output *output;
	if (wlb_safetensors_create(path, parts, count, &output, error) < 0)
		return -1;
	return complete(output, parts, count, error);
}

int whole_shard_save(const struct wlb_save_place *place, int64_t step, int shard, const struct wlb_tensor_part *parts,
                     int count, struct wlb_error *error)
{
	struct wlb_safetensors_output *output;
	if (wlb_checkpoint_create_shard(place, step, shard, parts, count, &output, error) < 0)
		return -1;
	return complete(output, parts, count, error);
}

int whole_shard_save_indexes(const struct wlb_save_place *place, int64_t step, int shards, struct wlb_error *error)
{
	if (!wlb_checkpoint_has_indexes(shards))
		return 0;
	for (int i = 0; i < wlb_shard_groups(shards); i++)
		if (wlb_checkpoint_write_index(place, step, i, shards, error) < 0)
			return -1;
	return 0;
}
