#include "common/show.h"

#include <stdarg.h>

#include "libwlb/wlb.h"

void wlb_show_line(FILE *out, const char *format, ...)
{
	char line[4096];
	va_list args;
	va_start(args, format);
	wlb_text_vformat(line, sizeof(line), format, args);
	va_end(args);
	fprintf(out, "%s\n", line);
}
