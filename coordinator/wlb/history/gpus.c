#include "coordinator/wlb/history/gpus.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/wlb/output/reply_fields.h"

enum { LOCAL_RANKS_SHOWN = 16 };

static void print_kinds(const json_t *gpus)
{
	const json_t *kind;
	size_t i;
	json_array_foreach(json_object_get(gpus, "kinds"), i, kind)
	{
		const char *driver = wlb_field_text(kind, "driver", "");
		printf("%s%lld x %s, %.1f GB, driver %s for CUDA %s", i > 0 ? "; " : "",
		       (long long)json_integer_value(json_object_get(kind, "gpus")), wlb_field_text(kind, "model", "?"),
		       1e-9 * json_number_value(json_object_get(kind, "memory_bytes")),
		       *driver != '\0' ? driver : "unknown", wlb_field_text(kind, "driver_cuda", "?"));
	}
}

/* The devices of the ranks of the first node. */
static void print_devices(const json_t *rank_map)
{
	const char *node = wlb_field_text(json_array_get(rank_map, 0), "node", "?");
	const json_t *entry;
	size_t i;
	int shown = 0;
	json_array_foreach(rank_map, i, entry)
	{
		const json_t *device = json_object_get(entry, "device");
		if (!json_is_integer(device) || strcmp(wlb_field_text(entry, "node", "?"), node) != 0)
			continue;
		if (shown == LOCAL_RANKS_SHOWN) {
			fputs(", ...", stdout);
			break;
		}
		if (shown++ == 0)
			printf("\n    %s: local rank ", node);
		else
			fputs(", ", stdout);
		printf("%lld on cuda:%lld", (long long)json_integer_value(json_object_get(entry, "local_rank")),
		       (long long)json_integer_value(device));
	}
}

void wlb_show_gpus(const json_t *run)
{
	const json_t *attempt;
	size_t i;
	int printed = 0;
	json_array_foreach(json_object_get(run, "attempts"), i, attempt)
	{
		const json_t *gpus = json_object_get(attempt, "gpus");
		json_int_t ranks = json_integer_value(json_object_get(gpus, "ranks_per_gpu"));
		if (!json_is_object(gpus))
			continue;
		if (!printed++)
			puts("\nGPUs");
		printf("  attempt %lld: ", (long long)json_integer_value(json_object_get(attempt, "attempt")));
		print_kinds(gpus);
		if (ranks > 1)
			printf("; up to %lld ranks a GPU", (long long)ranks);
		print_devices(json_object_get(attempt, "rank_map"));
		putchar('\n');
	}
}
