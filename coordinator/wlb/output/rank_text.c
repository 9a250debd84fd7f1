#include "coordinator/wlb/output/rank_text.h"

#include <stdio.h>
#include <string.h>

enum { MARK_COLUMNS = 4 }; /* ",..." behind ranks that do not fit */

void wlb_ranks_format(const int *ranks, int count, int columns, char *text, size_t size)
{
	size_t most = columns < 0 ? 0 : (size_t)columns < size - 1 ? (size_t)columns : size - 1, at = 0;
	text[0] = '\0';
	for (int i = 0; i < count;) {
		char range[32];
		int last = i;
		while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
			last++;
		snprintf(range, sizeof(range), ranks[i] < ranks[last] ? "%s%d-%d" : "%s%d", i > 0 ? "," : "", ranks[i],
		         ranks[last]);
		if (at + strlen(range) + (last + 1 < count ? MARK_COLUMNS : 0) > most) {
			snprintf(text + at, size - at, "%s...", i > 0 ? "," : "");
			return;
		}
		memcpy(text + at, range, strlen(range) + 1);
		at += strlen(range);
		i = last + 1;
	}
}
