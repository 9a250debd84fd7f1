#include "coordinator/wlb/calculators/plan/certainty.h"

#include <stddef.h>
#include <strings.h>

static const double CERTAINTY = 0.21;

double wlb_step_certainty(const char *gpu, int seq_length)
{
	static const struct {
		const char *gpu;
		int shortest, longest; /* windows, in tokens */
	} compared[] = {{"A100", 512, 65536}, {"H100", 512, 131072}};
	for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++)
		if (strcasecmp(gpu, compared[i].gpu) == 0 && seq_length >= compared[i].shortest &&
		    seq_length <= compared[i].longest)
			return CERTAINTY;
	return 0.0;
}
