#include "common/output/bytes_text.h"

#include <stdio.h>

void wlb_bytes_format(int64_t bytes, char *text, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double amount = (double)bytes;
	int unit = 0;
	for (; amount >= 1024 && unit < 4; unit++)
		amount /= 1024;
	snprintf(text, size, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
}
