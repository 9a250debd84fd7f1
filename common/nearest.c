#include "common/nearest.h"

#include <string.h>

enum { BYTES_MAX = 32 };

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* rows[i % 3][k]: the distance of the first i bytes of `a` to the first k of `b`. */
static int distance(const char *a, int a_bytes, const char *b, int b_bytes)
{
	int rows[3][BYTES_MAX + 1];
	for (int i = 0; i <= a_bytes; i++)
		for (int k = 0; k <= b_bytes; k++) {
			int *row = rows[i % 3], *before = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
			row[k] = i == 0 ? k : i;
			if (i == 0 || k == 0)
				continue;
			row[k] = least(least(row[k - 1], before[k]) + 1, before[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = least(row[k], second[k - 2] + 1);
		}
	return rows[a_bytes % 3][b_bytes];
}

void wlb_nearest_consider(struct wlb_nearest *nearest, const char *name)
{
	size_t word_bytes = strlen(nearest->word), name_bytes = strlen(name);
	if (word_bytes > BYTES_MAX || name_bytes > BYTES_MAX)
		return;
	int found = distance(nearest->word, (int)word_bytes, name, (int)name_bytes);
	if (found > (word_bytes < 8 ? 1 : (int)word_bytes / 4) || found >= (int)word_bytes)
		return;
	bool is_as_long = name_bytes == word_bytes;
	if (nearest->name == NULL || found < nearest->distance ||
	    (found == nearest->distance && is_as_long && !nearest->is_as_long)) {
		nearest->name = name;
		nearest->distance = found;
		nearest->is_as_long = is_as_long;
	}
}
