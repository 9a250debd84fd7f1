#include "coordinator/wlb/run/check/checked_products.h"

#include <stdio.h>
#include <string.h>

void wlb_run_unchecked_products(const json_t *report, char *why, size_t size)
{
	const json_t *checks = json_object_get(report, "checks");
	snprintf(why, size, "its check says nothing of products");
	for (size_t i = 0; i < json_array_size(checks); i++) {
		const char *check, *verdict, *measured;
		if (json_unpack(json_array_get(checks, i), "{s:s, s:s, s:s}", "check", &check, "verdict", &verdict,
		                "measured", &measured) != 0 ||
		    strcmp(check, "products") != 0)
			continue;
		if (strcmp(verdict, "ok") == 0)
			*why = '\0';
		else
			snprintf(why, size, "products: %s", measured);
	}
}
