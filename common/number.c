#include "common/number.h"

#include <errno.h>
#include <stdlib.h>

int wlb_number_parse(const char *name, const char *text, int64_t minimum, int64_t maximum, int64_t *number,
                     struct wlb_error *error)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < minimum || value > maximum)
		return wlb_fail(error, "%s '%.200s': must be a whole number from %lld to %lld", name, text,
		                (long long)minimum, (long long)maximum);
	*number = value;
	return 0;
}

int wlb_real_parse(const char *name, const char *text, double minimum, double maximum, double *number,
                   struct wlb_error *error)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end != '\0' || !(value >= minimum && value <= maximum))
		return wlb_fail(error, "%s '%.200s': must be a number from %g to %g", name, text, minimum, maximum);
	*number = value;
	return 0;
}
