#include "planner/cli/chart.h"

#include <math.h>
#include <string.h>

enum { INDENT = 2, WIDTH_MIN = 10 };

static void print_bar(FILE *out, double share, int width, bool blocks)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	int parts = (int)lround(share * width * 8), full = parts / 8, printed = full;
	for (int i = 0; i < full; i++)
		fputs(blocks ? "█" : "#", out);
	if (blocks && parts % 8 != 0) {
		fputs(eighths[parts % 8], out);
		printed++;
	}
	fprintf(out, "%*s", width - printed, "");
}

void wlb_bars(FILE *out, const struct wlb_bar *bars, int count, int columns, bool blocks)
{
	double most = 0.0;
	size_t label = 0, note = 0;
	for (int i = 0; i < count; i++) {
		most = fmax(most, bars[i].value);
		label = strlen(bars[i].label) > label ? strlen(bars[i].label) : label;
		note = strlen(bars[i].note) > note ? strlen(bars[i].note) : note;
	}
	int width = columns - INDENT - (int)label - (int)note - 4;
	width = width < WIDTH_MIN ? WIDTH_MIN : width;
	for (int i = 0; i < count; i++) {
		fprintf(out, "%*s%-*s  ", INDENT, "", (int)label, bars[i].label);
		print_bar(out, most > 0.0 ? bars[i].value / most : 0.0, width, blocks);
		fprintf(out, "  %*s\n", (int)note, bars[i].note);
	}
}
