/* Divides segments into groups that share no keys. */
#include "kernels/cpu/cpu.h"

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
