/* Divides segments into groups that share no keys, which is all the division that attention of the CPU device needs. */
#include "kernels/cpu/cpu.h"

int wlb_cpu_attention_tile_rows(const struct wlb_device *device, int head_dim, struct wlb_error *error)
{
	(void)device, (void)head_dim, (void)error;
	return 0;
}

/* The smallest key of segments[i .. count) stands in starts[i] at first. A group ends before i where that is not below
 * the end of any key before. */
int wlb_cpu_key_groups(int32_t *starts, const struct wlb_segment *segments, int count)
{
	int32_t least_start = INT32_MAX;
	for (int i = count - 1; i >= 0; i--) {
		if (segments[i].k_count > 0 && segments[i].k_start < least_start)
			least_start = segments[i].k_start;
		starts[i] = least_start;
	}
	int groups = 0;
	int64_t most_end = INT64_MIN;
	for (int i = 0; i < count; i++) {
		int64_t end = (int64_t)segments[i].k_start + segments[i].k_count;
		if (starts[i] >= most_end)
			starts[groups++] = i;
		if (segments[i].k_count > 0 && end > most_end)
			most_end = end;
	}
	starts[groups] = count;
	return groups;
}
