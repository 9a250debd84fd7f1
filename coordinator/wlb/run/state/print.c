#include "coordinator/wlb/run/state/print.h"

#include <stdarg.h>
#include <stdio.h>

#include "libwlb/wlb.h"

void wlb_run_print(const char *format, ...)
{
	char line[1200];
	va_list args;
	va_start(args, format);
	wlb_text_vformat(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "wlb: %s\n", line);
}
