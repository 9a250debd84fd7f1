#include "libverdict/error.h"

#include <stdarg.h>
#include <stdio.h>

int verdict_fail(struct wlb_verdict_error *error, const char *format, ...)
{
	if (error != NULL) {
		va_list args;
		va_start(args, format);
		vsnprintf(error->message, sizeof(error->message), format, args);
		va_end(args);
	}
	return -1;
}
