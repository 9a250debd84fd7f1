#include "coordinator/slurm/gres.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t wlb_gres_gpus(const char *gres)
{
	uint32_t gpus = 0;
	while (*gres != '\0') {
		size_t length = strcspn(gres, ",(");
		if (strncmp(gres, "gpu", 3) == 0 && (gres[3] == ':' || length == 3)) {
			const char *last = memrchr(gres, ':', length);
			char *end;
			unsigned long count = last ? strtoul(last + 1, &end, 10) : 1;
			gpus += last && end == last + 1 ? 1 : (uint32_t)count;
		}
		gres += length;
		if (*gres == '(')
			gres += strcspn(gres, ")");
		gres += strcspn(gres, ",");
		gres += *gres == ',';
	}
	return gpus;
}

void wlb_gres_gpu_type(const char *gres, char *type, size_t size)
{
	*type = '\0';
	while (*gres != '\0' && *type == '\0') {
		size_t length = strcspn(gres, ",(");
		if (strncmp(gres, "gpu:", 4) == 0 && !isdigit((unsigned char)gres[4]))
			snprintf(type, size, "%.*s", (int)strcspn(gres + 4, ":,("), gres + 4);
		gres += length;
		if (*gres == '(')
			gres += strcspn(gres, ")");
		gres += strcspn(gres, ",");
		gres += *gres == ',';
	}
}
